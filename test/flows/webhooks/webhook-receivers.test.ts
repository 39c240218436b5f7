/** Receivers that misbehave, and their effect on others. */
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { startReceiver } from '../../support/webhooks/receiver.js'
import { testService } from '../../support/service.js'
import { subscriber } from '../../support/webhooks/webhooks.js'

const dead = new Set<string>()
/** They send 100 (Continue) before a response. */
const early = new Set<string>()
let open = 0
let openMax = 0
const receiver = await startReceiver(({ path }) => {
  if (dead.has(path)) return () => undefined
  if (early.has(path))
    return (response) => {
      response.writeContinue()
      response.writeContinue()
      response.end()
    }
  if (!path.startsWith('/slow')) return 200
  open += 1
  openMax = Math.max(openMax, open)
  return (response) => {
    setTimeout(() => {
      open -= 1
      response.end()
    }, 50)
  }
})
const running = await testService({
  environment: {
    SVC_WEBHOOKS__ALLOW_PRIVATE_NETWORKS: 'true',
    SVC_WEBHOOKS__CA_PEM_PATH: receiver.certificate.certPath,
    SVC_SECURITY__WEBHOOK_ALLOW_NON_STANDARD_PORTS: 'true',
    SVC_WEBHOOKS__TIMEOUT_SECS: '3',
  },
})
test.after.always(async () => {
  await running.end()
  await receiver.close()
})
const world = () => subscriber(running, receiver)

test('a fifth of dead receivers does not delay the others', async (t) => {
  const { subscribe, emit } = await world()
  const hooks = []
  for (let turn = 0; turn < 20; turn += 1) {
    const hook = await subscribe()
    if (turn % 5 === 0) dead.add(hook.path)
    hooks.push(hook)
  }
  const begun = Date.now()
  for (let turn = 0; turn < 10; turn += 1) {
    await emit()
    await sleep(100)
  }
  const delays: number[] = []
  for (const { path } of hooks.filter(({ path }) => !dead.has(path))) {
    const requests = await receiver.until(path, 10)
    for (const { atMs, body } of requests) {
      const { timestamp } = JSON.parse(body.toString()) as { timestamp: string }
      delays.push(atMs - Date.parse(timestamp))
    }
  }
  delays.sort((a, b) => a - b)
  const p99 = delays[Math.floor(delays.length * 0.99)]!
  t.log({ deliveries: delays.length, medianMs: delays[delays.length >> 1], p99Ms: p99 })
  // With four dead receivers ahead in turn, ten events would take half a minute. On an idle
  // machine: 0.1 s.
  t.true(p99 < 5_000)
  const roundsMax = Math.ceil((Date.now() - begun) / 3_000) + 1
  for (const path of dead) t.true(receiver.at(path).length <= 4 * roundsMax)
})

test('a receiver gets at most four concurrent attempts', async (t) => {
  const { subscribe, emit } = await world()
  const { path } = await subscribe({ url: `${receiver.origin}/slow` })
  t.truthy(path)
  await Promise.all(Array.from({ length: 40 }, () => emit()))
  await receiver.until('/slow', 40)
  t.true(openMax <= 4)
  t.true(openMax >= 2)
})

test('five days of failures deactivate a subscription', async (t) => {
  const { subscribe, emit, tenantId, ask, settled } = await world()
  const { path, at, id } = await subscribe()
  await emit()
  await settled(at)
  dead.add(path)
  const isActive = async () => (await ask('GET', at)).body['active'] === true
  // The worker may still be storing the earlier success, so the days are set until they apply.
  for (let turn = 0; turn < 60 && (await isActive()); turn += 1) {
    await running.db.database.tenant(tenantId, (tx) =>
      tx.query({
        name: 'test.failing',
        text: `update webhook_lanes set failing_since = now() - interval '5 days' where webhook_id = $1`,
        values: [id],
      }),
    )
    await emit()
    await sleep(500)
  }
  const [delivery] = await settled(at, 2)
  t.like(delivery, { status: 'failed', error: 'subscription_inactive', next_attempt_at: null })
  t.is((await ask('GET', at)).body['active'], false)
})

test('a receiver may send 100 (Continue) before its response', async (t) => {
  const { subscribe, emit, settled } = await world()
  const hook = await subscribe()
  early.add(hook.path)
  await emit()
  await emit()
  const deliveries = await settled(hook.at, 2)
  t.deepEqual(
    deliveries.map(({ status, attempt_count }) => [status, attempt_count]),
    [
      ['succeeded', 1],
      ['succeeded', 1],
    ],
  )
})
