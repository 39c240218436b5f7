/**
 * A merchant resolves a payment whose outcome neither the chain nor the facilitator reveals. Own services: no background work
 * runs.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { apiOf, type Json } from '../../support/api.js'
import type { Mischief } from '../../support/commerce/facilitator.js'
import { sql } from '../../support/storage/sql.js'
import { COMMERCE } from '../../support/commerce/shop.js'
import { decode, openShop, type Shop } from '../../support/commerce/x402-shop.js'

const environment = {
  ...COMMERCE,
  // Long enough that the reconciliation does not touch the payment.
  SVC_DEPLOYMENT__BACKGROUND_TASKS_ENABLED: 'false',
}
const AT = '/api/v1/commerce/x402-payments'
/** Has its facilitator only. */
const blind = await openShop({ environment, rpc: false })
/** Has a chain node. */
const seeing = await openShop({ environment })
const { chain } = blind
test.after.always(async () => {
  for (const { close } of [blind, seeing]) await close()
})

/** The payer's money moves, or not, and the facilitator closes the connection. */
const hangsUp = (settles: boolean): Mischief => {
  return async ({ operation }, honest, response) => {
    if (operation !== 'settle') return undefined
    if (settles) await honest()
    response.destroy()
    return null
  }
}

async function pending(t: ExecutionContext, at: Shop, settles: boolean) {
  const api = apiOf(at.running)
  const { token, tenantId } = await api.workspace('Tea House')
  const post = (path: string, body: Json) => api.post(`/api/v1/commerce/${path}`, token, body)
  const product = await post('products', { name: 'Tea' })
  const price = await post('prices', {
    product_id: product.body['id'],
    amount_minor: 1999,
    currency: 'USD',
  })
  const link = await at.link({ tenantId, priceId: String(price.body['id']) })
  const proof = await at.proof(await at.buyer(1), link)
  at.facilitator.mischiefs.set(link.payTo, hangsUp(settles))
  const answer = await at.charged(link, proof)
  at.facilitator.mischiefs.delete(link.payTo)
  t.is(answer.status, 503, answer.text)
  const chargeId = String(answer.body['charge_id'])
  const listed = await api.list(`${AT}?state=unknown`, token)
  t.is(listed.rows.length, 1)
  const payment = listed.rows[0]!
  t.like(payment, { charge_id: chargeId, state: 'unknown', pay_to: link.payTo.toLowerCase() })
  const resolve = (resolution: unknown, by = token) =>
    api.post(`${AT}/${String(payment['id'])}/resolve`, by, resolution)
  /** Simulates an authorization that expired long ago. */
  const runOut = () =>
    sql(at.running)`
      update x402_payments set valid_before = extract(epoch from now())::bigint - 61
      where tenant_id = ${tenantId}`
  const charge = async () => (await api.get(`/api/v1/commerce/charges/${chargeId}`, token)).body
  return { api, token, tenantId, link, proof, chargeId, payment, resolve, runOut, charge }
}

test('a payment resolved as settled updates the charge, its events and the buyer response', async (t) => {
  const { api, token, tenantId, link, proof, chargeId, resolve, charge } = await pending(
    t,
    blind,
    true,
  )
  const [paid] = await chain.transfersTo(link.payTo)
  const transaction = paid!.transaction
  for (const wrong of [
    {},
    { outcome: 'settled' },
    { outcome: 'settled', transaction: '0x12' },
    { outcome: 'gone' },
  ]) {
    t.is((await resolve(wrong)).status, 400, JSON.stringify(wrong))
  }
  const early = await resolve({ outcome: 'failed' })
  t.is(early.status, 409, 'its authorization can still be spent')
  t.regex(String(early.body['detail']), /can still be spent/)
  t.like(await charge(), { status: 'pending' })

  const answers = await Promise.all(
    Array.from({ length: 8 }, () => resolve({ outcome: 'settled', transaction })),
  )
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
  t.like(answers[0]!.body, { state: 'settled', transaction })
  t.is((await resolve({ outcome: 'failed' })).status, 409, 'settled is settled')
  t.like(await charge(), { status: 'succeeded', rail: 'x402' })
  const answer = await blind.final(link, proof)
  t.is(answer.status, 200, 'the same proof hears the final answer')
  t.is(decode(answer.headers.get('payment-response'))['transaction'], transaction)
  const told = await sql<{ type: string }>(blind.running)`
    select type from all_events where tenant_id = ${tenantId}
    and data ->> 'charge_id' = ${chargeId} order by sequence`
  t.deepEqual(
    told.map(({ type }) => type),
    ['commerce.payment.pending', 'commerce.payment.succeeded'],
  )
  const audit = await sql<{ data: Json; subject: Json }>(blind.running)`
    select data, subject from audit_events
    where tenant_id = ${tenantId} and type = 'commerce.x402_payment.resolved'`
  t.is(audit.length, 1, 'once, with who said so')
  t.like(audit[0]!.data, { charge_id: chargeId, outcome: 'settled', transaction })
  t.is((await api.list(`${AT}?state=unknown`, token)).rows.length, 0)
  t.is((await api.list(`${AT}?state=settled`, token)).rows.length, 1)
  t.is((await api.list(AT, token)).rows.length, 1)
})

test('failed, once the authorization cannot be spent any more', async (t) => {
  const { link, proof, resolve, runOut, charge } = await pending(t, blind, false)
  await runOut()
  const answer = await resolve({ outcome: 'failed' }).gives(200)
  t.like(answer.body, { state: 'failed', error_reason: 'unexpected_settle_error' })
  t.like(await charge(), { status: 'failed', failure_code: 'unexpected_settle_error' })
  t.is((await blind.final(link, proof)).status, 402)
  t.is((await resolve({ outcome: 'failed' })).status, 200, 'the same again')
})

test('where the chain can be asked, nothing is believed against it', async (t) => {
  const lost = await pending(t, seeing, false)
  const transaction = `0x${'ab'.repeat(32)}`
  const lie = await lost.resolve({ outcome: 'settled', transaction })
  t.is(lie.status, 409)
  t.regex(String(lie.body['detail']), /no such transfer/)
  t.is((await lost.resolve({ outcome: 'failed' })).status, 409, 'it may still be spent')
  t.like(await lost.charge(), { status: 'pending' })

  const taken = await pending(t, seeing, true)
  await taken.runOut()
  const denied = await taken.resolve({ outcome: 'failed' })
  t.is(denied.status, 409)
  const [paid] = await chain.transfersTo(taken.link.payTo)
  t.true(String(denied.body['detail']).includes(paid!.transaction))
  const found = await taken.resolve({ outcome: 'settled', transaction })
  t.is(found.status, 200)
  t.is(found.body['transaction'], paid!.transaction, 'what is on the chain is what is written down')
})

test('only the merchant with the scope can list and resolve', async (t) => {
  const { api, token, payment, resolve } = await pending(t, blind, false)
  const other = await api.workspace('Next door')
  t.is((await api.list(AT, other.token)).rows.length, 0)
  t.is((await resolve({ outcome: 'failed' }, other.token)).status, 404)
  t.is((await api.post(`${AT}/${randomUUID()}/resolve`, token, { outcome: 'failed' })).status, 404)
  t.is((await api.post(`${AT}/nonsense/resolve`, token, { outcome: 'failed' })).status, 404)
  t.is((await api.post(`${AT}/${String(payment['id'])}/resolve`)).status, 401)
  t.is((await api.get(`${AT}?state=lost`, token)).status, 400)
})

test('two concurrent answers end it once', async (t) => {
  const { tenantId, link, resolve, runOut } = await pending(t, blind, true)
  const [paid] = await chain.transfersTo(link.payTo)
  await runOut()
  const [one, two] = await Promise.all([
    resolve({ outcome: 'settled', transaction: paid!.transaction }),
    sleep(5).then(() => resolve({ outcome: 'failed' })),
  ])
  t.deepEqual([one.status, two.status].toSorted(), [200, 409])
  const booked = await sql(blind.running)`
    select 1 from all_events where tenant_id = ${tenantId}
    and type in ('commerce.payment.succeeded', 'commerce.payment.failed')`
  t.is(booked.length, 1)
})
