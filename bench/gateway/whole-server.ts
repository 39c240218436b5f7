/**
 * The whole service on a durable PostgreSQL of its own, for requests that it must turn away cheaply:
 * `node whole-server.js`. Tells its port and the requests; answers each message with its CPU time.
 */
import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgentKey } from '../../runtime/client/agent.js'
import { silentLogger } from '../../runtime/kernel/log.js'
import { startService } from '../../runtime/startup.js'

const START = '/api/v1/agents/workspace/bootstrap/pow'
const REGISTER = '/api/v1/agents/auth/register/pow'
const INVALID_MAX = 10

/** A request that is repeated; `refused`: the answer is to be a 4xx. */
export type WholeRequest = {
  readonly path: string
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly refused: boolean
}
export type WholeRequests = Readonly<Record<'wrongNonce' | 'bearer' | 'hop', WholeRequest>>

const dataDir = await mkdtemp(join(tmpdir(), 'svc-bench-whole-'))
const port = await freePort()
const service = await startService({
  cwd: dataDir,
  uid: process.getuid?.(),
  log: silentLogger,
  environment: {
    SVC_DATA_DIR: dataDir,
    SVC_SERVER__PORT: String(port),
    SVC_OIDC__ISSUER_URL: `http://localhost:${port}`,
    SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'false',
    SVC_CHALLENGE__POW_DIFFICULTY_BITS: '1',
    SVC_CHALLENGE__POW_MIN_DURATION_SECS: '0',
    SVC_CHALLENGE__POW_MAX_INVALID: String(INVALID_MAX),
  },
})

async function post(path: string, json: unknown): Promise<Record<string, string>> {
  const answer = await fetch(service.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', host: `localhost:${port}` },
    body: JSON.stringify(json),
  })
  return (await answer.json()) as Record<string, string>
}

/** One bit of work: every other nonce does it. */
function nonce(token: string, good: boolean): string {
  for (let at = 0; ; at += 1) {
    const digest = createHash('sha256').update(`${token}:${at}`).digest()
    if (digest[0]! < 128 === good) return String(at)
  }
}

const target = { issuer: service.baseUrl, tenantId: service.controlPlaneTenantId }
const start = (path: string) =>
  post(path, { name: 'Bench', ...createAgentKey().registration(target) })

const issued = await start(START)
const workspace = await post(`${START}/complete`, {
  challenge_id: issued['challenge_id'],
  nonce: nonce(issued['challenge_token']!, true),
  organization_name: 'Bench',
  redirect_uris: [],
  issue_operator_invite: false,
  framework: 'generic',
})
const attacked = await start(REGISTER)
const wrong = {
  challenge_id: attacked['challenge_id'],
  nonce: nonce(attacked['challenge_token']!, false),
}
// So many wrong proofs are counted; what follows is what an attacker gets from then on.
for (let count = 0; count <= INVALID_MAX; count += 1) await post(`${REGISTER}/complete`, wrong)

const json = { 'content-type': 'application/json' }
const bearer = { authorization: `Bearer ${workspace['tenant_access_token']}` }
const requests: WholeRequests = {
  wrongNonce: {
    path: `${REGISTER}/complete`,
    method: 'POST',
    headers: json,
    body: JSON.stringify(wrong),
    refused: true,
  },
  // Refused for its query after its token was checked: no actor is asked for anything.
  bearer: { path: '/api/v1/delegations?limit=0', method: 'GET', headers: bearer, refused: true },
  hop: { path: '/.well-known/openid-configuration', method: 'GET', headers: {}, refused: false },
}

process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.({ cpuSeconds: (user + system) / 1e6 })
})
process.on('disconnect', () => {
  void service.stop().then(() => rm(dataDir, { recursive: true, force: true }))
})
process.send?.({ port, requests })

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address() as { port: number }
      server.close(() => resolve(address.port))
    })
  })
}
