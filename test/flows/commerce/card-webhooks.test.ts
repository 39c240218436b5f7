/** Webhooks of the card provider: forged, old, unknown, repeated, and for objects of others. */
import { createHmac, randomUUID } from 'node:crypto'
import test from 'ava'
import { CARD_WEBHOOK_SECRET, startCardProvider } from '../../support/commerce/card-provider.js'
import { cardShop } from '../../support/commerce/card-shop.js'
import { sql } from '../../support/storage/sql.js'
import { sharedService, testService } from '../../support/service.js'
import { COMMERCE } from '../../support/commerce/shop.js'

const provider = await startCardProvider()
// No background work runs. The effect of a webhook is checked in the rows.
const running = await testService({
  environment: {
    ...COMMERCE,
    ...provider.environment,
    SVC_DEPLOYMENT__BACKGROUND_TASKS_ENABLED: 'false',
  },
})
const { fresh, close } = cardShop(running, provider)
test.after.always(async () => {
  await close()
  await provider.close()
})

const eventOf = (
  type: string,
  object: unknown,
  id = `evt_${randomUUID().replaceAll('-', '')}`,
) => ({
  id,
  body: JSON.stringify({ id, object: 'event', type, data: { object } }),
})
const isDue = async (chargeId: unknown) => {
  const [row] = await sql<{ due: boolean }>(running)`
    select due_at <= now() as due from charges where id = ${chargeId}`
  return row!.due
}
const kept = async (id: string) =>
  sql(running)`select about, object_id as "objectId" from card_events where id = ${id}`

async function waiting() {
  const shop = await fresh()
  const opened = await shop.checkout()
  await shop.begin(opened)
  const chargeId = String(opened['charge_id'])
  return { shop, chargeId, page: provider.pageOf(chargeId) }
}

test('a signature that is missing, forged, of another body or old is a 400 and changes nothing', async (t) => {
  const { chargeId, page } = await waiting()
  const event = eventOf('checkout.session.completed', page)
  const now = Date.now()
  const macAt = (at: number, body: string) =>
    createHmac('sha256', CARD_WEBHOOK_SECRET).update(`${at}.${body}`).digest('hex')
  const at = Math.floor(now / 1000)
  const mac = macAt(at, event.body)
  for (const [what, more] of [
    ['missing', { signature: null }],
    ['empty', { signature: '' }],
    ['another secret', { secret: 'whsec_of_somebody_else' }],
    ['of another body', { signature: `t=${at},v1=${macAt(at, `${event.body} `)}` }],
    ['of another time', { signature: `t=${at - 1},v1=${mac}` }],
    ['without a time', { signature: `v1=${mac}` }],
    ['with two times', { signature: `t=${at},t=${at},v1=${mac}` }],
    ['of another version', { signature: `t=${at},v0=${mac}` }],
    ['cut short', { signature: `t=${at},v1=${mac.slice(0, 62)}` }],
    ['too long', { signature: `t=${at},v1=${mac},${'v1=00,'.repeat(400)}` }],
    ['six minutes old', { atMs: now - 360_000 }],
    ['of the future', { atMs: now + 360_000 }],
  ] as const) {
    t.is(await provider.deliver(running, event, more), 400, what)
  }
  t.deepEqual(await kept(event.id), [])
  t.false(await isDue(chargeId))
  const both = { signature: `t=${at},v1=${'0'.repeat(64)},v1=${mac}` }
  t.is(await provider.deliver(running, event, both), 200, 'while a secret is rolled')
  t.true(await isDue(chargeId))
})

test('bodies that are not events are refused, and oversized bodies are not read', async (t) => {
  for (const body of [
    '',
    'nonsense',
    'null',
    '[]',
    '{}',
    '{"id":"evt_1","type":7,"data":{}}',
    '{"id":"evt_1","type":"payment_intent.succeeded","data":{"object":{"id":"../charges"}}}',
    '{"id":"evt 1","type":"payment_intent.succeeded","data":{"object":{"id":"pi_1"}}}',
  ]) {
    t.is(await provider.deliver(running, { body }), 400, body)
  }
  t.is(await provider.deliver(running, { body: `{"a":"${'x'.repeat(300_000)}"}` }), 413)
})

test('unknown events are acknowledged and not stored', async (t) => {
  for (const type of ['customer.created', 'toString', '__proto__', 'payout.paid']) {
    const event = eventOf(type, { id: 'cus_1' })
    t.is(await provider.deliver(running, event), 200, type)
    t.deepEqual(await kept(event.id), [], type)
  }
})

test('a repeated event is stored once', async (t) => {
  const { chargeId, page } = await waiting()
  const event = eventOf('checkout.session.completed', page)
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => provider.deliver(running, event)),
  )
  t.true(answers.every((status) => status === 200))
  t.is((await kept(event.id)).length, 1)
  await sql(running)`update charges set due_at = now() + interval '1 hour' where id = ${chargeId}`
  t.is(await provider.deliver(running, event), 200)
  t.false(await isDue(chargeId), 'the repetition asks for nothing')
})

test('an event that claims a payment moves no money: the provider is asked', async (t) => {
  const { shop, chargeId, page } = await waiting()
  const paid = { ...page, status: 'complete', payment_status: 'paid', payment_intent: 'pi_made_up' }
  t.is(await provider.deliver(running, eventOf('checkout.session.completed', paid)), 200)
  t.is((await shop.charge(chargeId))['status'], 'pending')
  t.deepEqual(await shop.books(), { total: '0', clearing: '0', unbalanced: 0 })
})

test('an object of another account changes nothing, whichever charge its metadata names', async (t) => {
  const { chargeId, page } = await waiting()
  const other = await waiting()
  const stranger = { ...page, id: 'cs_of_another_account', client_reference_id: chargeId }
  for (const [type, object] of [
    ['checkout.session.completed', stranger],
    ['payment_intent.succeeded', { id: 'pi_of_another', metadata: page['metadata'] }],
    ['refund.updated', { id: 're_1', payment_intent: 'pi_of_another' }],
    ['charge.dispute.created', { id: 'du_1', payment_intent: 'pi_of_another' }],
  ] as const) {
    t.is(await provider.deliver(running, eventOf(type, object)), 200, type)
  }
  t.false(await isDue(chargeId))
  // A page of the other tenant with the metadata of this one. The look-up uses the charge that
  // created it.
  const swapped = { ...other.page, metadata: page['metadata'] }
  t.is(await provider.deliver(running, eventOf('checkout.session.completed', swapped)), 200)
  t.deepEqual([await isDue(chargeId), await isDue(other.chargeId)], [false, true])
})

test('without a card provider the route is a 404', async (t) => {
  const plain = await sharedService('commerce')
  t.teardown(() => plain.end())
  t.is(await provider.deliver(plain, eventOf('payment_intent.succeeded', { id: 'pi_1' })), 404)
})
