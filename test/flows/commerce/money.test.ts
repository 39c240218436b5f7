/** Money over HTTP: refunds, disputes, payouts, statements, renewals. */
import { randomUUID } from 'node:crypto'
import test from 'ava'
import type { Json } from '../../support/api.js'
import { sql } from '../../support/storage/sql.js'
import { sharedService } from '../../support/service.js'
import { openShop, PUBLIC, type Shop } from '../../support/commerce/shop.js'

const running = await sharedService('commerce')
const shops: Shop[] = []
test.after.always(() => Promise.all(shops.map(({ api }) => api.close())))

async function fresh() {
  const shop = await openShop(running)
  shops.push(shop)
  const at = '/api/v1/commerce'
  const post = (path: string, json?: unknown, headers = {}) =>
    shop.api.post(`${at}/${path}`, shop.token, json, headers)
  const rows = async (path: string) => (await shop.api.list(`${at}/${path}`, shop.token)).rows
  const until = async (path: string, fits: (rows: Json[]) => boolean) => {
    for (let turn = 0; turn < 1000; turn += 1) {
      const found = await rows(path)
      if (fits(found)) return found
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    throw new Error(`${path}: ${JSON.stringify(await rows(path))}`)
  }
  const bought = async (outcome = 'succeed', more: Json = {}) => {
    const session = await shop.checkout(more)
    await shop.pay(session['checkout_url'], outcome)
    return String(session['charge_id'])
  }
  const sums = async () => {
    const [row] = await sql<{ total: string; lines: string; apart: string }>(
      running.db.database,
      `select (select coalesce(sum(balance_minor), 0)::text from ledger_accounts
               where tenant_id = $1) as total,
              (select coalesce(sum(amount_minor), 0)::text from ledger_lines
               where tenant_id = $1) as lines,
              (select count(*)::text from ledger_accounts a where tenant_id = $1
                 and balance_minor <> (select sum(amount_minor) from ledger_lines l
                   where l.tenant_id = a.tenant_id and l.currency = a.currency
                     and l.rail = a.rail and l.account = a.account)) as apart`,
      [shop.workspace.tenantId],
    )
    return row!
  }
  return { ...shop, post, rows, until, bought, sums }
}
const EVEN = { total: '0', lines: '0', apart: '0' }
const released = (count: number) => (rows: Json[]) =>
  rows.filter(({ status }) => status === 'released').length === count

test('concurrent refunds never exceed the rest of the charge', async (t) => {
  const { bought, post, charge, sums, workspace } = await fresh()
  const id = await bought()
  const answers = await Promise.all(
    Array.from({ length: 30 }, () => post(`charges/${id}/refund`, { amount_minor: 150 })),
  )
  const good = answers.filter(({ status }) => status === 200)
  t.is(good.length, 13, '13 times 150 fit into 1999')
  for (const { status, body } of answers.filter((one) => one.status !== 200)) {
    t.is(status, 400, JSON.stringify(body))
  }
  t.like(await charge(id), { status: 'refunded', refunded_amount_minor: 1950 })
  const rest = await post(`charges/${id}/refund`)
  t.is(rest.body['refunded_amount_minor'], 1999)
  t.is((await post(`charges/${id}/refund`)).status, 400)
  const told = await sql<{ amount: number }>(running)`
    select (data ->> 'refunded_amount_minor')::int as amount from all_events
    where tenant_id = ${workspace.tenantId} and type = 'commerce.payment.refunded'
    order by sequence`
  t.deepEqual(
    told.map(({ amount }) => amount),
    [...Array.from({ length: 13 }, (_, index) => (index + 1) * 150), 1999],
  )
  t.deepEqual(await sums(), EVEN)
})

test('a refund is made once per key, and only of a paid charge', async (t) => {
  const { bought, post, checkout } = await fresh()
  const id = await bought()
  const key = { 'idempotency-key': randomUUID() }
  const first = await post(`charges/${id}/refund`, { amount_minor: 100, reason: 'broken' }, key)
  const again = await post(`charges/${id}/refund`, { amount_minor: 100, reason: 'broken' }, key)
  t.deepEqual([first.status, again.status], [200, 200])
  t.is(again.body['refunded_amount_minor'], 100)
  t.is((await post(`charges/${id}/refund`, { amount_minor: 101 }, key)).status, 422)
  for (const [charge, json, status] of [
    [id, { amount_minor: 0 }, 400],
    [id, { amount_minor: 1.5 }, 400],
    [id, { amount_minor: 2000 }, 400],
    [id, { amount_minor: 113 }, 409],
    [(await checkout())['charge_id'], {}, 409],
    [await bought('decline'), {}, 409],
    [randomUUID(), {}, 404],
    ['nonsense', {}, 404],
  ] as const) {
    await post(`charges/${String(charge)}/refund`, json).gives(status)
  }
  t.is((await post(`charges/${id}/refund`)).body['refunded_amount_minor'], 1999)
  const stranger = await fresh()
  t.is((await stranger.post(`charges/${id}/refund`)).status, 404)
})

test('a dispute holds the money, which is released when won and taken back when lost', async (t) => {
  const { bought, post, until, rows, charge, sums } = await fresh()
  const [won, lost] = [await bought('dispute'), await bought('dispute')]
  const disputes = await rows('disputes')
  t.is(disputes.length, 2)
  t.deepEqual(
    (await rows('settlements')).map(({ status, hold_reason: why }) => [status, why]),
    [
      ['held', 'dispute'],
      ['held', 'dispute'],
    ],
  )
  t.is((await post(`charges/${won}/refund`)).status, 409)
  const close = (charged: string, outcome: string) => {
    const { id } = disputes.find((one) => one['charge_id'] === charged)!
    return post(`disputes/${String(id)}/close`, { outcome })
  }
  t.like((await close(won, 'won')).body, { status: 'closed', outcome: 'won' })
  t.is((await close(won, 'lost')).status, 409)
  t.like((await close(lost, 'lost')).body, { status: 'closed', outcome: 'lost' })
  await until('settlements', released(2))
  t.deepEqual(await rows('balances'), [
    {
      currency: 'USD',
      rail: 'sandbox',
      pending_minor: 0,
      held_minor: 0,
      available_minor: 1999,
      in_transit_minor: 0,
    },
  ])
  t.like(await charge(lost), { status: 'succeeded', dispute: { status: 'closed' } })
  t.is((await post(`charges/${lost}/refund`)).status, 400, 'nothing is left of it')
  t.is((await post(`charges/${won}/refund`)).status, 200)
  t.is((await post(`disputes/${randomUUID()}/close`, { outcome: 'won' })).status, 404)
  t.deepEqual(await sums(), EVEN)
})

test('concurrent payouts never exceed the available balance, and a failed one is returned', async (t) => {
  const { bought, post, until, rows, sums } = await fresh()
  await bought()
  await bought()
  await until('settlements', released(2))
  const payout = { rail: 'sandbox', currency: 'USD', amount_minor: 1000 }
  const answers = await Promise.all(Array.from({ length: 10 }, () => post('payouts', payout)))
  t.is(answers.filter(({ status }) => status === 201).length, 3)
  t.is(answers.filter(({ status }) => status === 400).length, 7)
  await until('payouts', (all) => all.every(({ status }) => status === 'paid'))
  t.is((await post('payouts', { ...payout, amount_minor: 913 })).body['status'], 'submitted')
  const ended = await until('payouts', (all) => all.every(({ status }) => status !== 'submitted'))
  t.like(ended[0], { status: 'failed', failure_code: 'account_closed' })
  t.is((await rows('balances'))[0]?.['available_minor'], 998)
  const rest = await post('payouts', { rail: 'sandbox', currency: 'USD' })
  t.is(rest.body['amount_minor'], 998)
  t.is((await post('payouts', payout)).status, 400)
  t.is((await post('payouts', { ...payout, rail: 'gold' })).status, 400)
  t.deepEqual(await sums(), EVEN)
})

test('a refund after the payout is refused until there is money to cover it', async (t) => {
  const { bought, post, until, rows, charge, sums } = await fresh()
  const id = await bought()
  await until('settlements', released(1))
  t.is((await post('payouts', { rail: 'sandbox', currency: 'USD' })).status, 201)
  await until('payouts', ([one]) => one?.['status'] === 'paid')
  await post(`charges/${id}/refund`).gives(409, 'insufficient_balance')
  t.is((await post(`charges/${id}/refund`, { amount_minor: 1 })).status, 409)
  t.is((await post(`charges/${id}/refund`, { amount_minor: 2000 })).status, 400, 'not so much left')
  t.like(await charge(id), { status: 'succeeded' })
  t.is((await rows('balances'))[0]?.['available_minor'], 0)
  // The next sale is in reserve immediately.
  await bought()
  t.is((await post(`charges/${id}/refund`, { amount_minor: 1500 })).status, 200)
  t.is((await post(`charges/${id}/refund`)).body['error'], undefined)
  await until('settlements', released(2))
  t.is((await rows('balances'))[0]?.['available_minor'], 0)
  t.deepEqual(await sums(), EVEN)
})

test('concurrent refunds and payouts never exceed the balance', async (t) => {
  const { bought, post, until, rows, sums } = await fresh()
  const ids = [await bought(), await bought(), await bought()]
  await until('settlements', released(3))
  const payout = { rail: 'sandbox', currency: 'USD', amount_minor: 1000 }
  const answers = await Promise.all([
    ...ids.flatMap((id) =>
      [300, 400, 500, 799].map((minor) => post(`charges/${id}/refund`, { amount_minor: minor })),
    ),
    ...Array.from({ length: 6 }, () => post('payouts', payout)),
  ])
  const sent = answers.filter(({ status }) => status === 200 || status === 201).length
  t.true(sent > 0 && sent < answers.length)
  await until('payouts', (all) => all.every(({ status }) => status !== 'submitted'))
  const [balance] = await rows('balances')
  t.true(Number(balance?.['available_minor']) >= 0, JSON.stringify(balance))
  t.deepEqual(await sums(), EVEN)
})

test('consecutive statements cover every ledger entry once', async (t) => {
  const { bought, post, until, rows } = await fresh()
  t.is((await post('statements', { currency: 'USD' })).status, 400, 'nothing was booked')
  const id = await bought()
  await until('settlements', released(1))
  const first = await post('statements', { currency: 'USD' }).gives(201)
  t.like(first.body, { opening_balance_minor: 0, closing_balance_minor: 1999 })
  t.deepEqual((first.body['totals'] as Json)['charge'], { count: 1, amount_minor: 1999 })
  t.is((await post('statements', { currency: 'USD' })).status, 400)
  await post(`charges/${id}/refund`, { amount_minor: 500 })
  await post('payouts', { rail: 'sandbox', currency: 'USD', amount_minor: 1000 })
  await until('payouts', ([one]) => one?.['status'] === 'paid')
  const second = await post('statements', { currency: 'USD' })
  t.like(second.body, {
    opening_balance_minor: 1999,
    closing_balance_minor: 499,
    period_start: first.body['period_end'],
  })
  t.is((await rows('statements')).length, 2)
})

async function subscribed(shop: Shop, more: Json = {}) {
  const priceId = await shop.price({ recurring: { interval: 'month' }, amount_minor: 900 })
  const { body } = await shop.api
    .post(`${PUBLIC}/subscription-checkout-sessions`, undefined, {
      price_id: priceId,
      customer_email: 'ada@example.com',
      metadata: { plan: 'a' },
      ...more,
    })
    .gives(200)
  return body
}

test('a subscription starts when paid, renews once per period, becomes past due and recovers', async (t) => {
  const shop = await fresh()
  const opened = await subscribed(shop)
  t.like(opened, { interval: 'month', interval_count: 1, amount_minor: 900, status: 'open' })
  const id = String(opened['subscription_id'])
  const read = async () =>
    (await shop.api.get(`/api/v1/commerce/subscriptions/${id}`, shop.token)).body
  const until = async (fits: (row: Json) => boolean) => {
    for (let turn = 0; turn < 1000; turn += 1) {
      const row = await read()
      if (fits(row)) return row
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    throw new Error(JSON.stringify(await read()))
  }
  t.is((await read())['status'], 'incomplete')
  t.is(
    (await shop.post(`subscriptions/${id}/simulate-renewal`, { outcome: 'succeed' })).status,
    409,
  )
  await shop.pay(opened['checkout_url'])
  const active = await read()
  t.like(active, { status: 'active', period: 1 })
  const begin = new Date(String(active['current_period_start']))
  const end = new Date(String(active['current_period_end']))
  t.true(end.getTime() - begin.getTime() >= 28 * 86_400_000)

  const simulate = (outcome: string) =>
    shop.post(`subscriptions/${id}/simulate-renewal`, { outcome })
  t.is((await simulate('succeed')).status, 200)
  t.is((await until(({ period }) => period === 2))['current_period_start'], end.toISOString())
  await simulate('decline')
  await until(({ status }) => status === 'past_due')
  t.is((await read())['period'], 2)
  await simulate('succeed')
  await until(({ status, period }) => status === 'active' && period === 3)
  const charges = (await shop.rows('charges')).filter((one) => one['subscription_id'] === id)
  t.deepEqual(charges.map(({ status }) => status).toSorted(), [
    'failed',
    'succeeded',
    'succeeded',
    'succeeded',
  ])
  t.deepEqual(charges[0]?.['metadata'], { plan: 'a' })

  t.true((await shop.post(`subscriptions/${id}/cancel`)).body['cancel_at_period_end'])
  await simulate('succeed')
  await until(({ status }) => status === 'canceled')
  t.is((await read())['period'], 3, 'the last period is not renewed')
  t.is((await shop.post(`subscriptions/${id}/cancel`)).status, 409)
  t.is((await simulate('succeed')).status, 409)
  const stranger = await fresh()
  t.is((await stranger.post(`subscriptions/${id}/cancel`)).status, 404)
  t.deepEqual(await shop.sums(), EVEN)
})

test('a subscription with a declined first payment never starts, and requires an email address', async (t) => {
  const shop = await fresh()
  const opened = await subscribed(shop)
  await shop.pay(opened['checkout_url'], 'decline')
  const [row] = await shop.rows('subscriptions')
  t.is(row?.['status'], 'canceled')
  const path = `${PUBLIC}/subscription-checkout-sessions`
  const once = { price_id: shop.priceId, customer_email: 'a@b.example' }
  t.is((await shop.api.post(path, undefined, once)).body['error'], 'invalid_price')
  const priceId = await shop.price({ recurring: { interval: 'year', interval_count: 2 } })
  const withoutEmail = await shop.api.post(path, undefined, { price_id: priceId })
  t.deepEqual([withoutEmail.status, withoutEmail.body['error']], [400, 'invalid_buyer'])
  const away = {
    price_id: priceId,
    customer_email: 'a@b.example',
    success_url: 'https://evil.example',
  }
  t.is((await shop.api.post(path, undefined, away)).body['error'], 'redirect_host_not_allowed')
})

test('a subscription canceled before its start cannot be paid', async (t) => {
  const shop = await fresh()
  const opened = await subscribed(shop)
  const id = String(opened['subscription_id'])
  const ended = await shop.post(`subscriptions/${id}/cancel`, { at_period_end: false })
  t.like(ended.body, { id, status: 'canceled' })
  const page = await fetch(String(opened['checkout_url']))
  t.is(page.status, 410)
  t.like(await shop.charge(opened['charge_id']), {
    status: 'failed',
    failure_code: 'subscription_canceled',
  })
  const told = await sql<{ code: string }>(running)`
    select data ->> 'failure_code' as code from all_events
    where tenant_id = ${shop.workspace.tenantId} and type = 'commerce.payment.failed'`
  t.deepEqual(told, [{ code: 'subscription_canceled' }])
  t.is((await shop.post(`subscriptions/${id}/cancel`, { at_period_end: false })).status, 409)
})

test('of a concurrent payment and cancellation of a subscription, one wins', async (t) => {
  const shop = await fresh()
  for (let turn = 0; turn < 12; turn += 1) {
    const opened = await subscribed(shop)
    const at = `subscriptions/${String(opened['subscription_id'])}`
    const [, ended] = await Promise.all([
      shop.pay(opened['checkout_url']).catch(() => 'closed before it was shown'),
      shop.post(`${at}/cancel`, { at_period_end: false }),
    ])
    t.is(ended.status, 200, JSON.stringify(ended.body))
    const charge = await shop.chargeWhen(opened['charge_id'], ({ status }) => status !== 'pending')
    t.regex(String(charge['status']), /^(succeeded|failed)$/)
  }
  t.deepEqual(await shop.sums(), EVEN)
})

test('a former sandbox has no renewals and payouts of sandbox money in production', async (t) => {
  const shop = await fresh()
  await shop.bought()
  await shop.until('settlements', released(1))
  const opened = await subscribed(shop)
  await shop.pay(opened['checkout_url'])
  const id = String(opened['subscription_id'])
  await sql(running)`
    update tenants set environment = 'production' where id = ${shop.workspace.tenantId}`
  await shop.post(`subscriptions/${id}/simulate-renewal`, { outcome: 'succeed' })
  const renewals = (rows: Json[]) => rows.filter((one) => one['failure_code'] === 'sandbox_only')
  const charges = await shop.until('charges', (rows) => renewals(rows).length === 1)
  t.is(charges.filter(({ status }) => status === 'succeeded').length, 2, 'of the sandbox alone')
  t.is((await shop.post('payouts', { rail: 'sandbox', currency: 'USD' })).status, 201)
  const [payout] = await shop.until('payouts', ([one]) => one?.['status'] === 'failed')
  t.is(payout?.['failure_code'], 'sandbox_only')
  t.deepEqual(await shop.sums(), EVEN)
})

test('a payment without room in the ledger is refused before money is taken', async (t) => {
  const { checkout, pay, charge, bought, workspace, price, until } = await fresh()
  await bought()
  await until('settlements', released(1))
  const account = (balance: string) =>
    sql(
      running.db.database,
      `update ledger_accounts set balance_minor = ${balance}
       where tenant_id = $1 and account = 'clearing'`,
      [workspace.tenantId],
    )
  await account('8000000000000000 - 1998')
  const session = await checkout()
  const refused = await pay(session['checkout_url'])
  t.is(refused.status, 409)
  t.regex(refused.html, /cannot accept more payments[^<]*You were not charged/)
  t.like(await charge(session['charge_id']), { status: 'pending' })
  const other = await checkout({ price_id: await price({ currency: 'EUR' }) })
  t.is((await pay(other['checkout_url'])).status, 303, 'other books have room')
  await account('8000000000000000 - 1999')
  t.is((await pay(session['checkout_url'])).status, 303, 'the same page goes on')
  t.like(await charge(session['charge_id']), { status: 'succeeded' })
  const link = await sql(running)`
    select 1 from ledger_entries where tenant_id = ${workspace.tenantId}
    and subject_id = ${session['charge_id']} and kind = 'charge'`
  t.is(link.length, 1)
})

test('Location names the created resource', async (t) => {
  const { bought, until, api, token, productId, priceId } = await fresh()
  await bought()
  await until('settlements', released(1))
  for (const [path, body] of [
    ['products', { name: 'Pot' }],
    ['prices', { product_id: productId, amount_minor: 7, currency: 'USD' }],
    ['payment-links', { price_id: priceId }],
    ['payouts', { rail: 'sandbox', currency: 'USD' }],
    ['statements', { currency: 'USD' }],
  ] as const) {
    const made = await api.post(`/api/v1/commerce/${path}`, token, body).gives(201)
    const { id } = made.body
    const where = String(made.headers['location'])
    t.is(where, `/api/v1/commerce/${path}/${String(id)}`)
    const found = await api.get(where, token).gives(200)
    t.like(found.body, { id, created_at: made.body['created_at'] })
    t.is((await api.get(`/api/v1/commerce/${path}/nonsense`, token)).status, 404)
    t.is((await api.get(where)).status, 401)
  }
})
