/** Own service: it floods it. */
/**
 * A flood of registration starts does not stop a genuine registration. The suite floods briefly at
 * a rate that every machine can send. TEST_LONG offers 5,000 a second for half a minute, counting
 * starts that were shed. The test makes no statement about times: a registration succeeds or fails.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { createAgentKey } from '../../../runtime/clients/client/agent.js'
import { type Answer, apiOf } from '../../support/api.js'
import { forgedStart, hostileStart, START, startFlood } from '../../support/operations/flood.js'
import { nonceFor } from '../../support/identity/nonce.js'
import { testWithProgram } from '../../support/service/programs.js'
import { until } from '../../support/service/watch.js'
import { startRedis } from '../../support/service/servers.js'
import { ownService } from '../../support/service/own-service.js'
import { IS_LONG } from '../../support/runs.js'

const PER_SECOND = IS_LONG ? 5_000 : 400
const SECONDS = IS_LONG ? 30 : 4
const CONNECTIONS = IS_LONG ? 2_000 : 400
/** Fraction of the rate for a slow machine to have offered at the end. */
const OFFERED_LEAST = 0.5
const BITS = 8
const FLOOD_BITS = 4
const TRICKLE = 60

const running = await ownService({
  transport: 'plain_http',
  environment: {
    SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'true',
    SVC_SERVER__TRUSTED_PROXIES: '["127.0.0.1/32", "::1/128"]',
    SVC_CHALLENGE__POW_DIFFICULTY_BITS: String(BITS),
    SVC_CHALLENGE__POW_TRICKLE_PER_MINUTE: String(TRICKLE),
    SVC_CHALLENGE__POW_FLOOD_BITS_MAX: String(FLOOD_BITS),
  },
})
const api = apiOf(running)
const port = Number(new URL(running.baseUrl).port)
let addresses = 0
/** An address that was not used before. */
const address = (network: number) => {
  addresses += 1
  return `10.${network}.${(addresses >> 8) & 255}.${addresses & 255}`
}
const from = (sender: string) => ({ 'x-forwarded-for': sender })
const workspace = await flooded()
test.after.always(() => api.end())

/** The tenant that is flooded. */
async function flooded() {
  return api.workspace('Flooded')
}

type Tries = { readonly answer: Answer; readonly bits: number; readonly tries: number }

/** A patient client: it retries after Retry-After. */
async function register(tenantId: string, sender = address(1)): Promise<Tries> {
  const key = createAgentKey()
  const target = { issuer: running.baseUrl, tenantId }
  let tries = 0
  const send = async (path: string, json: object) => {
    for (;;) {
      tries += 1
      const answer = await api.call('POST', path, { json, headers: from(sender) })
      if (answer.status !== 503) return answer
      await sleep(Number(answer.headers['retry-after'] ?? 1) * 1000)
    }
  }
  const body = { name: 'Honest', tenant_id: tenantId, ...key.registration(target) }
  const started = await send(START, body)
  const bits = Number(started.body['difficulty_bits'])
  if (started.status !== 200) return { answer: started, bits, tries }
  const nonce = nonceFor({
    challengeToken: String(started.body['challenge_token']),
    difficultyBits: bits,
  })
  const proof = { challenge_id: started.body['challenge_id'], nonce }
  return { answer: await send(`${START}/complete`, proof), bits, tries }
}

const KINDS = {
  'from one address': (target: { issuer: string; tenantId: string }) => {
    const sender = address(2)
    return Array.from({ length: 64 }, () => hostileStart(target, sender))
  },
  'from thousands of addresses': (target: { issuer: string; tenantId: string }) =>
    Array.from({ length: IS_LONG ? 20_000 : 2_000 }, () => hostileStart(target, address(3))),
  'with forged proofs from thousands of addresses': (target: {
    issuer: string
    tenantId: string
  }) => Array.from({ length: IS_LONG ? 20_000 : 2_000 }, () => forgedStart(target, address(4))),
}

for (const [kind, make] of Object.entries(KINDS)) {
  test.serial(`a flood of starts ${kind} does not stop an honest registration`, async (t) => {
    t.timeout(SECONDS * 1000 + 120_000)
    const { tenantId } = workspace
    const requests = make({ issuer: running.baseUrl, tenantId })
    const flood = startFlood({ port, perSecond: PER_SECOND, connections: CONNECTIONS, requests })
    const registered: Tries[] = []
    let told = await flood.tally()
    while (told.seconds < SECONDS || registered.length < 3) {
      registered.push(await register(tenantId))
      told = await flood.tally()
    }
    const tally = await flood.end()
    const rate = (count: number) => Math.round(count / tally.seconds)
    t.log(`${rate(tally.offered)} starts a second offered, ${rate(tally.answered)} answered`, tally)
    t.log(`${registered.length} honest registrations`, {
      tries: Math.max(...registered.map(({ tries }) => tries)),
      bits: Math.max(...registered.map(({ bits }) => bits)),
    })
    t.true(rate(tally.offered) >= PER_SECOND * OFFERED_LEAST, 'the flood was one')
    t.true(tally.brokenOff < tally.offered / 2, 'and was not turned away at accept')
    for (const { answer, bits } of registered) {
      t.is(answer.status, 200, JSON.stringify(answer.body))
      t.true(bits >= BITS && bits <= BITS + FLOOD_BITS, String(bits))
    }
    // A flood only gets the answers: wait, do more work, invalid proof.
    for (const status of Object.keys(tally.statuses)) {
      t.true(['200', '400', '429', '503'].includes(status), status)
    }
    t.is((await api.get('/health/live')).status, 200)
  })
}

test.serial('a flood on one tenant raises no cost for another', async (t) => {
  t.timeout(120_000)
  const { tenantId } = workspace
  const other = await flooded()
  const requests = KINDS['from thousands of addresses']({ issuer: running.baseUrl, tenantId })
  const flood = startFlood({ port, perSecond: PER_SECOND, connections: CONNECTIONS, requests })
  t.teardown(() => flood.end())
  await until('a higher cost', async () => (await register(tenantId)).bits > BITS)
  const quiet = await register(other.tenantId)
  t.is(quiet.answer.status, 200)
  t.is(quiet.bits, BITS)
})

testWithProgram(
  'redis-server',
  'without the coordination backend registrations are refused, everything else works, and it recovers',
  async (t, path) => {
    t.timeout(120_000)
    const redis = await startRedis(path)
    t.teardown(() => redis.stop())
    const counted = await ownService({
      environment: {
        SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'true',
        SVC_DEPLOYMENT__COORDINATION_BACKEND: 'redis',
        SVC_REDIS__URL: `redis://127.0.0.1:${redis.port}`,
      },
    })
    const client = apiOf(counted)
    t.teardown(() => client.end())
    const { tenantId, key, agentId } = await client.workspace()
    const start = () =>
      client.post(START, undefined, {
        name: 'Honest',
        tenant_id: tenantId,
        ...createAgentKey().registration({ issuer: counted.baseUrl, tenantId }),
      })
    t.is((await start()).status, 200)
    await redis.kill()
    const refused = await start().gives(503)
    t.true(Number(refused.headers['retry-after']) >= 1)
    t.is((await client.login(key, { agent_id: agentId, tenant_id: tenantId })).status, 200)
    await redis.restart()
    let answer = await start()
    for (let turn = 0; turn < 60 && answer.status === 503; turn += 1) {
      await sleep(500)
      answer = await start()
    }
    t.is(answer.status, 200, JSON.stringify(answer.body))
  },
)
