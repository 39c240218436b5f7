/** Card payments in a production tenant: our payment page, the provider's page, and the return. */
import test from 'ava'
import { setTimeout as sleep } from 'node:timers/promises'
import { openBrowser } from '../../support/pages/browser.js'
import { startCardProvider } from '../../support/commerce/card-provider.js'
import { cardShop } from '../../support/commerce/card-shop.js'
import { testService } from '../../support/service.js'
import { COMMERCE, openShop } from '../../support/commerce/shop.js'

const provider = await startCardProvider()
const running = await testService({
  environment: {
    ...COMMERCE,
    ...provider.environment,
    SVC_COMMERCE__REDIRECT_HOSTS: 'shop.example',
  },
})
const { fresh, close } = cardShop(running, provider)
test.after.always(async () => {
  await close()
  await provider.close()
})
test.beforeEach(() => {
  provider.mishap = () => 'none'
  provider.pageOrigin = null
  provider.refundState = 'succeeded'
})

test.serial(
  'a buyer pays by card on the provider page, and the webhook completes the charge',
  async (t) => {
    const shop = await fresh()
    const opened = await shop.checkout({
      quantity: 2,
      success_url: 'https://shop.example/thanks',
      customer_email: 'ada@example.com',
    })
    const chargeId = String(opened['charge_id'])
    const { browser, path, shown, sent } = await shop.begin(opened)
    t.regex(shown.html, /Pay by card/)
    t.false(shown.html.includes('value="sandbox"'), 'production tenants have no sandbox rail')
    t.is(sent.status, 303)
    t.regex(shown.headers['content-security-policy'] ?? '', /form-action 'self' https?:/)
    const page = provider.pageOf(chargeId)
    t.is(sent.location, String(page['url']))
    t.like(page['asked'], {
      mode: 'payment',
      client_reference_id: chargeId,
      customer_email: 'ada@example.com',
      success_url: running.baseUrl + path,
      cancel_url: running.baseUrl + path,
    })
    t.is(page['amount_total'], 3998)
    t.is((await shop.charge(chargeId))['status'], 'pending')

    provider.buyerPays(sent.location)
    await shop.deliverAll()
    const charge = await shop.chargeWhen(chargeId, ({ status }) => status !== 'pending')
    t.like(charge, { status: 'succeeded', rail: 'card', amount_minor: 3998 })
    const after = await browser.get(path)
    t.regex(after.html, /data-state="succeeded"/)
    t.deepEqual(await shop.books(), { total: '0', clearing: '3998', unbalanced: 0 })
    const held = await shop.untilRow('settlements', ({ status }) => status === 'held')
    t.like(held, { hold_reason: 'clearing', rail: 'card', amount_minor: 3998 })
    await shop.makeDue('settlements')
    await shop.untilRow('settlements', ({ status }) => status === 'released')
  },
)

test.serial('without webhooks the way back looks the payment up', async (t) => {
  const shop = await fresh()
  const opened = await shop.checkout()
  const { browser, path, sent } = await shop.begin(opened)
  provider.buyerPays(sent.location)
  const back = await browser.get(path)
  t.regex(back.html, /data-state="succeeded"/)
  t.is((await shop.charge(opened['charge_id']))['status'], 'succeeded')
  const looks = provider.count('GET', /sessions/)
  await browser.get(path)
  t.is(provider.count('GET', /sessions/), looks, 'what has ended is not asked for')
})

test.serial('a page that waits asks the provider at most once in five seconds', async (t) => {
  const shop = await fresh()
  const { browser, path } = await shop.begin(await shop.checkout())
  const before = provider.count('GET', /sessions/)
  for (let turn = 0; turn < 5; turn += 1) {
    t.regex((await browser.get(path)).html, /Continue to the payment page/)
  }
  t.true(provider.count('GET', /sessions/) - before <= 2)
})

test.serial('a buyer who comes back unpaid continues at the same page', async (t) => {
  const shop = await fresh()
  const opened = await shop.checkout()
  const { browser, path, sent } = await shop.begin(opened)
  const again = await browser.submit(await browser.get(path), { rail: 'card' })
  t.is(again.location, sent.location)
  t.is(
    [...provider.pages.values()].filter(
      (page) => page['client_reference_id'] === opened['charge_id'],
    ).length,
    1,
  )
  t.deepEqual((await browser.submit(await browser.get(path), { rail: 'sandbox' })).location, path)
})

test.serial('a page that the provider expired fails the charge', async (t) => {
  const shop = await fresh()
  const opened = await shop.checkout()
  const { browser, path } = await shop.begin(opened)
  provider.expirePage(provider.pageOf(opened['charge_id']).id)
  await shop.deliverAll()
  t.like(await shop.chargeWhen(opened['charge_id'], ({ status }) => status !== 'pending'), {
    status: 'failed',
    failure_code: 'checkout_expired',
  })
  t.regex((await browser.get(path)).html, /data-state="failed"/)
})

test.serial('a refusal of the provider fails the charge with its code', async (t) => {
  const shop = await fresh()
  const cheap = await shop.price({ amount_minor: 10 })
  const opened = await shop.checkout({ price_id: cheap })
  const { sent, path } = await shop.begin(opened)
  t.is(sent.location, path)
  t.like(await shop.charge(opened['charge_id']), {
    status: 'failed',
    failure_code: 'amount_too_small',
  })
})

test.serial(
  'a provider that hangs or fails leaves the payment pending, and the buyer continues',
  async (t) => {
    const shop = await fresh()
    for (const mishap of ['hang_before', 'hang_after', 'error_before', 'error_after'] as const) {
      const opened = await shop.checkout()
      const chargeId = opened['charge_id']
      provider.mishap = ({ method }) => (method === 'POST' ? mishap : 'none')
      const { browser, path, sent } = await shop.begin(opened)
      t.is(sent.location, path, mishap)
      t.is((await shop.charge(chargeId))['status'], 'pending', mishap)
      provider.mishap = () => 'none'
      const again = await browser.submit(await browser.get(path), { rail: 'card' })
      t.regex(again.location ?? '', /\/c\/pay\/cs_/, mishap)
      provider.buyerPays(again.location)
      t.regex((await browser.get(path)).html, /data-state="(succeeded|processing)"/, mishap)
      await shop.deliverAll()
      await shop.chargeWhen(chargeId, ({ status }) => status === 'succeeded')
      t.is(provider.paymentsOf(chargeId).length, 1, mishap)
    }
    t.deepEqual(await shop.books(), { total: '0', clearing: String(4 * 1999), unbalanced: 0 })
  },
)

test.serial('a buyer is sent to no host that is not listed', async (t) => {
  const shop = await fresh()
  for (const origin of ['https://evil.example', 'http://127.0.0.1:1', 'javascript:alert(1)//']) {
    provider.pageOrigin = origin
    const { sent, path } = await shop.begin(await shop.checkout())
    t.is(sent.location, path, origin)
  }
})

test.serial('an answer for another amount or charge is not believed', async (t) => {
  const shop = await fresh()
  for (const change of [
    { amount_total: 1 },
    { currency: 'eur' },
    { metadata: { svc_charge_id: 'other', svc_tenant_id: shop.workspace.tenantId } },
  ]) {
    const opened = await shop.checkout()
    const { browser, path, sent } = await shop.begin(opened)
    Object.assign(provider.pageOf(opened['charge_id']), change)
    provider.buyerPays(sent.location)
    await shop.deliverAll()
    t.regex((await browser.get(path)).html, /data-state="processing"/)
    await sleep(1_500)
    t.is((await shop.charge(opened['charge_id']))['status'], 'pending', JSON.stringify(change))
  }
})

test.serial('sandbox tenants keep the sandbox rail and are not offered cards', async (t) => {
  const shop = await openShop(running)
  const opened = await shop.checkout()
  const browser = openBrowser(running)
  const shown = await browser.get(new URL(String(opened['checkout_url'])).pathname)
  t.false(shown.html.includes('Pay by card'))
  t.is((await browser.submit(shown, { rail: 'card' })).status, 400)
  t.is((await shop.charge(opened['charge_id']))['status'], 'pending')
})

test.serial('an abandoned page is closed at the provider unless it was just paid', async (t) => {
  const shop = await fresh()
  const [left, late] = [await shop.checkout(), await shop.checkout()]
  await shop.begin(left)
  const { sent } = await shop.begin(late)
  provider.buyerPays(sent.location)
  await shop.expirePages()
  t.like(await shop.chargeWhen(left['charge_id'], ({ status }) => status !== 'pending'), {
    status: 'failed',
    failure_code: 'checkout_expired',
  })
  t.is(provider.pageOf(left['charge_id'])['status'], 'expired')
  await shop.chargeWhen(late['charge_id'], ({ status }) => status === 'succeeded')
})

test.serial(
  'each refund is made once at the provider, even when its response is lost',
  async (t) => {
    const shop = await fresh()
    const chargeId = await shop.bought()
    const refund = (amount: number) =>
      shop.api.post(`/api/v1/commerce/charges/${chargeId}/refund`, shop.token, {
        amount_minor: amount,
      })
    const done = await refund(500)
    t.like(done, { status: 200, body: { refunded_amount_minor: 500 } })
    for (const mishap of ['hang_before', 'hang_after', 'error_after'] as const) {
      provider.mishap = ({ method, path }) =>
        method === 'POST' && path === '/v1/refunds' ? mishap : 'none'
      t.is((await refund(100)).status, 200, mishap)
    }
    t.is((await shop.charge(chargeId))['refunded_amount_minor'], 500, 'not known yet')
    provider.mishap = () => 'none'
    await shop.makeDue('refunds')
    await shop.chargeWhen(chargeId, (charge) => charge['refunded_amount_minor'] === 800)
    t.is(provider.refunds.size, 4)

    provider.refundState = 'pending'
    t.is((await refund(50)).status, 200)
    const waiting = [...provider.refunds.values()].at(-1)!
    t.is((await shop.charge(chargeId))['refunded_amount_minor'], 800)
    provider.settleRefund(waiting.id, 'succeeded')
    await shop.deliverAll()
    await shop.chargeWhen(chargeId, (charge) => charge['refunded_amount_minor'] === 850)

    provider.refundState = 'failed'
    const failed = await refund(10)
    t.not(failed.status, 200)
    t.is((await shop.charge(chargeId))['refunded_amount_minor'], 850)
    t.deepEqual(await shop.books(), { total: '0', clearing: String(1999 - 850), unbalanced: 0 })
  },
)

test.serial('payouts of card balances are refused and stay available', async (t) => {
  const shop = await fresh()
  await shop.bought()
  await shop.untilRow('settlements', ({ status }) => status === 'held')
  await shop.makeDue('settlements')
  await shop.untilRow('settlements', ({ status }) => status === 'released')
  const answer = await shop.api.post('/api/v1/commerce/payouts', shop.token, {
    rail: 'card',
    currency: 'USD',
  })
  t.is(answer.status, 201)
  await shop.untilRow(
    'payouts',
    (row) => row['status'] === 'failed' && row['failure_code'] === 'payouts_not_supported',
  )
  const { rows } = await shop.api.list('/api/v1/commerce/balances', shop.token)
  t.like(rows[0], { available_minor: 1999, in_transit_minor: 0 })
})
