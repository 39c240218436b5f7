/**
 * An agent's login over HTTP (challenge and verify, with tokens), complete registrations at 8 bits,
 * polls of pending delegations, and the cost of a rejected completion. All writes go to a real
 * PostgreSQL. The reference in the same run is the cryptography that a login requires.
 */
import { createHash, sign, verify } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'undici'
import { freshKeyPair } from '../../runtime/kernel/key-pair.js'
import { createAgentKey } from '../../runtime/clients/client/agent.js'
import { compare, publish, saturate } from '../harness.js'
import { bootstrap, startWhole } from '../whole-service.js'

const IN_FLIGHT = 16
const BITS = 8

const dataDir = await mkdtemp(join(tmpdir(), 'svc-bench-login-'))
const { service } = await startWhole(dataDir, {
  SVC_CHALLENGE__POW_DIFFICULTY_BITS: String(BITS),
  // A bench is a flood, so rate limits are off.
  SVC_CHALLENGE__POW_TRICKLE_PER_MINUTE: '1000000',
})
const client = new Pool(service.url, { connections: IN_FLIGHT })

async function post(path: string, body: unknown, expected: number, token?: string) {
  const answer = await client.request({
    method: 'POST',
    path: `/api/v1/agents/${path}`,
    headers: {
      'content-type': 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(body),
  })
  const json = (await answer.body.json()) as Record<string, string>
  if (answer.statusCode !== expected) throw new Error(`${path}: ${JSON.stringify(json)}`)
  return json
}

async function anyPost(path: string, json: unknown) {
  return post(path.replace('/api/v1/agents/', ''), json, path.endsWith('/complete') ? 201 : 200)
}

const key = createAgentKey()
const target = { issuer: service.baseUrl, tenantId: service.controlPlaneTenantId }

async function start(from = key) {
  const body = { name: 'Bench', ...from.registration(target) }
  return post('auth/register/pow', body, 200)
}

/** The first nonce that solves the challenge. */
function nonce(token: string): string {
  for (let at = 0; ; at += 1) {
    const digest = createHash('sha256').update(`${token}:${at}`).digest()
    if (digest.readUInt32BE() >>> (32 - BITS) === 0) return String(at)
  }
}

async function complete(started: Record<string, string>) {
  const { challenge_id, challenge_token } = started
  return post('auth/register/pow/complete', { challenge_id, nonce: nonce(challenge_token!) }, 200)
}

const issued = await start()
const challenge_id = issued['challenge_id']!
const registered = await complete(issued)
const agent_id = registered['agent_id']!

async function login() {
  const challenge = await post('auth/challenge', { agent_id }, 200)
  const signature = key.signChallenge(challenge['payload']!)
  return post('auth/verify', { challenge_id: challenge['challenge_id'], signature }, 200)
}

/** Most polls get slow_down, which is stored like every other poll. */
const { token: workspace } = await bootstrap(anyPost, target)
const asked = await Promise.all(
  Array.from({ length: IN_FLIGHT }, () =>
    post('delegations/device', { scope: 'openid vault:list' }, 200, workspace),
  ),
)
let polls = 0
async function poll(): Promise<void> {
  polls += 1
  const { device_code } = asked[polls % IN_FLIGHT]!
  await post('delegations/device/token', { device_code }, 400, workspace)
}

const p256 = freshKeyPair('P-256')
const message = Buffer.alloc(400)
async function cryptography(): Promise<void> {
  const signature = sign(null, message, key.privateKey)
  if (!verify(null, message, key.privateKey, signature)) throw new Error('unreachable')
  sign('sha256', message, p256.privateKey)
}

try {
  await publish(
    await compare({
      name: 'agent login',
      ms: 3000,
      reference: {
        name: 'ed25519 sign and verify, ES256 sign',
        run: (ms) => saturate(ms, 1, cryptography),
      },
      contenders: [
        {
          name: 'challenge and verify',
          target: 0.2,
          by: 'cpu',
          run: (ms) => saturate(ms, IN_FLIGHT, login),
        },
        { name: 'challenge and verify, one at a time', run: (ms) => saturate(ms, 1, login) },
        {
          name: 'start of a registration',
          run: (ms) => saturate(ms, IN_FLIGHT, () => start(createAgentKey())),
        },
        {
          name: 'registration at 8 bits: start, solve, complete',
          run: (ms) => saturate(ms, IN_FLIGHT, async () => complete(await start(createAgentKey()))),
        },
        { name: 'poll of a delegation', run: (ms) => saturate(ms, IN_FLIGHT, poll) },
        {
          name: 'complete of a consumed challenge',
          run: (ms) =>
            saturate(ms, IN_FLIGHT, () =>
              post('auth/register/pow/complete', { challenge_id, nonce: '0' }, 400),
            ),
        },
      ],
    }),
  )
} finally {
  await client.close()
  await service.stop()
  await rm(dataDir, { recursive: true, force: true })
}
