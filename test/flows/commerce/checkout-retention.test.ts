/** Retention of checkouts that were never paid. */
import test from 'ava'
import { sweepCheckouts } from '../../../storage/commerce/checkout-sessions.js'
import { sql } from '../../support/storage/sql.js'
import { testService } from '../../support/service.js'
import { COMMERCE, openShop, PUBLIC } from '../../support/commerce/shop.js'

const DAY_MS = 86_400_000

test('expired unpaid checkouts are deleted, checkouts with a payment attempt stay', async (t) => {
  const running = await testService({ environment: COMMERCE })
  const shop = await openShop(running)
  t.teardown(async () => {
    await running.end()
  })
  const { database } = running.db
  const recurring = await shop.price({ recurring: { interval: 'month', interval_count: 1 } })
  const subscribe = async () => {
    const body = { price_id: recurring, customer_email: 'ada@example.com' }
    const { body: session } = await shop.api.post(
      `${PUBLIC}/subscription-checkout-sessions`,
      undefined,
      body,
    )
    return session
  }
  const left = await shop.checkout({ customer_email: 'bob@example.com' })
  const leftToo = await subscribe()
  const stays = {
    paid: await shop.checkout(),
    declined: await shop.checkout(),
    subscribed: await subscribe(),
    open: await shop.checkout(),
    young: await shop.checkout(),
  }
  await shop.pay(stays.paid['checkout_url'])
  await shop.pay(stays.declined['checkout_url'], 'decline')
  await shop.pay(stays.subscribed['checkout_url'])

  // The service sweeps too, whenever it wants.
  const aged = [left, leftToo, stays.paid, stays.declined, stays.subscribed]
  const ranOut = async (sessions: typeof aged, days: number) =>
    sql(database)`
      update checkout_sessions set expires_at = now() - make_interval(days => ${days})
      where id = any(${sessions.map((one) => one['checkout_session_id'])}::uuid[])`
  await ranOut([...aged, stays.young], 1)
  for (const one of [left, leftToo, stays.young]) {
    const ended = await shop.chargeWhen(one['charge_id'], ({ status }) => status === 'failed')
    t.is(ended['failure_code'], 'checkout_expired')
  }
  const subscription = async (id: unknown) =>
    shop.api.get(`/api/v1/commerce/subscriptions/${String(id)}`, shop.token)
  const ended = await subscription(leftToo['subscription_id'])
  t.is(ended.body['status'], 'canceled', 'it can no longer begin')

  await ranOut(aged, 100)
  const before = new Date(Date.now() - 90 * DAY_MS)
  const swept = (max: number) => database.system((tx) => sweepCheckouts(tx, before, max))
  t.true((await swept(1)) <= 1, 'some at a time')
  t.true((await swept(1_000)) <= 1)
  t.is(await swept(1_000), 0)

  for (const one of [left, leftToo]) {
    const path = `/api/v1/commerce/charges/${String(one['charge_id'])}`
    t.is((await shop.api.get(path, shop.token)).status, 404)
  }
  t.is((await subscription(leftToo['subscription_id'])).status, 404)
  const rows = await sql<{ id: string }>(database)`select id from checkout_sessions`
  t.deepEqual(
    rows.map(({ id }) => id).toSorted(),
    Object.values(stays)
      .map((one) => String(one['checkout_session_id']))
      .toSorted(),
  )
  for (const one of Object.values(stays)) await shop.charge(one['charge_id'])
  t.is((await subscription(stays.subscribed['subscription_id'])).body['status'], 'active')
})
