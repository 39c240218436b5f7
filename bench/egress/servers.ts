/**
 * The servers of the egress bench, each in its own process:
 * `node servers.js upstream | http-proxy | bare | bare-thread <upstream port> | svc <upstream port>
 * <database url>`.
 * A process sends its port, and replies to every message with its CPU time and memory.
 */
import { mkdtemp, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { Agent } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import httpProxy from 'http-proxy'
import { loadNative } from '../../gateway/transports/native.js'
import { runMigrations } from '../../migrations/main.js'
import { httpClient } from '../../runtime/clients/client/http.js'
import { silentLogger } from '../../runtime/kernel/log.js'
import { LOCALHOST_CERT, LOCALHOST_KEY } from '../flows/loopback-tls.js'
import { freePort, type Spent } from '../foreign-program.js'
import { bootstrap, startWhole } from '../whole-service.js'
import { bareRelay } from './bare-relay.js'

export type Listening = {
  readonly port: number
  /** `server.egress_port` of svc. */
  readonly egressPort?: number
  /** Headers of a call through svc, except the URL. */
  readonly headers?: Readonly<Record<string, string>>
}

const KIB = Buffer.alloc(1024, 'x')
const BIG = Buffer.alloc(32 * 1024 * 1024, 'x')

async function certificateFiles(): Promise<{ cert: string; key: string; folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-egress-'))
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  await writeFile(cert, LOCALHOST_CERT)
  await writeFile(key, LOCALHOST_KEY, { mode: 0o600 })
  return { cert, key, folder }
}

/** Serves `/1k` and `/32m` over TLS with uWebSockets. */
async function upstream(): Promise<Listening> {
  const native = loadNative()
  if (native.tag === 'refused') throw new Error(native.reason)
  const { uws } = native
  const { cert, key } = await certificateFiles()
  const app = uws.SSLApp({ cert_file_name: cert, key_file_name: key })
  app.get('/1k', (res) => {
    res.end(KIB)
  })
  app.get('/32m', (res) => {
    const more = () => {
      const from = res.getWriteOffset()
      const [sent, done] = res.tryEnd(BIG.subarray(from), BIG.length)
      return sent || done
    }
    res.onAborted(() => undefined)
    res.onWritable(more)
    more()
  })
  return new Promise((resolve) => {
    app.listen('127.0.0.1', 0, (socket) => {
      if (socket) resolve({ port: uws.us_socket_local_port(socket) })
    })
  })
}

async function peer(upstreamPort: number): Promise<Listening> {
  const proxy = httpProxy.createProxyServer({
    target: `https://localhost:${upstreamPort}`,
    agent: new Agent({ keepAlive: true, maxSockets: 256, ca: LOCALHOST_CERT }),
    changeOrigin: true,
    secure: true,
  })
  proxy.on('error', (error) => console.error(error.message))
  const server = createServer((request, response) => proxy.web(request, response))
  // Same as nginx.
  server.keepAliveTimeout = 75_000
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { port: (server.address() as AddressInfo).port }
}

/** The whole service, with a credential for the upstream that is granted to the calling agent. */
async function svc(upstreamPort: number, databaseUrl: string): Promise<Listening> {
  const { cert, folder } = await certificateFiles()
  const configFile = join(folder, 'svc.toml')
  await writeFile(configFile, '[vault.egress_dns_overrides]\n"localhost" = "127.0.0.1"\n')
  await runMigrations({ url: databaseUrl, log: silentLogger })
  const egressPort = await freePort()
  const { service, port } = await startWhole(folder, {
    SVC_SERVER__EGRESS_PORT: String(egressPort),
    DATABASE_URL: databaseUrl,
    SVC_CONFIG_FILE: configFile,
    SVC_JWT__ACCESS_TOKEN_LIFETIME_AGENT_SECS: '7200',
    SVC_VAULT__EGRESS_ALLOW_PRIVATE_NETWORKS: 'true',
    SVC_VAULT__EGRESS_ALLOW_NON_STANDARD_PORTS: 'true',
    SVC_VAULT__EGRESS_CA_PEM_PATH: cert,
  })
  const client = httpClient(service.baseUrl)
  const post = async (path: string, json: unknown, token?: string) => {
    const { status, body } = await client.request({ method: 'POST', path, json, token })
    if (status >= 400) throw new Error(`${path}: ${JSON.stringify(body)}`)
    return body as Record<string, unknown>
  }
  const target = { issuer: service.baseUrl, tenantId: service.controlPlaneTenantId }
  const { agentId, token } = await bootstrap(post, target)
  const credential = {
    provider: 'upstream',
    credential_type: 'api_key',
    label: 'Bench',
    auth_scheme: 'bearer',
    allowed_hosts: ['localhost'],
    secret: 'a secret of the bench',
  }
  const credentials = '/api/v1/vault/credentials'
  const { id } = await post(credentials, credential, token)
  const grant = { grantee_type: 'agent', grantee_id: agentId }
  await post(`${credentials}/${String(id)}/grants`, grant, token)
  await client.close()
  return {
    port,
    egressPort,
    headers: {
      authorization: `Bearer ${token}`,
      'x-svc-credential-id': String(id),
      'x-svc-method': 'GET',
      'x-svc-url': `https://localhost:${upstreamPort}`,
    },
  }
}

const [, , name = '', upstreamPort = '0', databaseUrl = ''] = process.argv
const servers: Record<string, (port: number, databaseUrl: string) => Promise<Listening>> = {
  upstream,
  'http-proxy': peer,
  bare: async (to) => ({ port: await bareRelay(to, false) }),
  'bare-thread': async (to) => ({ port: await bareRelay(to, true) }),
  svc,
}
const listening = await servers[name]!(Number(upstreamPort), databaseUrl)
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  const spent: Spent = { cpuSeconds: (user + system) / 1e6, rssBytes: process.memoryUsage.rss() }
  process.send?.(spent)
})
process.on('disconnect', () => process.exit(0))
process.send?.(listening)
