/** Payment links over HTTP: the API for programs and the page for people. */
import test from 'ava'
import type { Json } from '../../support/api.js'
import { openBrowser } from '../../support/pages/browser.js'
import { sql } from '../../support/storage/sql.js'
import { sharedService } from '../../support/service.js'
import { openShop, PUBLIC } from '../../support/commerce/shop.js'

const running = await sharedService('commerce')
const shop = await openShop(running)
const { api, token } = shop

const errorsOf = (body: Json) => (body['errors'] as { pointer: string }[])[0]?.pointer

test('a payment link needs no body, and its metadata cannot be overwritten', async (t) => {
  const link = await shop.make('payment-links', {
    price_id: shop.priceId,
    quantity: 2,
    metadata: { campaign: 'spring', source: 'link' },
  })
  const path = `${PUBLIC}/payment-links/${String(link['token'])}/checkout`
  const bare = await api.call('POST', path).gives(200)
  t.is(bare.body['amount_minor'], 3998)
  t.deepEqual(bare.body['metadata'], { campaign: 'spring', source: 'link' })
  t.deepEqual(bare.body['buyer_metadata'], {})
  const said = { source: 'mail', placements: 1000 }
  const merged = { campaign: 'spring', source: 'link', placements: 1000 }
  const named = await api.post(path, undefined, { quantity: 1, metadata: said })
  t.like(named.body, { metadata: merged, buyer_metadata: said })
  t.like(await shop.charge(named.body['charge_id']), {
    amount_minor: 1999,
    metadata: merged,
    buyer_metadata: said,
    payment_link_id: link['id'],
  })
  await shop.pay(named.body['checkout_url'])
  const told = await sql<{ type: string; data: Json }>(running)`
    select type, data from all_events
    where data ->> 'charge_id' = ${String(named.body['charge_id'])} order by sequence`
  t.deepEqual(
    told.slice(0, 2).map(({ type, data }) => [type, data['metadata'], data['buyer_metadata']]),
    [
      ['commerce.payment.pending', merged, said],
      ['commerce.payment.succeeded', merged, said],
    ],
  )
  const page = new URL(String(link['url'])).pathname
  t.is(link['url'], `${running.baseUrl}/pay/${String(link['token'])}`)
  await api.patch(`/api/v1/commerce/payment-links/${String(link['id'])}`, token, { active: false })
  t.is((await api.get(page)).status, 404, 'closed for browsers too')
  const closed = await api.call('POST', path)
  const never = await api.call('POST', `${PUBLIC}/payment-links/${'x'.repeat(32)}/checkout`)
  t.deepEqual([closed.status, never.status], [404, 404])
  t.is(closed.body['detail'], never.body['detail'])
  const recurring = await shop.price({ recurring: { interval: 'month' } })
  await api.post('/api/v1/commerce/payment-links', token, { price_id: recurring }).gives(400)
  const dear = await shop.price({ amount_minor: 999_999_999_999 })
  const much = { price_id: dear, quantity: 2 }
  const beyond = await api.post('/api/v1/commerce/payment-links', token, much)
  t.deepEqual([beyond.status, errorsOf(beyond.body)], [400, '#/quantity'])
})

test('the terms of a link are returned as they were given', async (t) => {
  const x402 = { network: 'eip155:8453', pay_to: '0x000000000000000000000000000000000000dEaD' }
  const link = await shop.make('payment-links', { price_id: shop.priceId, x402 })
  t.deepEqual(link['x402'], x402)
  const read = await api.get(`/api/v1/commerce/payment-links/${String(link['id'])}`, token)
  t.deepEqual(read.body['x402'], x402)
})

test('price and terms are formatted in the language of the page', async (t) => {
  const browser = openBrowser(running)
  const [monthly, rare] = [
    await shop.price({ recurring: { interval: 'month' } }),
    await shop.price({ amount_minor: 123_456, recurring: { interval: 'week', interval_count: 3 } }),
  ]
  const pageOf = async (price_id: string) => {
    const path = `${PUBLIC}/subscription-checkout-sessions`
    const json = { price_id, customer_email: 'ada@harbour.works' }
    const { body } = await api.post(path, undefined, json)
    return new URL(String(body['checkout_url'])).pathname
  }
  const [months, weeks] = [await pageOf(monthly), await pageOf(rare)]
  const shown = async (path: string, language: string) => {
    const { html } = await browser.get(path, { 'accept-language': language })
    const [, words = ''] = /data-total>(.*?)<\/dd>/.exec(html) ?? []
    return words.replaceAll(/<[^>]*>/g, '').replaceAll('\u00a0', ' ')
  }
  t.is(await shown(months, 'en'), '$19.99 every month')
  t.is(await shown(weeks, 'en'), '$1,234.56 every 3 weeks')
  t.is(await shown(months, 'de'), '19,99 $ monatlich')
  t.is(await shown(weeks, 'de'), '1.234,56 $ alle 3 Wochen')
  t.is(await shown(weeks, 'it'), '1234,56 USD ogni 3 settimane')
  t.is(await shown(weeks, 'ja'), '$1,234.56 3 週間ごと')
  t.is(await shown(weeks, 'ar'), '\u200f1,234.56 US$ كل \u20683 أسابيع\u2069')

  const link = await shop.make('payment-links', { price_id: shop.priceId })
  const page = new URL(String(link['url'])).pathname
  const speaking = (locale: string | null) =>
    api.patch('/api/v1/tenant/settings', token, { branding: { locale } })
  t.is((await speaking('de')).status, 200)
  t.teardown(() => speaking(null))
  t.is(await shown(page, 'sv'), '19,99 $', 'the language of the tenant, words and figures alike')
})

test('the page of a payment link opens a checkout for each buyer', async (t) => {
  const metadata = { campaign: 'poster' }
  const link = await shop.make('payment-links', { price_id: shop.priceId, quantity: 3, metadata })
  const browser = openBrowser(running)
  const page = new URL(String(link['url'])).pathname
  const count = async () =>
    (await api.list('/api/v1/commerce/charges?limit=200', token)).rows.filter(
      (charge) => charge['payment_link_id'] === link['id'],
    )
  const shown = await browser.get(page).gives(200)
  t.regex(shown.html, /data-product>Tea × 3</)
  t.regex(shown.html, /\$59\.97/)
  t.is((await count()).length, 0, 'looking at it begins nothing')

  const begun = await browser.submit(shown, {}).gives(303)
  const paying = await browser.get(begun.location!)
  t.regex(paying.html, /\$59\.97/)
  const [charge] = await count()
  t.like(charge, { status: 'pending', amount_minor: 5997, metadata })
  const paid = await browser.follow(await browser.submit(paying, { outcome: 'succeed' }))
  t.regex(paid.html, /data-state="succeeded"/)
  t.is((await shop.charge(charge!['charge_id']))['status'], 'succeeded')

  await browser.submit(await browser.get(page), {})
  t.is((await count()).length, 2, 'the next buyer has another one')
  await api.form(page, { rail: 'sandbox' }).gives(403)
})

test('an idempotency key of one buyer reveals nothing to another', async (t) => {
  const link = await shop.make('payment-links', { price_id: shop.priceId })
  const path = `${PUBLIC}/payment-links/${String(link['token'])}/checkout`
  const open = (key: string, address: string, json: Json = {}) =>
    api.call('POST', path, {
      json,
      headers: { 'idempotency-key': key, 'x-forwarded-for': address },
    })
  const [ada, bob] = ['203.0.113.7', '203.0.113.8']
  const first = await open('order-1', ada).gives(200)
  const strange = await open('order-1', bob).gives(200)
  t.is(strange.headers['idempotency-replayed'], undefined)
  t.not(strange.body['checkout_session_id'], first.body['checkout_session_id'])
  t.is((await open('order-1', bob, { quantity: 2 })).status, 422, 'their own key')

  const behind = await open('order-1', ada)
  t.is(behind.headers['idempotency-replayed'], 'true')
  t.is(behind.body['checkout_session_id'], first.body['checkout_session_id'])
  t.is(behind.body['checkout_url'], undefined, 'a neighbour at the address can guess the key')

  for (const key of [
    '0b9c2f0e-54ea-4a58-9a51-2f0f1a1f9e55',
    'a'.repeat(10) + 'Zx3_-QmN7pL2',
    '00112233445566778899aabbccddeeff',
  ]) {
    const opened = await open(key, ada)
    const again = await open(key, ada)
    t.deepEqual(again.body, opened.body, key)
    t.truthy(again.body['checkout_url'])
  }
  for (const key of [
    '0123456789abcdef0123456789abcde',
    'abcdefghijklmnopqrstu',
    'order/2026/11/23/0001!',
  ]) {
    await open(key, ada)
    t.is((await open(key, ada)).body['checkout_url'], undefined, key)
  }
})
