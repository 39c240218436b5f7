/** Subscriptions that renew with the saved card, and disputes at the provider. */
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { startCardProvider } from '../../support/commerce/card-provider.js'
import { cardShop } from '../../support/commerce/card-shop.js'
import { sql } from '../../support/storage/sql.js'
import { testService } from '../../support/service.js'
import { COMMERCE } from '../../support/commerce/shop.js'

const provider = await startCardProvider()
const running = await testService({ environment: { ...COMMERCE, ...provider.environment } })
const { fresh, close } = cardShop(running, provider)
test.after.always(async () => {
  await close()
  await provider.close()
})
test.beforeEach(() => {
  provider.mishap = () => 'none'
  provider.card = 'succeed'
})

const monthly = { recurring: { interval: 'month' }, amount_minor: 900 }

async function begun() {
  const shop = await fresh()
  const { id, chargeId } = await shop.subscribed(await shop.price(monthly))
  const charges = () =>
    sql<{ id: string; status: string; code: string | null }>(running)`
      select id, status, failure_code as code from charges
      where tenant_id = ${shop.workspace.tenantId} and subscription_id = ${id}
      order by created_at, id`
  return { ...shop, id, chargeId, charges }
}

test.serial(
  'the first payment saves the card, and renewals are charged to it off-session',
  async (t) => {
    const shop = await begun()
    const { id, chargeId } = shop
    t.like(await shop.subscription(id), { status: 'active', period: 1 })
    const asked = provider.pageOf(chargeId)['asked'] as Record<string, unknown>
    t.is(asked['customer_creation'], 'always')
    t.like(asked['payment_intent_data'], { setup_future_usage: 'off_session' })
    const [first] = provider.paymentsOf(chargeId)
    await shop.makeDue('subscriptions')
    await shop.subscriptionWhen(id, ({ period }) => period === 2)
    const renewal = (await shop.charges()).at(-1)!
    t.is(renewal.status, 'succeeded')
    const [payment, ...more] = provider.paymentsOf(renewal.id)
    t.is(more.length, 0)
    t.like(payment, {
      status: 'succeeded',
      amount: 900,
      customer: first!['customer'],
      payment_method: first!['payment_method'],
    })
    const confirmed = provider.calls.find(({ path }) => path.endsWith(`${payment!.id}/confirm`))
    t.is(confirmed?.fields['off_session'], 'true')
    t.deepEqual(await shop.books(), { total: '0', clearing: '1800', unbalanced: 0 })
  },
)

for (const [card, code] of [
  ['decline', 'insufficient_funds'],
  ['authenticate', 'authentication_required'],
] as const) {
  test.serial(
    `a renewal whose card says ${card} is tried again, and cannot be paid behind our back`,
    async (t) => {
      const shop = await begun()
      provider.card = card
      await shop.makeDue('subscriptions')
      await shop.subscriptionWhen(shop.id, ({ status }) => status === 'past_due')
      const failed = (await shop.charges()).at(-1)!
      t.like(failed, { status: 'failed', code })
      t.is(provider.paymentsOf(failed.id)[0]!['status'], 'canceled')
      provider.card = 'succeed'
      await shop.makeDue('subscriptions')
      await shop.subscriptionWhen(
        shop.id,
        ({ status, period }) => status === 'active' && period === 2,
      )
      t.deepEqual(
        (await shop.charges()).map(({ status }) => status),
        ['succeeded', 'failed', 'succeeded'],
      )
      t.deepEqual(await shop.books(), { total: '0', clearing: '1800', unbalanced: 0 })
    },
  )
}

for (const mishap of ['hang_before', 'hang_after', 'error_before', 'error_after'] as const) {
  test.serial(`a renewal of unknown outcome is charged once (${mishap})`, async (t) => {
    const shop = await begun()
    const struck: string[] = []
    provider.mishap = ({ method, path }) => {
      if (method !== 'POST' || !path.startsWith('/v1/payment_intents')) return 'none'
      struck.push(path)
      // The creation first, then the confirmation.
      return struck.length === 1 || path.endsWith('/confirm') ? mishap : 'none'
    }
    // After its renewal it is not due again.
    const due = () =>
      sql(running)`update subscriptions set due_at = now() where id = ${shop.id} and period = 1`
    for (let turn = 0; turn < 200 && struck.length < 3; turn += 1) {
      await due()
      await sleep(50)
    }
    provider.mishap = () => 'none'
    t.true(struck.length >= 2)
    for (let turn = 0; turn < 100; turn += 1) {
      if ((await shop.subscription(shop.id))['period'] !== 1) break
      await due()
      await sleep(100)
    }
    await shop.subscriptionWhen(shop.id, ({ period }) => period === 2)
    const renewal = (await shop.charges()).at(-1)!
    const paid = provider.paymentsOf(renewal.id).filter(({ status }) => status === 'succeeded')
    t.is(paid.length, 1)
    t.deepEqual(await shop.books(), { total: '0', clearing: '1800', unbalanced: 0 })
  })
}

test.serial('a renewal that the provider settles later is completed by its webhook', async (t) => {
  const shop = await begun()
  provider.card = 'process'
  await shop.makeDue('subscriptions')
  const pending = async () => (await shop.charges()).find(({ status }) => status === 'pending')
  for (let turn = 0; turn < 200; turn += 1) {
    const charge = await pending()
    if (charge !== undefined && provider.paymentsOf(charge.id)[0]?.['status'] === 'processing')
      break
    await sleep(20)
  }
  const charge = (await pending())!
  provider.settlePayment(provider.paymentsOf(charge.id)[0]!.id, 'succeeded')
  await shop.deliverAll()
  await shop.subscriptionWhen(shop.id, ({ period }) => period === 2)
  t.is((await shop.charge(charge.id))['status'], 'succeeded')
})

test.serial(
  'a subscription that ends closes the page of its first payment at the provider',
  async (t) => {
    const shop = await fresh()
    const priceId = await shop.price(monthly)
    const { body } = await shop.api.post(
      '/api/v1/public/commerce/subscription-checkout-sessions',
      undefined,
      { price_id: priceId, customer_email: 'ada@example.com' },
    )
    const { sent } = await shop.begin(body)
    const at = `/api/v1/commerce/subscriptions/${String(body['subscription_id'])}/cancel`
    t.is((await shop.api.post(at, shop.token, { at_period_end: false })).status, 200)
    t.like(await shop.chargeWhen(body['charge_id'], ({ status }) => status !== 'pending'), {
      status: 'failed',
    })
    t.throws(() => provider.buyerPays(sent.location), { message: /no page to pay/ })
  },
)

for (const outcome of ['won', 'lost'] as const) {
  test.serial(
    `a dispute that is ${outcome} ends the same, whatever the order of its webhooks`,
    async (t) => {
      const shop = await fresh()
      for (const order of ['in order', 'reversed', 'repeated'] as const) {
        const chargeId = await shop.bought()
        await shop.deliverAll()
        const payment = provider.paymentsOf(chargeId)[0]!
        const from = provider.events.length
        const dispute = provider.dispute(payment.id, 1500)
        if (order === 'in order') {
          await shop.deliverAll()
          t.like(await shop.untilRow('disputes', (row) => row['charge_id'] === chargeId), {
            status: 'opened',
            amount_minor: 1500,
          })
        }
        provider.closeDispute(dispute.id, outcome)
        const events = provider.events.slice(from)
        const told = order === 'reversed' ? events.toReversed() : [...events, ...events]
        for (const event of told) t.is(await provider.deliver(running, event), 200)
        const row = await shop.untilRow(
          'disputes',
          (one) => one['charge_id'] === chargeId && one['status'] === 'closed',
        )
        t.is(row['outcome'], outcome)
        const left = outcome === 'won' ? 1999 : 499
        await shop.untilRow(
          'settlements',
          (one) => one['charge_id'] === chargeId && one['status'] === 'released',
        )
        const { rows } = await shop.api.list('/api/v1/commerce/settlements', shop.token)
        t.is(rows.find((one) => one['charge_id'] === chargeId)?.['amount_minor'], left)
      }
      const clearing = String(3 * (outcome === 'won' ? 1999 : 499))
      t.deepEqual(await shop.books(), { total: '0', clearing, unbalanced: 0 })
    },
  )
}

test.serial('refunds made at the provider, and failed refunds, are booked once', async (t) => {
  const shop = await fresh()
  const chargeId = await shop.bought()
  const payment = provider.paymentsOf(chargeId)[0]!
  const refunded = (amount: number) =>
    shop.chargeWhen(chargeId, (charge) => (charge['refunded_amount_minor'] ?? 0) === amount)
  provider.refundByHand(payment.id, 300)
  await shop.deliverAll()
  t.like(await refunded(300), { status: 'refunded' })
  const byHand = [...provider.refunds.values()].at(-1)!
  const event = provider.events.findLast(({ type }) => type === 'refund.created')!
  const again = { body: event.body.replace(event.id, `${event.id}again`) }
  t.is(await provider.deliver(running, again), 200, 'another event about the same refund')

  const path = `/api/v1/commerce/charges/${chargeId}/refund`
  t.is((await shop.api.post(path, shop.token, { amount_minor: 500 })).status, 200)
  await shop.deliverAll()
  await refunded(800)
  const ours = [...provider.refunds.values()].at(-1)!
  provider.settleRefund(ours.id, 'failed')
  await shop.deliverAll()
  await refunded(300)
  provider.settleRefund(byHand.id, 'failed')
  await shop.deliverAll()
  t.like(await refunded(0), { status: 'succeeded' })
  t.deepEqual(await shop.books(), { total: '0', clearing: '1999', unbalanced: 0 })
  const rest = await shop.api.post(path, shop.token)
  t.like(rest, { status: 200, body: { refunded_amount_minor: 1999 } })
  await shop.deliverAll()
  const events = async () => sql(running)`select 1 from card_events where due_at is not null`
  for (let turn = 0; turn < 500 && (await events()).length > 0; turn += 1) await sleep(20)
  t.deepEqual(await events(), [], 'every webhook is done with')
  t.deepEqual(await shop.books(), { total: '0', clearing: '0', unbalanced: 0 })
})

test.serial('all that the provider has is in our books', async (t) => {
  const [row] = await sql<{ clearing: string }>(running)`
    select coalesce(sum(balance_minor), 0)::text as clearing from ledger_accounts
    where account = 'clearing' and rail = 'card'`
  t.is(row!.clearing, String(provider.held()))
})
