/**
 * The whole service on a durable PostgreSQL, for requests that it refuses: `node whole-server.js`. It sends its port and
 * the requests, and answers each message with its CPU time.
 */
import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgentKey } from '../../runtime/clients/client/agent.js'
import { bootstrap, startWhole } from '../whole-service.js'

const REGISTER = '/api/v1/agents/auth/register/pow'
const INVALID_MAX = 10

/** A repeated request. `refused`: a 4xx is expected. */
export type WholeRequest = {
  readonly path: string
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly refused: boolean
}
export type WholeRequests = Readonly<
  Record<'wrongNonce' | 'bearer' | 'query' | 'hop', WholeRequest>
>

const dataDir = await mkdtemp(join(tmpdir(), 'svc-bench-whole-'))
const { service, port } = await startWhole(dataDir, {
  SVC_CHALLENGE__POW_MAX_INVALID: String(INVALID_MAX),
})

async function post(path: string, json: unknown, expected = [200, 201]) {
  const answer = await fetch(service.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', host: `localhost:${port}` },
    body: JSON.stringify(json),
  })
  const text = await answer.text()
  if (!expected.includes(answer.status)) throw new Error(`${path}: ${answer.status} ${text}`)
  return JSON.parse(text) as Record<string, string>
}

const target = { issuer: service.baseUrl, tenantId: service.controlPlaneTenantId }
const workspace = await bootstrap(post, target)
const attacked = await post(REGISTER, { name: 'Bench', ...createAgentKey().registration(target) })
const wrong = {
  challenge_id: attacked['challenge_id'],
  nonce: badNonce(attacked['challenge_token']!),
}

/** An invalid nonce for a difficulty of one bit. */
function badNonce(token: string): string {
  for (let at = 0; ; at += 1) {
    const digest = createHash('sha256').update(`${token}:${at}`).digest()
    if (digest[0]! >= 128) return String(at)
  }
}

// Wrong proofs are counted up to a limit. The measurement starts beyond it, as in an attack.
for (let count = 0; count <= INVALID_MAX; count += 1) {
  await post(`${REGISTER}/complete`, wrong, [400])
}

const json = { 'content-type': 'application/json' }
const bearer = { authorization: `Bearer ${workspace.token}` }
const requests: WholeRequests = {
  wrongNonce: {
    path: `${REGISTER}/complete`,
    method: 'POST',
    headers: json,
    body: JSON.stringify(wrong),
    refused: true,
  },
  // Refused after the token was verified, because it is not a user's token.
  bearer: { path: '/api/v1/identity/ciba/requests', method: 'GET', headers: bearer, refused: true },
  // The same, refused because of its query.
  query: { path: '/api/v1/delegations?limit=0', method: 'GET', headers: bearer, refused: true },
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
