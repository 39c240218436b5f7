/** The setup of `noisy/neighbour`: the whole service in a separate process, with two tenants. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { createAgentKey } from '../../runtime/clients/client/agent.js'
import { type HttpClient, httpClient } from '../../runtime/clients/client/http.js'
import { logIn } from '../../runtime/clients/client/login.js'
import { registerAgent } from '../../runtime/clients/client/registration.js'
import { freePort } from '../foreign-program.js'
import { bootstrap, type Workspace } from '../whole-service.js'
import type { Places } from './places-thread.js'

const MAIN = new URL('../../runtime/main.js', import.meta.url).pathname
const METRICS_TOKEN = 'metrics-token-of-a-bench'
const START_WITHIN_MS = 120_000
/** Maximum number of hosts of a credential. */
const HOSTS_MAX = 64
const HONEST_NAMES = 6 * HOSTS_MAX
export const MAIL_QUEUE_MAX = 100
/** A text whose period repeats its own beginning, except for one letter. */
const PERIODIC = `${'a'.repeat(32_000)}b${'a'.repeat(28_000)}`

/** The event that the creation of a credential emits. */
export const EVENT = 'vault.credential.created'

/** The body of a credential. */
export const draftOf = (hosts: readonly string[], more: object = {}) => ({
  provider: 'upstream',
  credential_type: 'api_key',
  label: 'Bench',
  auth_scheme: 'bearer',
  allowed_hosts: hosts,
  secret: 'a secret of the bench',
  ...more,
})

/** A credential with its allowed origins. */
export type Reach = { readonly credentialId: string; readonly origins: readonly string[] }

export type Tenant = Workspace & {
  /** One token of each agent that may use the credentials. */
  readonly tokens: readonly string[]
  /** By kind of use. */
  readonly reaches: Readonly<Record<'plain' | 'periodic' | 'names', readonly Reach[]>>
}

export interface Stage {
  readonly baseUrl: string
  /** The upstream of the honest tenant and of the hostile ones. */
  readonly upstream: string
  readonly hostileUpstream: string
  readonly hostile: readonly Tenant[]
  readonly honest: Tenant
  /** Posts `Arrival`s. Both release held messages when they get any message. */
  readonly places: Worker
  readonly hostilePlaces: Worker
  /** Current `svc_share_refused_total` by resource. */
  refusals(): Promise<Map<string, number>>
  end(): Promise<void>
}

async function certificate(folder: string): Promise<{ cert: string; key: string; path: string }> {
  const [path, keyPath] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const args = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2'
  const names = 'subjectAltName=DNS:localhost,DNS:*.honest.test'
  execFileSync(
    'openssl',
    [...args.split(' '), '-subj', '/CN=bench', '-addext', names, '-keyout', keyPath, '-out', path],
    { stdio: 'ignore' },
  )
  return { cert: await readFile(path, 'utf8'), key: await readFile(keyPath, 'utf8'), path }
}

/**
 * The service as `svc serve` starts it, on an embedded PostgreSQL in the folder.
 * @param quotas the rate limits are on, as in production.
 */
async function serve(folder: string, places: Places, caPath: string, quotas: boolean) {
  const port = await freePort()
  const baseUrl = `http://localhost:${port}`
  const config = join(folder, 'svc.toml')
  await writeFile(
    config,
    `[vault]\negress_dns_servers = ["127.0.0.1:${places.dns}"]\n` +
      '[vault.egress_dns_overrides]\n"localhost" = "127.0.0.1"\n',
  )
  const child = spawn(process.execPath, [MAIN, 'serve', '--log-level', 'error'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      SVC_CONFIG_FILE: config,
      SVC_DATA_DIR: join(folder, 'data'),
      SVC_SERVER__PORT: String(port),
      SVC_SERVER__HTTP1_PARSER: 'uwebsockets',
      SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN,
      SVC_OIDC__ISSUER_URL: baseUrl,
      SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: String(quotas),
      SVC_CHALLENGE__POW_DIFFICULTY_BITS: '1',
      SVC_CHALLENGE__POW_MIN_DURATION_SECS: '0',
      SVC_JWT__ACCESS_TOKEN_LIFETIME_AGENT_SECS: '7200',
      SVC_SERVER__TRUSTED_PROXIES: '127.0.0.1',
      // All sign-ins of a tenant use one address.
      SVC_AUTH__PASSWORD_VERIFY_IP_MAX_ATTEMPTS: '10000000',
      SVC_VAULT__EGRESS_ALLOW_PRIVATE_NETWORKS: 'true',
      SVC_VAULT__EGRESS_ALLOW_NON_STANDARD_PORTS: 'true',
      SVC_VAULT__EGRESS_CA_PEM_PATH: caPath,
      SVC_WEBHOOKS__ALLOW_PRIVATE_NETWORKS: 'true',
      SVC_WEBHOOKS__CA_PEM_PATH: caPath,
      SVC_SECURITY__WEBHOOK_ALLOW_NON_STANDARD_PORTS: 'true',
      SVC_INVITATIONS__ENABLED: 'true',
      SVC_EMAIL__PROVIDER: 'smtp',
      SVC_EMAIL__SMTP_CATCHER: 'true',
      SVC_EMAIL__SMTP_HOST: 'localhost',
      SVC_EMAIL__SMTP_PORT: String(places.smtp),
      SVC_EMAIL__SMTP_STARTTLS: 'false',
      SVC_EMAIL__FROM: 'svc <no-reply@mail.svc-bench.net>',
      SVC_EMAIL__QUEUE_MAX_PER_TENANT: String(MAIL_QUEUE_MAX),
      SVC_EMAIL__PER_TENANT_PER_DAY_MAX: '1000000',
      SVC_EMAIL__PER_SANDBOX_PER_DAY_MAX: '1000000',
    },
  })
  const closed = once(child, 'close')
  // Also when the bench fails.
  process.once('exit', () => child.kill('SIGTERM'))
  const endMs = performance.now() + START_WITHIN_MS
  for (;;) {
    const answer = await fetch(`${baseUrl}/health/ready`).catch(() => undefined)
    await answer?.body?.cancel()
    if (answer?.status === 200) break
    if (child.exitCode !== null || performance.now() > endMs) throw new Error('it does not start')
    await sleep(100)
  }
  return {
    baseUrl,
    async end() {
      child.kill('SIGTERM')
      await closed
    },
  }
}

/** @param address of its registrations. */
async function tenantIn(
  baseUrl: string,
  httpsPort: number,
  names: readonly string[],
  { address, agents }: { readonly address: string; readonly agents: number },
): Promise<Tenant> {
  const plain = httpClient(baseUrl)
  const client: HttpClient = {
    ...plain,
    request: (asked) =>
      plain.request({ ...asked, headers: { ...asked.headers, 'x-forwarded-for': address } }),
  }
  const send = async (method: 'GET' | 'POST', path: string, json?: unknown, token?: string) => {
    const { status, body } = await client.request({ method, path, json, token })
    if (status >= 400) throw new Error(`${path}: ${JSON.stringify(body)}`)
    return body as Record<string, unknown>
  }
  const metadata = await send('GET', '/api/v1/agents/workspace/bootstrap')
  const issuer = String(metadata['issuer'])
  const workspace = await bootstrap((path, json) => send('POST', path, json), {
    issuer,
    tenantId: String(metadata['control_plane_tenant_id']),
  })
  const { token, agentId, tenantId } = workspace
  const [ids, tokens] = [[agentId], [token]]
  while (ids.length < agents) {
    const key = createAgentKey()
    const options = { http: client, key, tenantId }
    ids.push((await registerAgent({ ...options, name: 'Bench', threads: 1 })).agentId)
    tokens.push((await logIn({ ...options, issuer })).accessToken)
  }
  async function reach(hosts: readonly string[], more: object = {}): Promise<Reach> {
    const credentials = '/api/v1/vault/credentials'
    const { id } = await send('POST', credentials, draftOf(hosts, more), token)
    for (const grantee of ids) {
      const grant = { grantee_type: 'agent', grantee_id: grantee }
      await send('POST', `${credentials}/${String(id)}/grants`, grant, token)
    }
    const origins = hosts.map((host) => `https://${host}:${httpsPort}`)
    return { credentialId: String(id), origins }
  }
  const groups = Array.from({ length: Math.ceil(names.length / HOSTS_MAX) }, (_, at) =>
    names.slice(at * HOSTS_MAX, (at + 1) * HOSTS_MAX),
  )
  const reaches = {
    plain: [await reach(['localhost'])],
    periodic: [await reach(['localhost'], { auth_scheme: 'header:x-k', secret: PERIODIC })],
    names: await Promise.all(groups.map((group) => reach(group))),
  }
  await client.close()
  return { ...workspace, tokens, reaches }
}

export type StageOptions = {
  /** The rate limits are on, as in production. */
  readonly quotas: boolean
  /** Hostile tenants, each registered from its own address. Default 1. */
  readonly tenants?: number
  /** Agents of each hostile tenant. Default 1. */
  readonly agents?: number
}

/** The service, its tenants, and all its peers. */
export async function openNoisyStage({
  quotas,
  tenants = 1,
  agents = 1,
}: StageOptions): Promise<Stage> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-noisy-'))
  const { cert, key, path } = await certificate(folder)
  // The places of the hostile tenants are on another thread, so that only the service is shared.
  const [places, hostilePlaces] = [0, 1].map(
    () =>
      new Worker(new URL('./places-thread.js', import.meta.url), {
        workerData: { cert, key },
      }),
  ) as [Worker, Worker]
  const started = [places, hostilePlaces].map((each) => once(each, 'message'))
  const [[ports], [hostilePorts]] = (await Promise.all(started)) as [[Places], [Places]]
  const service = await serve(folder, ports, path, quotas)
  const { baseUrl } = service
  const nameOf = (below: string) => (_: unknown, at: number) => `n${at}.${below}.test`
  const slow = Array.from({ length: HOSTS_MAX }, nameOf('slow'))
  const answered = Array.from({ length: HONEST_NAMES }, nameOf('honest'))
  const hostile: Tenant[] = []
  for (let nth = 0; nth < tenants; nth += 1) {
    const from = { address: `198.51.100.${nth}`, agents }
    hostile.push(await tenantIn(baseUrl, hostilePorts.https, slow, from))
  }
  const from = { address: '192.0.2.8', agents: 1 }
  return {
    baseUrl,
    upstream: `https://localhost:${ports.https}`,
    hostileUpstream: `https://localhost:${hostilePorts.https}`,
    hostile,
    honest: await tenantIn(baseUrl, ports.https, answered, from),
    places,
    hostilePlaces,
    async refusals() {
      const headers = { authorization: `Bearer ${METRICS_TOKEN}` }
      const text = await (await fetch(`${baseUrl}/metrics`, { headers })).text()
      const lines = text.matchAll(/^svc_share_refused_total\{[^}]*resource="(\w+)"[^}]*\} (\d+)/gm)
      return new Map(Array.from(lines, ([, resource, count]) => [resource!, Number(count)]))
    },
    async end() {
      await service.end()
      await Promise.all([places.terminate(), hostilePlaces.terminate()])
      await rm(folder, { recursive: true, force: true })
    },
  }
}
