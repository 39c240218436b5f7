/**
 * The servers of the egress bench, each in a process of its own:
 * `node servers.js upstream | http-proxy <upstream port> | svc <upstream port>`.
 * A process says where it listens, and answers every message with the CPU time it used and its memory.
 */
import { mkdtemp, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { Agent } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import httpProxy from 'http-proxy'
import { createAgentKey } from '../../runtime/client/agent.js'
import { httpClient } from '../../runtime/client/http.js'
import { solve } from '../../runtime/client/solver.js'
import { silentLogger } from '../../runtime/kernel/log.js'
import { startService } from '../../runtime/startup.js'
import { loadNative } from '../../gateway/transports/native.js'
import { LOCALHOST_CERT, LOCALHOST_KEY } from '../flows/loopback-tls.js'

export type Listening = {
  readonly port: number
  /** What a call through svc has to say besides its address. */
  readonly headers?: Readonly<Record<string, string>>
}
export type Spent = { readonly cpuSeconds: number; readonly rssBytes: number }

const KIB = Buffer.alloc(1024, 'x')
const BIG = Buffer.alloc(32 * 1024 * 1024, 'x')

async function certificateFiles(): Promise<{ cert: string; key: string; folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-egress-'))
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  await writeFile(cert, LOCALHOST_CERT)
  await writeFile(key, LOCALHOST_KEY, { mode: 0o600 })
  return { cert, key, folder }
}

/** `/1k` and `/32m`, over TLS, as fast as uWebSockets gives them. */
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
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { port: (server.address() as AddressInfo).port }
}

/** The whole service with a credential for the upstream, granted to the agent that asks. */
async function svc(upstreamPort: number): Promise<Listening> {
  const { cert, folder } = await certificateFiles()
  const configFile = join(folder, 'svc.toml')
  await writeFile(configFile, '[vault.egress_dns_overrides]\n"localhost" = "127.0.0.1"\n')
  const port = await freePort()
  const service = await startService({
    cwd: folder,
    uid: process.getuid?.(),
    log: silentLogger,
    environment: {
      SVC_CONFIG_FILE: configFile,
      SVC_DATA_DIR: folder,
      SVC_SERVER__PORT: String(port),
      SVC_OIDC__ISSUER_URL: `http://localhost:${port}`,
      SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'false',
      SVC_CHALLENGE__POW_DIFFICULTY_BITS: '1',
      SVC_CHALLENGE__POW_MIN_DURATION_SECS: '0',
      SVC_JWT__ACCESS_TOKEN_LIFETIME_AGENT_SECS: '7200',
      SVC_VAULT__EGRESS_ALLOW_PRIVATE_NETWORKS: 'true',
      SVC_VAULT__EGRESS_ALLOW_NON_STANDARD_PORTS: 'true',
      SVC_VAULT__EGRESS_CA_PEM_PATH: cert,
    },
  })
  const client = httpClient(service.baseUrl)
  const ask = async (path: string, json?: unknown, token?: string) => {
    const method = json === undefined ? 'GET' : 'POST'
    const { status, body } = await client.request({ method, path, json, token })
    if (status >= 400) throw new Error(`${path}: ${JSON.stringify(body)}`)
    return body as Record<string, never>
  }
  const path = '/api/v1/agents/workspace/bootstrap'
  const { issuer, control_plane_tenant_id: tenantId } = await ask(path)
  const key = createAgentKey()
  const start = await ask(`${path}/pow`, {
    name: 'Bench',
    ...key.registration({ issuer: String(issuer), tenantId: String(tenantId) }),
  })
  const nonce = await solve({
    challengeToken: String(start['challenge_token']),
    difficultyBits: Number(start['difficulty_bits']),
    threads: 1,
  })
  const made = await ask(`${path}/pow/complete`, {
    challenge_id: start['challenge_id'],
    nonce,
    organization_name: 'Bench',
    redirect_uris: [],
    framework: 'generic',
  })
  const token = String(made['tenant_access_token'])
  const { id } = await ask(
    '/api/v1/vault/credentials',
    {
      provider: 'upstream',
      credential_type: 'api_key',
      label: 'Bench',
      auth_scheme: 'bearer',
      allowed_hosts: ['localhost'],
      secret: 'a secret of the bench',
    },
    token,
  )
  const agent = made['agent'] as unknown as { id: string }
  await ask(
    `/api/v1/vault/credentials/${id}/grants`,
    { grantee_type: 'agent', grantee_id: agent.id },
    token,
  )
  await client.close()
  const at = `https://localhost:${upstreamPort}`
  return {
    port,
    headers: {
      authorization: `Bearer ${token}`,
      'x-svc-credential-id': String(id),
      'x-svc-method': 'GET',
      'x-svc-url': at,
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

const [, , name = '', upstreamPort = '0'] = process.argv
const servers: Record<string, (port: number) => Promise<Listening>> = {
  upstream,
  'http-proxy': peer,
  svc,
}
const listening = await servers[name]!(Number(upstreamPort))
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  const spent: Spent = { cpuSeconds: (user + system) / 1e6, rssBytes: process.memoryUsage.rss() }
  process.send?.(spent)
})
process.on('disconnect', () => process.exit(0))
process.send?.(listening)
