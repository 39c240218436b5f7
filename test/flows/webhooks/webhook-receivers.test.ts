/** Receivers that misbehave, and secrets of subscriptions: supplied ones, and rotation with its overlap. */
import { randomBytes } from 'node:crypto'
import test from 'ava'
import { type Answer, startReceiver } from '../../support/webhooks/receiver.js'
import { until } from '../../support/service/watch.js'
import { sql } from '../../support/storage/sql.js'
import {
  deliveringService,
  judge,
  standardVerifies,
  subscriber,
} from '../../support/webhooks/webhooks.js'

const answers = new Map<string, () => Answer>()
let open = 0
let openMax = 0
const receiver = await startReceiver(({ path }) => answers.get(path)?.() ?? 200)
const running = await deliveringService()
test.after.always(() => running.end())
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
    await until('an attempt', isTried)
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

test('while two secrets overlap a stock receiver verifies with either, our suite with the new', async (t) => {
  const { ask, subscribe, emit } = await world()
  const { id, path, at, secret: old } = await subscribe()
  const rotated = await ask('POST', `${at}/rotate-secret`, { overlap_secs: 3600 })
  t.is(rotated.status, 200, rotated.text)
  const secret = String(rotated.body['secret'])
  t.not(secret, old)
  const untilMs = Date.parse(String(rotated.body['previous_secret_expires_at']))
  t.is(untilMs - Date.parse(String(rotated.body['rotated_at'])), 3_600_000)
  await emit()
  const [request] = await receiver.until(path, 1)
  t.is(judge(request!, secret).tag, 'genuine')
  t.is(judge(request!, old).tag, 'refused')
  t.true(standardVerifies(request!, secret))
  t.true(standardVerifies(request!, old))
  await sql(running)`
    update webhooks set previous_secret_expires_at = statement_timestamp() where id = ${id}`
  await emit()
  const [, later] = await receiver.until(path, 2)
  t.true(standardVerifies(later!, secret))
  t.false(standardVerifies(later!, old))
  const record = (await ask('GET', at)).body
  t.is(record['secret_last_rotated_at'], rotated.body['rotated_at'])
  t.false('secret' in record)
})

test('a supplied secret is never returned', async (t) => {
  const { ask, subscribe, emit } = await world()
  const supplied = randomBytes(24).toString('hex')
  const { body, path, at } = await subscribe({ secret: supplied })
  t.false('secret' in body)
  await emit()
  const [request] = await receiver.until(path, 1)
  t.is(judge(request!, supplied).tag, 'genuine')
  const next = randomBytes(24).toString('hex')
  const rotated = await ask('POST', `${at}/rotate-secret`, { secret: next })
  t.is(rotated.status, 200)
  t.false('secret' in rotated.body)
  t.false(rotated.text.includes(next))
})

test('a rotation to a supplied secret can be repeated, and its overlap shortened', async (t) => {
  const { ask, subscribe, emit } = await world()
  const { path, at, secret: old } = await subscribe()
  const secret = randomBytes(24).toString('base64')
  const first = await ask('POST', `${at}/rotate-secret`, { secret })
  const repeated = await Promise.all(
    [{ secret }, { secret, overlap_secs: 604_800 }].map((body) =>
      ask('POST', `${at}/rotate-secret`, body),
    ),
  )
  for (const { status, body } of repeated)
    t.deepEqual({ status, body }, { status: 200, body: first.body })
  await emit()
  const [request] = await receiver.until(path, 1)
  t.is(judge(request!, secret).tag, 'genuine')
  const count = String(request!.headers['webhook-signature']).split(' ').length
  t.is(count, 2, 'the secret from before the first call still signs')
  t.true(standardVerifies(request!, old))

  const ended = await ask('POST', `${at}/rotate-secret`, { secret, overlap_secs: 0 })
  t.is(ended.body['rotated_at'], first.body['rotated_at'])
  t.true(Date.parse(String(ended.body['previous_secret_expires_at'])) <= Date.now())
  await emit()
  const [, later] = await receiver.until(path, 2)
  t.false(standardVerifies(later!, old))
  const generated = await ask('POST', `${at}/rotate-secret`)
  t.is(generated.status, 200, 'nothing needs to be said')
  t.regex(String(generated.body['secret']), /^whsec_/)
})
