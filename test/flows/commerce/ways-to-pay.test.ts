/** The payment methods that a tenant offers, and the refusal where it offers none. */
import test from 'ava'
import { openBrowser } from '../../support/pages/browser.js'
import { sql } from '../../support/storage/sql.js'
import { sharedService } from '../../support/service.js'
import { openShop, PUBLIC } from '../../support/commerce/shop.js'

const running = await sharedService('commerce')
const shop = await openShop(running)
const { api } = shop

test('a checkout of a tenant without a payment method is refused and stores nothing', async (t) => {
  const monthly = await shop.price({ recurring: { interval: 'month' } })
  const link = await shop.make('payment-links', { price_id: shop.priceId })
  const once = { price_id: shop.priceId }
  const session = () => api.post(`${PUBLIC}/checkout-sessions`, undefined, once)
  t.is((await session()).status, 200, 'the sandbox rail')
  await sql(running)`
    update tenants set environment = 'production' where id = ${shop.workspace.tenantId}`
  const charges = async () => (await api.list('/api/v1/commerce/charges', shop.token)).rows.length
  const before = await charges()
  const key = { 'idempotency-key': 'order-of-the-day' }
  const again = { price_id: monthly, customer_email: 'ada@example.com' }
  const subscribe = `${PUBLIC}/subscription-checkout-sessions`
  const linked = `${PUBLIC}/payment-links/${String(link['token'])}/checkout`
  for (const answer of [
    await session(),
    await api.post(`${PUBLIC}/checkout-sessions`, undefined, once, key),
    await api.post(subscribe, undefined, again),
    await api.post(linked, undefined, {}),
  ]) {
    t.is(answer.status, 409, JSON.stringify(answer.body))
    t.is(answer.body['error'], 'payment_method_unavailable')
  }
  const browser = openBrowser(running)
  const shown = await browser.get(new URL(String(link['url'])).pathname).gives(200)
  t.regex(shown.html, /No payment method is available/)
  t.false(shown.html.includes('<button'))
  t.is(await charges(), before)

  await sql(running)`
    update tenants set environment = 'sandbox' where id = ${shop.workspace.tenantId}`
  const open = await browser.get(new URL(String(link['url'])).pathname)
  await sql(running)`
    update tenants set environment = 'production' where id = ${shop.workspace.tenantId}`
  const pressed = await browser.submit(open, {}).gives(409)
  t.regex(pressed.html, /No payment method is available/)
  await sql(running)`
    update tenants set environment = 'sandbox' where id = ${shop.workspace.tenantId}`
  const retried = await api.post(`${PUBLIC}/checkout-sessions`, undefined, once, key)
  t.is(retried.status, 200, 'a refusal uses no key up')
})
