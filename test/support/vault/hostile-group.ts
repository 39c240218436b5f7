/** Tenants that cost nothing and together hold what they get of all shared resources, and another tenant. */
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import { createAgentKey } from '../../../runtime/clients/client/agent.js'
import { linesOf } from '../service/exchanges.js'
import { startDns } from '../storage/dns.js'
import { makeCertificate } from '../service/certificates.js'
import { until } from '../service/watch.js'
import { startReceiver } from '../webhooks/receiver.js'
import {
  bodyCall,
  CREDENTIALS,
  type EgressHouse,
  egressHouse,
  type Setting,
  settingOf,
  UPSTREAM_NAME,
} from './egress.js'

/** Half of the egress places of a process, which sandboxes hold together. */
const PLACES = 1024
const RECEIVERS = 4
const STRANGERS = 32
const NAMES = Array.from({ length: 4 }, (_, nth) => `n${nth}.slow.test`)
const SILENT = '/silent/group'
const EVENT = 'vault.credential.created'
const WAVES = 17
const TRIES = 3
const TRY_EVERY_MS = 200

/**
 * The other tenant calls through the proxy, takes tokens and introspects: at most one of a hundred
 * calls is refused, and three tries are enough for each.
 */
export async function besideGroup(t: ExecutionContext, tenants: number): Promise<void> {
  const { house, slow, end } = await stage()
  const { api, upstream } = house
  t.teardown(end)
  const honest = await honestTenant(house)
  const group = await Promise.all(
    Array.from({ length: tenants }, () =>
      settingOf(house, { allowed_hosts: [UPSTREAM_NAME, ...NAMES] }),
    ),
  )
  const attack = new Attack(house, slow.origin)
  t.teardown(() => attack.end())
  const each = Math.floor(PLACES / tenants) - NAMES.length
  for (const setting of group) attack.hold(setting, each)
  const held = () => upstream.requests.filter(({ url }) => url === SILENT).length
  await until('the group holds its places', () => held() >= each * tenants)
  await Promise.all(group.map((setting) => attack.receivers(setting)))
  await attack.strangers()

  const counts = { calls: 0, refused: 0, failed: [] as unknown[] }
  for (let wave = 0; wave < WAVES; wave += 1) {
    // More than the group gets, and what a call of the honest tenant took back.
    for (const setting of group) attack.hold(setting, 1)
    await Promise.all(honest.map((call) => tried(call, counts)))
  }
  t.deepEqual(counts.failed, [])
  t.true(counts.refused <= counts.calls / 100, `${counts.refused} of ${counts.calls} are refused`)
  const [refused] = attack.refused
  if (refused === undefined) return t.fail('the group asks for more than it gets')
  await until('the refusal is logged', () =>
    linesOf(refused).some((line) => /"level":40\b.*"error":"share_exhausted"/.test(line)),
  )
  t.is((await api.get('/health/ready')).status, 200)
}

/** A service in a separate process: thousands of calls keep this one busy. */
async function stage() {
  const dns = await startDns()
  dns.silentBelow = '.slow.test'
  const folder = await mkdtemp(join(tmpdir(), 'svc-group-'))
  const config = join(folder, 'svc.toml')
  await writeFile(
    config,
    `[vault]\negress_dns_servers = ["${dns.server}"]\n` +
      `[vault.egress_dns_overrides]\n"${UPSTREAM_NAME}" = "127.0.0.1"\n`,
  )
  const certificate = makeCertificate()
  const open: ServerResponse[] = []
  const slow = await startReceiver(() => (response) => void open.push(response), certificate)
  const house = await egressHouse({
    environment: {
      SVC_CONFIG_FILE: config,
      // One agent stands for the agents that a tenant registers.
      SVC_VAULT__EGRESS_CALLS_PER_AGENT_MAX: '2048',
      // Longer than the test.
      SVC_VAULT__EGRESS_HEAD_TIMEOUT_SECS: '300',
      SVC_WEBHOOKS__ALLOW_PRIVATE_NETWORKS: 'true',
      SVC_WEBHOOKS__CA_PEM_PATH: certificate.certPath,
      SVC_SECURITY__WEBHOOK_ALLOW_NON_STANDARD_PORTS: 'true',
    },
  })
  return {
    house,
    slow,
    async end() {
      for (const response of open) response.end()
      await house.end()
      await slow.close()
      await dns.close()
      await rm(folder, { recursive: true })
    },
  }
}

class Attack {
  readonly #house: EgressHouse
  readonly #receiver: string
  readonly #over = new AbortController()
  readonly #running: Promise<unknown>[] = []
  /** The ids of refused calls. */
  readonly refused: string[] = []

  constructor(house: EgressHouse, receiver: string) {
    this.#house = house
    this.#receiver = receiver
  }

  /** Calls to a silent upstream. */
  hold(setting: Setting, calls: number): void {
    const { origin } = this.#house.upstream
    for (let nth = 0; nth < calls; nth += 1) this.#call(setting, origin + SILENT)
  }

  /** Names without a name server, and receivers that do not answer. */
  async receivers(setting: Setting): Promise<void> {
    const { api } = this.#house
    const { operator } = setting
    for (const name of NAMES) this.#call(setting, `https://${name}/`)
    const json = { event_types: [EVENT] }
    for (let nth = 0; nth < RECEIVERS; nth += 1) {
      const url = `${this.#receiver}/${setting.tenantId}/${nth}`
      const { body } = await api.post('/api/v1/webhooks', operator, { ...json, url })
      this.#run(api.post(`/api/v1/webhooks/${String(body['id'])}/test`, operator))
    }
    await api.post(CREDENTIALS, operator, credential)
  }

  /** Registrations whose did:web document does not come. */
  async strangers(): Promise<void> {
    const { api, running, upstream } = this.#house
    const { body } = await api.get('/api/v1/agents/workspace/bootstrap')
    const tenantId = String(body['control_plane_tenant_id'])
    const host = new URL(upstream.origin).host.replace(':', '%3A')
    for (let nth = 0; nth < STRANGERS; nth += 1) {
      const target = { issuer: running.baseUrl, tenantId, didWeb: `did:web:${host}:silent:${nth}` }
      const draft = {
        name: 'Stranger',
        tenant_id: tenantId,
        ...createAgentKey().registration(target),
      }
      this.#run(api.post('/api/v1/agents/auth/register/pow', undefined, draft))
    }
  }

  async end(): Promise<void> {
    this.#over.abort()
    await Promise.all(this.#running)
  }

  /** A call. One that ends for another reason than a refusal is repeated: a busy machine connects slowly. */
  #call(setting: Setting, url: string): void {
    const { signal } = this.#over
    const headers = bodyCall(setting, url, {
      'x-svc-method': 'GET',
      'x-svc-stream-response': 'true',
    })
    const call = async () => {
      for (let status = 0; status !== 503; ) {
        const sent = { token: setting.direct, headers, signal }
        const { statusCode, headers: told, body } = await this.#house.send('/v1/proxy/body', sent)
        await body.dump()
        status = statusCode
        if (status === 503) this.refused.push(String(told['x-request-id']))
      }
    }
    this.#run(call())
  }

  /** Most of the calls are open when the attack ends. */
  #run(call: Promise<unknown>): void {
    this.#running.push(Promise.race([call, once(this.#over.signal, 'abort')]).catch(() => {}))
  }
}

const credential = {
  provider: 'upstream',
  credential_type: 'api_key',
  label: 'Key',
  auth_scheme: 'bearer',
  allowed_hosts: [UPSTREAM_NAME],
  secret: 'a secret of a group',
}

type Call = () => Promise<{ readonly status: number }>

/** Its calls of one wave, which run at the same time. */
async function honestTenant(house: EgressHouse): Promise<readonly Call[]> {
  const { api, upstream } = house
  const setting = await settingOf(house)
  const { body } = await api.post('/api/v1/applications', setting.operator, {
    name: 'Honest',
    grant_types: ['client_credentials'],
  })
  const [id, secret] = [body['client_id'], body['client_secret']].map(String)
  const authorization = `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`
  const relay = (stream: boolean) => () =>
    api.post('/v1/proxy', setting.delegated, {
      credential_id: setting.credentialId,
      url: `${upstream.origin}/echo`,
      stream,
    })
  return [
    relay(true),
    relay(true),
    relay(false),
    relay(false),
    () => api.form('/oauth/token', { grant_type: 'client_credentials' }, { authorization }),
    () => api.form('/oauth/introspect', { token: setting.direct }, { authorization }),
  ]
}

async function tried(call: Call, counts: { calls: number; refused: number; failed: unknown[] }) {
  counts.calls += 1
  for (let turn = 1; ; turn += 1) {
    const answer = await call()
    if (answer.status === 200) return
    counts.refused += 1
    if (answer.status !== 503 || turn === TRIES) return void counts.failed.push(answer)
    await sleep(TRY_EVERY_MS)
  }
}
