/** Checkouts and subscriptions paid from a wallet by x402. Those that a transfer pays: x402-watched. */
import test from 'ava'
import { x402HTTPClient } from '@x402/core/client'
import type { PaymentRequired } from '@x402/core/types'
import { wrapFetchWithPayment } from '@x402/fetch'
import type { PrivateKeyAccount } from 'viem/accounts'
import type { Json } from '../../support/api.js'
import { openBrowser } from '../../support/pages/browser.js'
import { NETWORK } from '../../support/commerce/chain.js'
import { sql } from '../../support/storage/sql.js'
import { sellerAt, until } from '../../support/commerce/seller.js'
import { PUBLIC } from '../../support/commerce/shop.js'
import { clientOf, encode, openShop } from '../../support/commerce/x402-shop.js'

/** Relies on its facilitator alone. */
const blind = await openShop({ profile: 'blind' })
const { chain } = blind
test.after.always(() => blind.close())

async function proofFor(who: PrivateKeyAccount, url: string): Promise<string> {
  const challenged = await fetch(url)
  const client = clientOf(who)
  const required = new x402HTTPClient(client).getPaymentRequiredResponse((name) =>
    challenged.headers.get(name),
  )
  return encode(await client.createPaymentPayload(required as PaymentRequired))
}

const post = (url: string, proof: string) =>
  fetch(url, { method: 'POST', headers: { 'payment-signature': proof } })

test('an agent pays a checkout session by x402, once', async (t) => {
  const shop = await sellerAt(blind)
  const session = await shop.checkout({ metadata: { order: 'A-1' } })
  const url = String(session['x402_url'])
  t.true(url.startsWith(`${blind.running.baseUrl}${PUBLIC}/checkout-sessions/`))
  t.false(url.includes(new URL(String(session['checkout_url'])).pathname.slice(5)), 'no page token')
  const who = await blind.buyer(2)
  const paying = wrapFetchWithPayment(fetch, clientOf(who))
  const paid = await paying(url, { method: 'POST' })
  const body = (await paid.json()) as Json
  t.is(paid.status, 200, JSON.stringify(body))
  t.like(body, { charge_id: session['charge_id'], status: 'succeeded', metadata: { order: 'A-1' } })
  t.like(await shop.charge(session['charge_id']), {
    status: 'succeeded',
    rail: 'x402',
    buyer_id: `${NETWORK}:${who.address.toLowerCase()}`,
    checkout_session_id: session['checkout_session_id'],
  })
  t.deepEqual(await shop.events(session['charge_id']), [
    'commerce.payment.pending',
    'commerce.payment.succeeded',
  ])
  const shown = await shop.page(session)
  t.regex(shown.html, /data-state="succeeded"/)
  t.false(shown.html.includes('data-x402-to'))
  for (const answer of [await fetch(url), await fetch(url, { method: 'POST' })]) {
    t.is(answer.status, 409)
    t.is(((await answer.json()) as Json)['error'], 'checkout_not_open')
  }
  t.is((await chain.transfersTo(shop.payTo)).length, 1)
  const { rows } = await shop.api.list('/api/v1/commerce/x402-payments', shop.token)
  t.like(rows[0], { checkout_session_id: session['checkout_session_id'], state: 'settled' })
  t.is(rows[0]?.['payment_link_id'], undefined)
})

test('of buyers who pay one session at the same moment one pays', async (t) => {
  const shop = await sellerAt(blind)
  const session = await shop.checkout()
  const url = String(session['x402_url'])
  const buyers = await Promise.all(Array.from({ length: 5 }, () => blind.buyer(1)))
  const proofs = await Promise.all(buyers.map((who) => proofFor(who, url)))
  const answers = await Promise.all(
    proofs.map(async (proof) => ({ proof, status: (await post(url, proof)).status })),
  )
  t.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 409, 409, 409, 409])
  t.is((await chain.transfersTo(shop.payTo)).length, 1)
  for (const { proof, status } of answers) t.is((await post(url, proof)).status, status)
  const other = await shop.checkout()
  const winner = answers.find(({ status }) => status === 200)!.proof
  t.is((await post(String(other['x402_url']), winner)).status, 402, 'a proof pays one session')
  t.is((await shop.charge(other['charge_id']))['status'], 'pending')
})

test('a payment that fails leaves the session open for the next', async (t) => {
  const shop = await sellerAt(blind)
  const session = await shop.checkout()
  const url = String(session['x402_url'])
  const proof = await proofFor(await blind.buyer(1), url)
  blind.facilitator.mischiefs.set(shop.payTo, ({ operation }) =>
    operation === 'settle'
      ? { success: false, errorReason: 'insufficient_funds', transaction: '', network: NETWORK }
      : undefined,
  )
  const failed = await post(url, proof)
  blind.facilitator.mischiefs.delete(shop.payTo)
  t.is(failed.status, 402)
  t.is((await shop.charge(session['charge_id']))['status'], 'pending')
  t.regex((await shop.page(session)).html, /data-x402-to/)
  t.is((await post(url, proof)).status, 402, 'the same proof hears it again')
  const next = await post(url, await proofFor(await blind.buyer(1), url))
  t.is(next.status, 200, await next.text())
  t.deepEqual(await shop.events(session['charge_id']), [
    'commerce.payment.pending',
    'commerce.payment.succeeded',
  ])
})

test('a session whose outcome is unknown cannot be paid a second time', async (t) => {
  const shop = await sellerAt(blind)
  const session = await shop.checkout()
  const url = String(session['x402_url'])
  const proof = await proofFor(await blind.buyer(1), url)
  const second = await proofFor(await blind.buyer(1), url)
  blind.facilitator.mischiefs.set(shop.payTo, async ({ operation }, honest) =>
    operation === 'settle'
      ? { ...(await honest()), success: false, errorReason: 'unexpected_settle_error' }
      : undefined,
  )
  t.is((await post(url, proof)).status, 503)
  t.is((await post(url, second)).status, 409)
  t.regex((await shop.page(session)).html, /data-state="processing"/)
  blind.facilitator.mischiefs.delete(shop.payTo)
  t.is((await chain.transfersTo(shop.payTo)).length, 1)
})

test('the page shows the terms; where the chain is not watched it says that it sees no transfer', async (t) => {
  const shop = await sellerAt(blind)
  const session = await shop.checkout()
  const { html } = await shop.page(session)
  t.true(html.includes(`<code data-x402-to>${shop.payTo}</code>`))
  t.true(html.includes(`<code data-x402-asset>${chain.token}</code>`))
  t.regex(html, /data-x402-amount><strong>19\.99<\/strong> Test USDC</)
  t.regex(html, /data-x402-network>Base Sepolia</)
  t.true(html.includes(`<code data-x402-url>${String(session['x402_url'])}</code>`))
  const wallet = `ethereum:${chain.token}@84532/transfer?address=${shop.payTo}&amp;uint256=19990000`
  const offersWallet = (page: string) =>
    page.includes(`href="${wallet}"`) && page.includes('class="qr"')
  t.true(offersWallet(html))
  t.regex(html, /data-x402-unseen/)
  t.false(html.includes('check again'), 'the page waits for nothing')
  t.false(html.includes('No payment method is available'))
  t.false(html.includes('<form'), 'there is no rail to choose')
  const link = await shop.make('payment-links', { price_id: shop.priceId })
  const browser = openBrowser(blind.running)
  const linked = await browser.get(new URL(String(link['url'])).pathname)
  t.true(linked.html.includes(`<code data-x402-to>${shop.payTo}</code>`))
  t.true(offersWallet(linked.html))
  t.regex(linked.html, new RegExp(`payment-links/${String(link['token'])}/x402</code>`))
  const begun = await browser.submit(linked, {})
  t.is(begun.status, 303, 'one form leads to the checkout')
})

test('what was paid by x402 is given back by its merchant, and recorded', async (t) => {
  const shop = await sellerAt(blind)
  const session = await shop.checkout()
  const url = String(session['x402_url'])
  t.is((await post(url, await proofFor(await blind.buyer(1), url))).status, 200)
  const id = String(session['charge_id'])
  const at = `/api/v1/commerce/charges/${id}`
  const refund = (json: Json, headers = {}) =>
    shop.api.post(`${at}/refund`, shop.token, json, headers)
  const bare = await refund({ amount_minor: 500 }).gives(400)
  t.is((bare.body['errors'] as { pointer: string }[])[0]?.pointer, '#/external_reference')
  t.is((await refund({ external_reference: 'x'.repeat(256) })).status, 400)
  t.is((await refund({ external_reference: '0xaa', amount_minor: 2000 })).status, 400)
  const key = { 'idempotency-key': 'refund-1' }
  const json = { amount_minor: 500, external_reference: '0xaa', reason: 'chipped' }
  const first = await refund(json, key).gives(200)
  t.like(first.body, { status: 'refunded', refunded_amount_minor: 500 })
  t.like(first.body['refund'], {
    status: 'recorded',
    amount_minor: 500,
    external_reference: '0xaa',
    reason: 'chipped',
  })
  t.deepEqual((await refund(json, key)).body, first.body, 'recorded once')
  const many = await Promise.all(
    Array.from({ length: 5 }, () => refund({ amount_minor: 700, external_reference: '0xbb' })),
  )
  t.deepEqual(many.map(({ status }) => status).toSorted(), [200, 200, 400, 400, 400])
  const rest = await refund({ external_reference: '0xcc' })
  t.is((rest.body['refund'] as Json)['amount_minor'], 99)
  const { rows } = await shop.api.list(`${at}/refunds`, shop.token)
  t.deepEqual(
    rows.map(({ amount_minor: minor, status }) => [minor, status]),
    [500, 700, 700, 99].map((minor) => [minor, 'recorded']),
  )
  const told = await sql<{ data: Json }>(blind.running)`
    select data from all_events where tenant_id = ${shop.workspace.tenantId}
    and type = 'commerce.payment.refunded'
    order by sequence`
  t.is(told.length, 4)
  t.like(told[0]!.data, {
    charge_id: id,
    refunded_amount_minor: 500,
    refund_amount_minor: 500,
    external_reference: '0xaa',
  })
  const [books] = await sql<{ total: string }>(blind.running)`
    select coalesce(sum(abs(balance_minor)), 0)::text as total from ledger_accounts
    where tenant_id = ${shop.workspace.tenantId}`
  t.is(books!.total, '0', 'the money went past the books')
  const stranger = await sellerAt(blind)
  t.is((await stranger.api.get(`${at}/refunds`, stranger.token)).status, 404)
})

test('a subscription renews by invoices that its buyer pays by x402', async (t) => {
  const shop = await sellerAt(blind, 'sandbox')
  const priceId = await shop.price({ recurring: { interval: 'month' } })
  const opened = await shop.api.post(`${PUBLIC}/subscription-checkout-sessions`, undefined, {
    price_id: priceId,
    customer_email: 'ada@example.com',
    metadata: { plan: 'a' },
  })
  t.is(opened.status, 200)
  const who = await blind.buyer(5)
  const pay = async (url: unknown) => post(String(url), await proofFor(who, String(url)))
  const begun = await pay(opened.body['x402_url'])
  t.is(begun.status, 200, await begun.text())
  const at = `/api/v1/commerce/subscriptions/${String(opened.body['subscription_id'])}`
  const read = async () => (await shop.api.get(at, shop.token)).body
  t.like(await read(), { status: 'active', period: 1 })
  const invoices = () =>
    sql<{ data: Json }>(blind.running)`
      select data from all_events where tenant_id = ${shop.workspace.tenantId}
      and type = 'commerce.payment.pending'
      and data ? 'invoice_url' order by sequence`
  const renew = () => shop.api.post(`${at}/simulate-renewal`, shop.token, { outcome: 'succeed' })
  t.is((await renew()).status, 200)
  const [first] = await until(invoices, (rows) => rows.length === 1)
  t.like(first!.data, {
    amount_minor: 1999,
    metadata: { plan: 'a' },
    customer_email: 'ada@example.com',
    subscription_id: opened.body['subscription_id'],
  })
  t.like(await read(), { status: 'active', period: 1 }, 'until it is paid')
  const browser = openBrowser(blind.running)
  const page = new URL(String(first!.data['invoice_url'])).pathname
  t.true((await browser.get(page)).html.includes(`<code data-x402-to>${shop.payTo}</code>`))
  await renew()
  t.is((await pay(first!.data['x402_url'])).status, 200)
  t.like(await read(), { status: 'active', period: 2 })
  t.regex((await browser.get(page)).html, /data-state="succeeded"/)
  t.is((await invoices()).length, 1, 'a period has one invoice')

  // Further invoices follow unpaid ones, then the subscription ends.
  await renew()
  for (const count of [2, 3, 4]) {
    const rows = await until(invoices, (found) => found.length === count)
    t.is(rows.length, count)
    const open = rows.at(-1)!.data
    t.is((await read())['status'], count === 2 ? 'active' : 'past_due')
    const lasts = Date.parse(String(open['invoice_expires_at'])) - Date.now()
    t.is(Math.round(lasts / 86_400_000), [1, 3, 5][count - 2]!)
    await sql(blind.running)`
      update checkout_sessions set expires_at = now() where charge_id = ${open['charge_id']}`
    await until(
      () => shop.charge(open['charge_id']),
      ({ status }) => status === 'failed',
    )
    t.is((await pay(open['x402_url']).catch(() => ({ status: 409 }))).status, 409)
  }
  t.is((await until(read, ({ status }) => status === 'canceled'))['status'], 'canceled')
  t.is((await invoices()).length, 4)
  t.is((await chain.transfersTo(shop.payTo)).length, 2)
})
