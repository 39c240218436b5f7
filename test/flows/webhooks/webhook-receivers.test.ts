/** Receivers that misbehave. */
import test from 'ava'
import { type Answer, startReceiver } from '../../support/webhooks/receiver.js'
import { until } from '../../support/service/watch.js'
import { deliveringService, subscriber } from '../../support/webhooks/webhooks.js'

const answers = new Map<string, () => Answer>()
let open = 0
let openMax = 0
const receiver = await startReceiver(({ path }) => answers.get(path)?.() ?? 200)
const running = await deliveringService()
test.after.always(async () => {
  await running.end()
  await receiver.close()
})
const world = () => subscriber(running, receiver)

test('a receiver gets at most four concurrent attempts', async (t) => {
  const { subscribe, emit } = await world()
  const { path } = await subscribe()
  answers.set(path, () => {
    open += 1
    openMax = Math.max(openMax, open)
    return (response) => {
      setTimeout(() => {
        open -= 1
        response.end()
      }, 50)
    }
  })
  await Promise.all(Array.from({ length: 16 }, () => emit()))
  await receiver.until(path, 16)
  t.true(openMax <= 4)
  t.true(openMax >= 2)
})

test('five days of failures deactivate a subscription', async (t) => {
  const { subscribe, emit, tenantId, ask, settled } = await world()
  const { path, at, id } = await subscribe()
  await emit()
  await settled(at)
  answers.set(path, () => 500)
  const isActive = async () => (await ask('GET', at)).body['active'] === true
  // The worker may still be storing the earlier success, so the days are set until they apply.
  for (let attempts = 1; attempts < 60 && (await isActive()); ) {
    await running.db.database.tenant(tenantId, (tx) =>
      tx.query({
        name: 'test.failing',
        text: `update webhook_lanes set failing_since = now() - interval '5 days' where webhook_id = $1`,
        values: [id],
      }),
    )
    await emit()
    attempts += 1
    const isTried = async () => receiver.at(path).length >= attempts || !(await isActive())
    await until('an attempt', 30_000, isTried)
  }
  const [delivery] = await settled(at, 2)
  t.like(delivery, { status: 'failed', error: 'subscription_inactive', next_attempt_at: null })
  t.is((await ask('GET', at)).body['active'], false)
})

test('a receiver may send 100 (Continue) before its response', async (t) => {
  const { subscribe, emit, settled } = await world()
  const hook = await subscribe()
  answers.set(hook.path, () => (response) => {
    response.writeContinue()
    response.writeContinue()
    response.end()
  })
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
