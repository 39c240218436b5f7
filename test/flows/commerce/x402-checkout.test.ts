/** Checkouts and subscriptions paid from a wallet: by x402, or by a transfer found on the chain. */
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { x402HTTPClient } from '@x402/core/client'
import type { PaymentRequired } from '@x402/core/types'
import { wrapFetchWithPayment } from '@x402/fetch'
import type { PrivateKeyAccount } from 'viem/accounts'
import type { Json } from '../../support/api.js'
import { openBrowser } from '../../support/pages/browser.js'
import { NETWORK, newAccount, startChain } from '../../support/commerce/chain.js'
import { sql } from '../../support/storage/sql.js'
import { COMMERCE, openShop as openTenant, PUBLIC } from '../../support/commerce/shop.js'
import { clientOf, encode, openShop, PRICE_ATOMIC } from '../../support/commerce/x402-shop.js'

const chain = await startChain()
/** Watches the chain for transfers. */
const watching = await openShop({ chain, environment: COMMERCE, monitor: true })
/** Relies on its facilitator alone. */
const blind = await openShop({ chain, environment: COMMERCE, rpc: false })
test.after.always(async () => {
  for (const { close } of [watching, blind]) await close()
  await chain.close()
})

type Service = typeof watching

/** A production tenant with a payee address of its own. */
async function seller(at: Service, environment = 'production') {
  const tenant = await openTenant(at.running)
  const payTo = newAccount().address
  const { status, body } = await tenant.api.call('PATCH', '/api/v1/tenant/settings', {
    token: tenant.token,
    json: { x402_pay_to: { [NETWORK]: payTo } },
  })
  if (status !== 200) throw new Error(JSON.stringify(body))
  await sql(at.running.db.database, 'update tenants set environment = $2 where id = $1', [
    tenant.workspace.tenantId,
    environment,
  ])
  const events = async (chargeId: unknown) =>
    (
      await sql<{ type: string }>(
        at.running.db.database,
        `select type from all_events where tenant_id = $1 and data ->> 'charge_id' = $2
         order by sequence`,
        [tenant.workspace.tenantId, String(chargeId)],
      )
    ).map(({ type }) => type)
  const page = async (session: Json) => {
    const browser = openBrowser(at.running)
    const shown = await browser.get(new URL(String(session['checkout_url'])).pathname)
    await browser.close()
    return shown
  }
  return { ...tenant, payTo, events, page }
}

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

test.serial('an agent pays a checkout session by x402, once', async (t) => {
  const shop = await seller(blind)
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

test.serial('of buyers who pay one session at the same moment one pays', async (t) => {
  const shop = await seller(blind)
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

test.serial('a payment that fails leaves the session open for the next', async (t) => {
  const shop = await seller(blind)
  const session = await shop.checkout()
  const url = String(session['x402_url'])
  const proof = await proofFor(await blind.buyer(1), url)
  blind.facilitator.mischief = ({ operation, paymentRequirements }) =>
    operation === 'settle' && paymentRequirements.payTo === shop.payTo
      ? { success: false, errorReason: 'insufficient_funds', transaction: '', network: NETWORK }
      : undefined
  const failed = await post(url, proof)
  blind.facilitator.mischief = undefined
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

test.serial('a session whose outcome is unknown cannot be paid a second time', async (t) => {
  const shop = await seller(blind)
  const session = await shop.checkout()
  const url = String(session['x402_url'])
  const proof = await proofFor(await blind.buyer(1), url)
  const second = await proofFor(await blind.buyer(1), url)
  blind.facilitator.mischief = async ({ operation, paymentRequirements }, honest) =>
    operation === 'settle' && paymentRequirements.payTo === shop.payTo
      ? { ...(await honest()), success: false, errorReason: 'unexpected_settle_error' }
      : undefined
  t.is((await post(url, proof)).status, 503)
  t.is((await post(url, second)).status, 409)
  t.regex((await shop.page(session)).html, /data-state="processing"/)
  blind.facilitator.mischief = undefined
  t.is((await chain.transfersTo(shop.payTo)).length, 1)
})

test.serial(
  'the page shows the terms; where the chain is not watched it asks for no transfer',
  async (t) => {
    const shop = await seller(blind)
    const session = await shop.checkout()
    const { html } = await shop.page(session)
    t.true(html.includes(`<code data-x402-to>${shop.payTo}</code>`))
    t.true(html.includes(`<code data-x402-asset>${chain.token}</code>`))
    t.regex(html, /data-x402-amount><strong>19\.99<\/strong> Test USDC</)
    t.regex(html, /data-x402-network>Base Sepolia</)
    t.true(html.includes(`<code data-x402-url>${String(session['x402_url'])}</code>`))
    t.false(html.includes('ethereum:'))
    t.false(html.includes('No payment method is available'))
    t.false(html.includes('<form'), 'there is no rail to choose')
    const link = await shop.make('payment-links', { price_id: shop.priceId })
    const browser = openBrowser(blind.running)
    t.teardown(() => browser.close())
    const linked = await browser.get(new URL(String(link['url'])).pathname)
    t.true(linked.html.includes(`<code data-x402-to>${shop.payTo}</code>`))
    t.regex(linked.html, new RegExp(`payment-links/${String(link['token'])}/x402</code>`))
    const begun = await browser.submit(linked, {})
    t.is(begun.status, 303, 'one form leads to the checkout')
  },
)

async function until<T>(look: () => Promise<T>, fits: (found: T) => boolean): Promise<T> {
  for (let turn = 0; turn < 300; turn += 1) {
    const found = await look()
    if (fits(found)) return found
    await sleep(100)
  }
  return look()
}

/** The transfer that the wallet link of a page requests. */
function asked(html: string) {
  const found = /href="ethereum:(0x\w+)@(\d+)\/transfer\?address=(0x\w+)&amp;uint256=(\d+)"/.exec(
    html,
  )
  if (found === null) throw new Error('the page has no wallet link')
  const [, asset, chainId, payTo, amount] = found
  return { asset: asset!, chainId: Number(chainId), payTo: payTo!, amount: BigInt(amount!) }
}

test.serial(
  'a transfer of the amount on the page completes the checkout, and no other',
  async (t) => {
    const shop = await seller(watching)
    const [mine, other] = [await shop.checkout(), await shop.checkout()]
    const { html } = await shop.page(mine)
    t.regex(html, /<svg class="qr" role="img"/)
    t.regex(html, /Send exactly this amount/)
    const terms = asked(html)
    t.like(terms, { asset: chain.token, chainId: 84_532, payTo: shop.payTo })
    t.true(terms.amount > PRICE_ATOMIC && terms.amount < PRICE_ATOMIC + 10_000n, 'less than a cent')
    t.not(terms.amount, asked((await shop.page(other)).html).amount)
    const who = newAccount()
    await chain.mint(shop.payTo, PRICE_ATOMIC)
    await chain.mint(shop.payTo, terms.amount - 1n)
    const from = '0x0000000000000000000000000000000000000000'
    await chain.mint(who.address, terms.amount)
    t.is((await shop.charge(mine['charge_id']))['status'], 'pending')
    // Minting is a transfer from the zero address.
    await chain.mint(shop.payTo, terms.amount)
    const charge = await until(
      () => shop.charge(mine['charge_id']),
      ({ status }) => status === 'succeeded',
    )
    t.like(charge, { status: 'succeeded', rail: 'x402', buyer_id: `${NETWORK}:${from}` })
    t.regex((await shop.page(mine)).html, /data-state="succeeded"/)
    t.is((await shop.charge(other['charge_id']))['status'], 'pending')
    await chain.mint(shop.payTo, terms.amount)
    await sleep(5_000)
    t.is((await shop.charge(other['charge_id']))['status'], 'pending', 'sent twice pays once')
    t.deepEqual(await shop.events(mine['charge_id']), [
      'commerce.payment.pending',
      'commerce.payment.succeeded',
    ])
    const [books] = await sql<{ total: string }>(
      watching.running.db.database,
      `select coalesce(sum(abs(balance_minor)), 0)::text as total from ledger_accounts
     where tenant_id = $1`,
      [shop.workspace.tenantId],
    )
    t.is(books!.total, '0', 'the money went past the books')
  },
)

test.serial('a transfer for a checkout that ended is kept as surplus', async (t) => {
  const shop = await seller(watching)
  const session = await shop.checkout()
  const { amount } = asked((await shop.page(session)).html)
  const { database } = watching.running.db
  await sql(database, `update checkout_sessions set expires_at = now() where id = $1`, [
    session['checkout_session_id'],
  ])
  await until(
    () => shop.charge(session['charge_id']),
    ({ status }) => status === 'failed',
  )
  await chain.mint(shop.payTo, amount)
  const states = () =>
    sql<{ state: string }>(
      database,
      'select state from checkout_transfers where checkout_session_id = $1',
      [session['checkout_session_id']],
    )
  const ended = await until(states, ([row]) => row?.state === 'surplus')
  t.deepEqual(ended, [{ state: 'surplus' }])
  t.is((await shop.charge(session['charge_id']))['status'], 'failed')
})

test.serial('what was paid by x402 is given back by its merchant, and recorded', async (t) => {
  const shop = await seller(blind)
  const session = await shop.checkout()
  const url = String(session['x402_url'])
  t.is((await post(url, await proofFor(await blind.buyer(1), url))).status, 200)
  const id = String(session['charge_id'])
  const at = `/api/v1/commerce/charges/${id}`
  const refund = (json: Json, headers = {}) =>
    shop.api.post(`${at}/refund`, shop.token, json, headers)
  const bare = await refund({ amount_minor: 500 })
  t.is(bare.status, 400)
  t.is((bare.body['errors'] as { pointer: string }[])[0]?.pointer, '#/external_reference')
  t.is((await refund({ external_reference: 'x'.repeat(256) })).status, 400)
  t.is((await refund({ external_reference: '0xaa', amount_minor: 2000 })).status, 400)
  const key = { 'idempotency-key': 'refund-1' }
  const json = { amount_minor: 500, external_reference: '0xaa', reason: 'chipped' }
  const first = await refund(json, key)
  t.is(first.status, 200, JSON.stringify(first.body))
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
  const { database } = blind.running.db
  const told = await sql<{ data: Json }>(
    database,
    `select data from all_events where tenant_id = $1 and type = 'commerce.payment.refunded'
     order by sequence`,
    [shop.workspace.tenantId],
  )
  t.is(told.length, 4)
  t.like(told[0]!.data, {
    charge_id: id,
    refunded_amount_minor: 500,
    refund_amount_minor: 500,
    external_reference: '0xaa',
  })
  const [books] = await sql<{ total: string }>(
    database,
    `select coalesce(sum(abs(balance_minor)), 0)::text as total from ledger_accounts
     where tenant_id = $1`,
    [shop.workspace.tenantId],
  )
  t.is(books!.total, '0', 'the money went past the books')
  const stranger = await seller(blind)
  t.is((await stranger.api.get(`${at}/refunds`, stranger.token)).status, 404)
})

test.serial('a subscription renews by invoices that its buyer pays by x402', async (t) => {
  const shop = await seller(blind, 'sandbox')
  const priceId = await shop.price({ recurring: { interval: 'month' } })
  const opened = await shop.api.post(`${PUBLIC}/subscription-checkout-sessions`, undefined, {
    price_id: priceId,
    customer_email: 'ada@example.com',
    metadata: { plan: 'a' },
  })
  t.is(opened.status, 200, JSON.stringify(opened.body))
  const who = await blind.buyer(5)
  const pay = async (url: unknown) => post(String(url), await proofFor(who, String(url)))
  const begun = await pay(opened.body['x402_url'])
  t.is(begun.status, 200, await begun.text())
  const at = `/api/v1/commerce/subscriptions/${String(opened.body['subscription_id'])}`
  const read = async () => (await shop.api.get(at, shop.token)).body
  t.like(await read(), { status: 'active', period: 1 })

  const { database } = blind.running.db
  const invoices = () =>
    sql<{ data: Json }>(
      database,
      `select data from all_events where tenant_id = $1 and type = 'commerce.payment.pending'
         and data ? 'invoice_url' order by sequence`,
      [shop.workspace.tenantId],
    )
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
  t.teardown(() => browser.close())
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
    await sql(database, 'update checkout_sessions set expires_at = now() where charge_id = $1', [
      open['charge_id'],
    ])
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
