/**
 * An agent's login over HTTP, challenge and verify, with tokens issued and everything written to a
 * real PostgreSQL; and what the rejection of a completion costs. Beside them, in the same run, the
 * cryptography that a login cannot do without.
 */
import { createHash, generateKeyPairSync, sign, verify } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'undici'
import { createAgentKey } from '../../runtime/client/agent.js'
import { silentLogger } from '../../runtime/kernel/log.js'
import { startService } from '../../runtime/startup.js'
import { compare, publish, saturate } from '../harness.js'

const IN_FLIGHT = 16

const dataDir = await mkdtemp(join(tmpdir(), 'svc-bench-login-'))
const service = await startService({
  cwd: dataDir,
  uid: process.getuid?.(),
  log: silentLogger,
  environment: {
    SVC_DATA_DIR: dataDir,
    SVC_SERVER__PORT: '18499',
    SVC_OIDC__ISSUER_URL: 'http://localhost:18499',
    SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'false',
    SVC_CHALLENGE__POW_DIFFICULTY_BITS: '1',
    SVC_CHALLENGE__POW_MIN_DURATION_SECS: '0',
  },
})
const client = new Pool(service.url, { connections: IN_FLIGHT })

async function post(path: string, body: unknown, expected: number) {
  const answer = await client.request({
    method: 'POST',
    path: `/api/v1/agents/${path}`,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const json = (await answer.body.json()) as Record<string, string>
  if (answer.statusCode !== expected) throw new Error(`${path}: ${JSON.stringify(json)}`)
  return json
}

const key = createAgentKey()
const target = { issuer: service.baseUrl, tenantId: service.controlPlaneTenantId }

async function start(from = key) {
  const body = { name: 'Bench', ...from.registration(target) }
  return post('auth/register/pow', body, 200)
}

/** One bit of work: every other nonce does it. */
function nonce(token: string, good: boolean): string {
  for (let at = 0; ; at += 1) {
    const digest = createHash('sha256').update(`${token}:${at}`).digest()
    if (digest[0]! < 128 === good) return String(at)
  }
}

const issued = await start()
const challenge_id = issued['challenge_id']!
const registered = await post(
  'auth/register/pow/complete',
  { challenge_id, nonce: nonce(issued['challenge_token']!, true) },
  200,
)
const agent_id = registered['agent_id']!

async function login(): Promise<void> {
  const challenge = await post('auth/challenge', { agent_id }, 200)
  const signature = key.signChallenge(challenge['payload']!)
  await post('auth/verify', { challenge_id: challenge['challenge_id'], signature }, 200)
}

const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' })
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
        { name: 'challenge and verify', run: (ms) => saturate(ms, IN_FLIGHT, login) },
        { name: 'challenge and verify, one at a time', run: (ms) => saturate(ms, 1, login) },
        {
          name: 'start of a registration',
          run: (ms) => saturate(ms, IN_FLIGHT, () => start(createAgentKey())),
        },
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
