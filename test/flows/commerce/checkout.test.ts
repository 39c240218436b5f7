/** Checkout over HTTP: catalog, checkout sessions, the payment page, and the merchant's view. */
import { randomUUID } from 'node:crypto'
import test from 'ava'
import type { Json } from '../../support/api.js'
import { openBrowser } from '../../support/pages/browser.js'
import { sql } from '../../support/storage/sql.js'
import { sharedService } from '../../support/service.js'
import { openShop, PUBLIC } from '../../support/commerce/shop.js'

const running = await sharedService('commerce')
const shop = await openShop(running)
const other = await openShop(running)
const { api, token } = shop

const errorsOf = (body: Json) => (body['errors'] as { pointer: string }[])[0]?.pointer

test('catalog items are created once per key, listed newest first, and deactivated', async (t) => {
  const key = { 'idempotency-key': randomUUID() }
  const json = { name: 'Kettle' }
  const made = await api.post('/api/v1/commerce/products', token, json, key).gives(201)
  t.is(made.headers['location'], `/api/v1/commerce/products/${String(made.body['id'])}`)
  const again = await api.post('/api/v1/commerce/products', token, json, key)
  t.is(again.headers['idempotency-replayed'], 'true')
  t.deepEqual(again.body, made.body)
  t.is((await api.post('/api/v1/commerce/products', token, { name: 'Pot' }, key)).status, 422)

  const { rows } = await api.list('/api/v1/commerce/products?limit=1', token)
  t.is(rows[0]?.['id'], made.body['id'])
  const off = { json: { active: false }, token }
  const at = `/api/v1/commerce/products/${String(made.body['id'])}`
  t.is((await api.call('PATCH', at, off)).body['active'], false)
  t.is((await api.call('PATCH', at, { ...off, token: other.token })).status, 404)
  t.is((await api.call('PATCH', '/api/v1/commerce/prices/nonsense', off)).status, 404)
})

test('a price needs whole minor units, an ISO 4217 currency and an existing product', async (t) => {
  const good = { product_id: shop.productId, amount_minor: 5, currency: 'USD' }
  for (const [bad, pointer] of [
    [{ amount_minor: 0 }, '#/amount_minor'],
    [{ amount_minor: 1.5 }, '#/amount_minor'],
    [{ amount_minor: 1e12 }, '#/amount_minor'],
    [{ amount_minor: '5' }, '#/amount_minor'],
    [{ currency: 'usd' }, '#/currency'],
    [{ currency: 'XXX' }, '#/currency'],
    [{ product_id: randomUUID() }, '#/product_id'],
    [{ product_id: other.productId }, '#/product_id'],
    [{ recurring: { interval: 'fortnight' } }, '#/recurring/interval'],
    [{ recurring: { interval: 'day', interval_count: 0 } }, '#/recurring/interval_count'],
  ] as const) {
    const { status, body } = await api.post('/api/v1/commerce/prices', token, { ...good, ...bad })
    t.is(status, 400, JSON.stringify(bad))
    t.is(errorsOf(body), pointer, JSON.stringify(body))
  }
})

test('metadata that would lose information is a 400 with a pointer', async (t) => {
  const at = `${PUBLIC}/checkout-sessions`
  for (const [body, pointer] of [
    [{ metadata: { order: 'a\0b' } }, '#/metadata/order'],
    [{ metadata: { order: ['\ud800'] } }, '#/metadata/order/0'],
    [{ metadata: { 'a\0b': 1 } }, '#/metadata'],
    [{ cancel_url: 'http://localhost:3000/\0' }, '#/cancel_url'],
  ] as const) {
    const { status, body: said } = await api.post(at, undefined, {
      price_id: shop.priceId,
      ...body,
    })
    t.is(status, 400, JSON.stringify(body))
    t.is(errorsOf(said), pointer, JSON.stringify(said))
  }
  for (const number of ['12345678901234567890', '-9007199254740992', '1e400']) {
    const answer = await fetch(running.baseUrl + at, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: `{"price_id":"${shop.priceId}","metadata":{"n":[0,${number}]}}`,
    })
    t.is(answer.status, 400, number)
    t.is(errorsOf((await answer.json()) as Json), '#/metadata/n/1', number)
  }
  const metadata = { n: [2 ** 53 - 1, 1.5, -0.1, 1e21, 6e23, 0.1 + 0.2, '12345678901234567890'] }
  const kept = await shop.checkout({ metadata })
  t.deepEqual((await shop.charge(kept['charge_id']))['metadata'], metadata)
  const { status, body } = await api.post('/api/v1/commerce/products', token, { name: 'T\0ea' })
  t.deepEqual([status, errorsOf(body)], [400, '#/name'])
  const turned = await api.post('/api/v1/commerce/products', token, { name: 'T\u202eea' })
  t.deepEqual([turned.status, errorsOf(turned.body)], [400, '#/name'])
})

test('commerce:read does not allow changes, other scopes allow nothing', async (t) => {
  const { key, tenantId } = shop.workspace
  const tokenOf = async (scope: string) =>
    String(
      (await api.login(key, { tenant_id: tenantId, agent_id: shop.workspace.agentId }, scope)).body[
        'access_token'
      ],
    )
  const reader = await tokenOf('commerce:read')
  t.is((await api.get('/api/v1/commerce/charges', reader)).status, 200)
  t.is((await api.post('/api/v1/commerce/products', reader, { name: 'No' })).status, 403)
  const stranger = await tokenOf('vault:list')
  t.is((await api.get('/api/v1/commerce/charges', stranger)).status, 403)
  t.is((await api.get('/api/v1/commerce/charges')).status, 401)
})

test('a buyer checks out and pays, and merchant, page and return URL agree', async (t) => {
  const session = await shop.checkout({
    quantity: 3,
    success_url: 'https://shop.example/thanks?order=7',
    cancel_url: 'https://shop.example/basket',
    customer_email: 'ada@example.com',
    buyer_country: 'US',
    buyer_region: 'CA',
    metadata: { order: 7 },
  })
  t.like(session, { status: 'open', amount_minor: 5997, currency: 'USD' })
  t.true(String(session['checkout_url']).startsWith(`${running.baseUrl}/pay/`))
  const left = new Date(String(session['expires_at'])).getTime() - Date.now()
  t.true(left > 86_000_000 && left <= 86_400_000)
  t.like(await shop.charge(session['charge_id']), {
    status: 'pending',
    metadata: { order: 7 },
    price_id: shop.priceId,
    product_id: shop.productId,
  })

  const path = new URL(String(session['checkout_url'])).pathname
  const browser = openBrowser(running)
  const shown = await browser.get(path).gives(200)
  t.regex(shown.html, /Tea × 3/)
  t.regex(shown.html, /\$59\.97/)
  t.regex(shown.html, /value="ada@example\.com"/)
  t.regex(String(shown.headers['content-security-policy']), /form-action 'self' https:;/)
  t.is(shown.headers['cache-control'], 'no-store')
  t.false(shown.html.includes('<script'))

  const paid = await browser.submit(shown, { outcome: 'succeed', customer_email: '' }).gives(303)
  t.is(
    paid.location,
    `https://shop.example/thanks?order=7&charge_id=${String(session['charge_id'])}`,
  )
  const charge = await shop.charge(session['charge_id'])
  t.like(charge, { status: 'succeeded', rail: 'sandbox', customer_email: 'ada@example.com' })
  t.truthy(charge['paid_at'])
  const done = await browser.get(path)
  t.regex(done.html, /data-state="succeeded"/)
  t.regex(done.html, /data-each>\$19\.99</)
  t.regex(done.html, /data-paid-on>[^<]*20\d\d[^<]*</)
  t.regex(done.html, /data-seller>[^<]+</)
  t.regex(done.html, /data-print hidden>Print the receipt</)
  t.true(done.html.includes(String(session['charge_id'])))
  t.is((await browser.submit(shown, { outcome: 'decline' })).status, 303, 'paid is paid')
  t.is((await shop.charge(session['charge_id']))['status'], 'succeeded')
})

test('a declined payment fails permanently and redirects to its page', async (t) => {
  const session = await shop.checkout({ cancel_url: 'https://shop.example/basket' })
  const refused = await shop.pay(session['checkout_url'], 'decline')
  t.is(refused.location, new URL(String(session['checkout_url'])).pathname)
  t.like(await shop.charge(session['charge_id']), {
    status: 'failed',
    failure_code: 'card_declined',
  })
  t.regex((await openBrowser(running).get(refused.location!)).html, /data-state="failed"/)
})

test('of concurrent payments of one page, one reaches the payment provider', async (t) => {
  const session = await shop.checkout()
  const path = new URL(String(session['checkout_url'])).pathname
  const browser = openBrowser(running)
  const shown = await browser.get(path)
  const outcomes = ['succeed', 'decline', 'dispute']
  await Promise.all(
    Array.from({ length: 24 }, (_, index) =>
      browser.submit(shown, { outcome: outcomes[index % 3]! }),
    ),
  )
  const events = await sql<{ type: string }>(running)`
    select type from all_events where data ->> 'charge_id' = ${session['charge_id']}
    and type like 'commerce.payment.%'
    order by sequence`
  t.is(events.length, 2, JSON.stringify(events))
  const books = await sql(running)`
    select 1 from sandbox_payments where id = ${session['charge_id']}`
  t.is(books.length, 1)
})

test('a checkout is created once per key, and invalid members are refused with a pointer', async (t) => {
  const key = { 'idempotency-key': randomUUID() }
  const json = { price_id: shop.priceId }
  const path = `${PUBLIC}/checkout-sessions`
  const first = await api.post(path, undefined, json, key)
  const second = await api.post(path, undefined, json, key)
  t.is(second.headers['idempotency-replayed'], 'true')
  t.deepEqual(second.body, first.body)

  const recurring = await shop.price({ recurring: { interval: 'month' } })
  const off = await shop.price()
  await api.patch(`/api/v1/commerce/prices/${off}`, token, { active: false })
  const circular = 'x'.repeat(9000)
  for (const [bad, error, pointer] of [
    [{ price_id: randomUUID() }, 'invalid_price', '#/price_id'],
    [{ price_id: 'nonsense' }, 'invalid_price', '#/price_id'],
    [{ price_id: recurring }, 'invalid_price', '#/price_id'],
    [{ price_id: off }, 'invalid_price', '#/price_id'],
    [{ quantity: 0 }, 'bad_request', '#/quantity'],
    [{ quantity: 1000 }, 'bad_request', '#/quantity'],
    [{ quantity: 1.5 }, 'bad_request', '#/quantity'],
    [{ customer_email: 'invalid' }, 'invalid_buyer', '#/customer_email'],
    [{ buyer_country: 'XX' }, 'invalid_buyer', '#/buyer_country'],
    [{ buyer_country: 'us' }, 'invalid_buyer', '#/buyer_country'],
    [{ buyer_country: 'US', buyer_region: '!' }, 'invalid_buyer', '#/buyer_region'],
    [{ metadata: { circular } }, 'bad_request', '#/metadata'],
    [{ metadata: [] }, 'bad_request', '#/metadata'],
    [{ success_url: 'https://evil.example/' }, 'redirect_host_not_allowed', '#/success_url'],
    [{ cancel_url: 'https://shop.example:444/' }, undefined, undefined],
    [{ success_url: 'https://pay.example/' }, 'redirect_host_not_allowed', '#/success_url'],
    [{ success_url: 'https://pay.example:8443/' }, undefined, undefined],
    [{ success_url: 'http://shop.example/' }, 'bad_request', '#/success_url'],
    [{ success_url: 'https://shop.example@evil.example/' }, 'bad_request', '#/success_url'],
    [{ success_url: 'https://shop.example\\@evil.example/' }, 'bad_request', '#/success_url'],
    [{ success_url: 'javascript:alert(1)' }, 'bad_request', '#/success_url'],
    [{ success_url: '//evil.example' }, 'bad_request', '#/success_url'],
    [{ success_url: 'http://localhost:3000/done' }, undefined, undefined],
  ] as const) {
    const { status, body } = await api.post(path, undefined, { ...json, ...bad })
    t.is(status, error === undefined ? 200 : 400, JSON.stringify([bad, body]))
    if (error === undefined) continue
    t.is(body['error'], error, JSON.stringify([bad, body]))
    t.is(errorsOf(body), pointer)
  }
  const big = await shop.price({ amount_minor: 999_999_999_999 })
  const { status, body } = await api.post(path, undefined, { price_id: big, quantity: 2 })
  t.deepEqual([status, errorsOf(body)], [400, '#/quantity'])
})

test('redirect hosts of the tenant settings are allowed, loopback in sandboxes only', async (t) => {
  const path = `${PUBLIC}/checkout-sessions`
  const json = { price_id: other.priceId, success_url: 'https://tea.example/done' }
  t.is((await api.post(path, undefined, json)).body['error'], 'redirect_host_not_allowed')
  const change = { checkout_redirect_hosts: ['TEA.example'] }
  const call = { token: other.token, json: change }
  const changed = await api.call('PATCH', '/api/v1/tenant/settings', call)
  t.deepEqual(changed.body['checkout_redirect_hosts'], ['tea.example'])
  t.is((await api.post(path, undefined, json)).status, 200)
  t.is((await api.post(path, undefined, { ...json, price_id: shop.priceId })).status, 400)
  for (const bad of ['https://tea.example', '*.example', 'tea.example/x', '']) {
    const refused = await api.patch('/api/v1/tenant/settings', other.token, {
      checkout_redirect_hosts: [bad],
    })
    t.is(refused.status, 400, bad)
  }
  const session = await other.checkout()
  await sql(running)`
    update tenants set environment = 'production' where id = ${other.workspace.tenantId}`
  const loopback = { ...json, success_url: 'http://localhost:3000/done' }
  t.is((await api.post(path, undefined, loopback)).body['error'], 'bad_request')
  const page = await openBrowser(running).get(new URL(String(session['checkout_url'])).pathname)
  t.false(page.html.includes('name="outcome"'), 'the sandbox rail is for sandboxes')
  const forced = await other.pay(session['checkout_url'])
  t.is(forced.status, 400)
  t.is(
    (
      await sql<{ status: string }>(running)`
        select status from charges where id = ${session['charge_id']}`
    )[0]?.status,
    'pending',
  )
})

test('an unknown page is 404, an expired one 410, and a cross-site form changes nothing', async (t) => {
  const browser = openBrowser(running)
  t.is((await browser.get(`/pay/${'A'.repeat(43)}`)).status, 404)
  t.is((await browser.get('/pay/nonsense')).status, 404)
  const session = await shop.checkout()
  const path = new URL(String(session['checkout_url'])).pathname
  await browser.post(path, { rail: 'sandbox', outcome: 'succeed' }).gives(403)
  const shown = await browser.get(path)
  const wrong = await browser.submit(shown, { customer_email: 'not an address' }).gives(400)
  t.regex(wrong.html, /aria-invalid="true"/)
  t.is((await browser.submit(shown, { rail: 'gold' })).status, 400)
  t.is((await shop.charge(session['charge_id']))['status'], 'pending')
  await sql(running)`
    update checkout_sessions set expires_at = now() - interval '1 second'
    where id = ${session['checkout_session_id']}`
  t.is((await browser.get(path)).status, 410)
  t.is((await browser.submit(shown, { outcome: 'succeed' })).status, 410)
  const ended = await shop.chargeWhen(session['charge_id'], ({ status }) => status === 'failed')
  t.is(ended['failure_code'], 'checkout_expired')
  t.is((await browser.get(path)).status, 410)
})

test('the token of a page is not stored in the database', async (t) => {
  const session = await shop.checkout()
  const page = new URL(String(session['checkout_url'])).pathname.slice('/pay/'.length)
  const rows = await sql<{ found: boolean }>(
    running.db.database,
    `select exists (select from checkout_sessions s where s::text like '%' || $1 || '%')
       or exists (select from all_events e where e::text like '%' || $1 || '%') as found`,
    [page],
  )
  t.false(rows[0]?.found)
})

test('a paid charge is settled: created, held while it clears, released, and the ledger balances', async (t) => {
  const session = await shop.checkout()
  await shop.pay(session['checkout_url'])
  const types = async () =>
    (
      await sql<{ type: string }>(running)`
        select type from all_events where data ->> 'charge_id' = ${session['charge_id']}
        order by sequence`
    ).map(({ type }) => type)
  for (let turn = 0; turn < 500 && (await types()).length < 5; turn += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  t.deepEqual(await types(), [
    'commerce.payment.pending',
    'commerce.payment.succeeded',
    'commerce.settlement.created',
    'commerce.settlement.held',
    'commerce.settlement.released',
  ])
  const disputed = await shop.checkout()
  await shop.pay(disputed['checkout_url'], 'dispute')
  t.like(await shop.charge(disputed['charge_id']), {
    status: 'succeeded',
    dispute: { status: 'opened' },
  })
  const [sums] = await sql<{ total: string; lines: string }>(
    running.db.database,
    `select (select sum(balance_minor)::text from ledger_accounts where tenant_id = $1) as total,
            (select sum(amount_minor)::text from ledger_lines where tenant_id = $1) as lines`,
    [shop.workspace.tenantId],
  )
  t.deepEqual(sums, { total: '0', lines: '0' })
})

test('without commerce.enabled the routes do not exist', async (t) => {
  const plain = await sharedService('plain')
  t.teardown(() => plain.end())
  const answer = await fetch(`${plain.baseUrl}${PUBLIC}/checkout-sessions`, { method: 'POST' })
  t.is(answer.status, 404)
  const capabilities = await fetch(`${plain.baseUrl}/api/v1/capabilities`)
  t.false((await capabilities.text()).includes('commerce.'))
  const { body } = await api.get('/api/v1/capabilities')
  const names = body['capabilities'] as string[]
  t.true(names.includes('commerce.checkout') && names.includes('commerce.subscriptions'))
})
