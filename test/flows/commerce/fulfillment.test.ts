/** The fulfillment lookup: which secrets authorize it, and that secrets stay secret. */
import { randomUUID } from 'node:crypto'
import test from 'ava'
import { sql } from '../../support/storage/sql.js'
import { sharedService } from '../../support/service.js'
import { openShop, PUBLIC, type Shop } from '../../support/commerce/shop.js'

const running = await sharedService('commerce')
const shop = await openShop(running)
const other = await openShop(running)

async function subscribed(at: Shop, types: readonly string[], secret?: string) {
  const { body } = await at.api.post('/api/v1/webhooks', at.token, {
    url: 'https://receiver.example/svc',
    event_types: types,
    ...(secret === undefined ? {} : { secret }),
  })
  return { id: String(body['id']), secret: secret ?? String(body['secret']) }
}

const look = (chargeId: unknown, secret?: string) =>
  shop.api.call('GET', `${PUBLIC}/fulfillment/${String(chargeId)}`, {
    headers: secret === undefined ? {} : { 'x-svc-fulfillment-secret': secret },
  })

test('a secret of a payment subscription authorizes charges of its tenant only', async (t) => {
  const session = await shop.checkout({ metadata: { order: 'A7' }, customer_email: 'a@b.example' })
  const mine = await subscribed(shop, ['commerce.payment.*'])
  const theirs = await subscribed(other, ['commerce.payment.succeeded'])
  const seen = await look(session['charge_id'], mine.secret).gives(200)
  t.is(seen.headers['cache-control'], 'no-store')
  t.like(seen.body, {
    charge_id: session['charge_id'],
    tenant_id: shop.workspace.tenantId,
    status: 'pending',
    amount_minor: 1999,
    currency: 'USD',
    metadata: { order: 'A7' },
    price_id: shop.priceId,
    product_id: shop.productId,
    customer_email: 'a@b.example',
  })
  t.is((await look(session['charge_id'], theirs.secret)).status, 404, 'of another tenant')
  t.is((await look(randomUUID(), mine.secret)).status, 404)
  t.is((await look('nonsense', mine.secret)).status, 404)
  for (const wrong of [
    undefined,
    '',
    'x',
    'x'.repeat(300),
    mine.secret.slice(0, -1),
    `${mine.secret}x`,
    mine.secret.toLowerCase(),
  ]) {
    t.is((await look(session['charge_id'], wrong)).status, 401, wrong)
  }
  await shop.pay(session['checkout_url'])
  const paid = await look(session['charge_id'], mine.secret)
  t.is(paid.body['status'], 'succeeded')
  t.truthy(paid.body['paid_at'])
})

test('only active payment subscriptions authorize it, a rotated secret until its overlap ends', async (t) => {
  const { charge_id: charge } = await shop.checkout()
  const users = await subscribed(shop, ['tenant_user.*', 'commerce.payout.*'])
  t.is((await look(charge, users.secret)).status, 401)
  const everything = await subscribed(shop, ['*'], `own secret ${randomUUID()}`)
  t.is((await look(charge, everything.secret)).status, 200)

  const at = `/api/v1/webhooks/${everything.id}`
  const rotated = await shop.api.post(`${at}/rotate-secret`, shop.token, { overlap_secs: 3600 })
  t.is((await look(charge, String(rotated.body['secret']))).status, 200)
  t.is((await look(charge, everything.secret)).status, 200, 'while they overlap')
  await sql(running)`
    update webhooks set previous_secret_expires_at = now() - interval '1 second'
    where id = ${everything.id}`
  t.is((await look(charge, everything.secret)).status, 401, 'and not afterwards')

  const json = { url: 'https://receiver.example/svc', event_types: ['*'], active: false }
  await shop.api.put(at, shop.token, json)
  t.is((await look(charge, String(rotated.body['secret']))).status, 401)
  await shop.api.put(at, shop.token, { ...json, active: true })
  t.is((await look(charge, String(rotated.body['secret']))).status, 200)
  await shop.api.delete(at, shop.token)
  t.is((await look(charge, String(rotated.body['secret']))).status, 401)
})

test('a secret stored without a hint authorizes it, and gets a hint', async (t) => {
  const { charge_id: charge } = await shop.checkout()
  const { id, secret } = await subscribed(shop, ['commerce.*'])
  await sql(running)`update webhooks set secret_hint = null where id = ${id}`
  t.is((await look(charge, secret)).status, 200)
  const [row] = await sql<{ hint: number | null }>(running)`
    select secret_hint as hint from webhooks where id = ${id}`
  t.is(typeof row?.hint, 'number')
})

test('attempts are rate limited by address', async (t) => {
  const throttled = await sharedService('strict')
  t.teardown(() => throttled.end())
  const statuses: number[] = []
  for (let turn = 0; turn < 61; turn += 1) {
    const { status } = await fetch(`${throttled.baseUrl}${PUBLIC}/fulfillment/${randomUUID()}`, {
      headers: { 'x-svc-fulfillment-secret': 'guess guess guess guess' },
    })
    statuses.push(status)
  }
  t.is(statuses.filter((status) => status === 401).length, 60)
  t.is(statuses.at(-1), 429)
})
