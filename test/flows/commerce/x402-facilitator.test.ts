/**
 * Facilitators that time out, lie, hang up, answer twice or return garbage: no buyer pays twice, no payment is lost, and an
 * unknown outcome is reported as unknown. What each answer means is in actors/commerce/payments/x402/rules: one fault of a kind is played
 * daily, all of them in the long form, where some wait until the service does.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { findCharge } from '../../../storage/commerce/charges.js'
import { newAccount } from '../../support/commerce/chain.js'
import { until } from '../../support/commerce/seller.js'
import type { Mischief, Said } from '../../support/commerce/facilitator.js'
import { decode, openShop, type Link, type Shop } from '../../support/commerce/x402-shop.js'
import { sql } from '../../support/storage/sql.js'
import { IS_LONG } from '../../support/runs.js'
import { numberAll } from '../../support/storage/numbered.js'

/** Has a chain node, and queries it for unknown outcomes. */
const shop = await openShop({ profile: 'onChain' })
/** Has its facilitator only. */
const blind = await openShop({ profile: 'blind' })
test.after.always(async () => {
  for (const { close } of [shop, blind]) await close()
})
const { chain } = shop

const daily = <Case>(all: Case[], count: number) => (IS_LONG ? all : all.slice(0, count))

/** Concurrent payments: the chain and the facilitators share the machine. */
const PLACES = 4
let turns: Promise<unknown>[] = Array.from({ length: PLACES }, () => Promise.resolve())

function inPlace<T>(work: () => Promise<T>): Promise<T> {
  const [first, ...others] = turns
  const done = first!.then(work)
  turns = [...others, done.catch(() => undefined)]
  return done
}

/** The facilitator misbehaves for one payment only. */
async function paying(
  at: Shop,
  mischief: Mischief,
  play: (link: Link, proof: string, payer: string) => Promise<void>,
): Promise<void> {
  await inPlace(async () => {
    const link = await at.link()
    const who = await at.buyer(3)
    const proof = await at.proof(who, link)
    at.facilitator.mischiefs.set(link.payTo, mischief)
    await play(link, proof, who.address)
  })
}

/** The facilitator is asked about the payment again. */
async function untilSettles(at: Shop, { payTo }: Link, count: number): Promise<void> {
  while (at.facilitator.about(payTo, 'settle') < count) await sleep(50)
}

const onSettle =
  (mischief: Mischief): Mischief =>
  (asked, honest, response) =>
    asked.operation === 'settle' ? mischief(asked, honest, response) : undefined

/** Misbehaves the first time only. */
function once(mischief: Mischief): Mischief {
  let done = false
  return (...args) => {
    if (done) return undefined
    done = true
    return mischief(...args)
  }
}

const hangsUp: Mischief = (_, __, response) => (response.destroy(), null)
const hangsUpAfter: Mischief = async (_, honest, response) => {
  await honest()
  response.destroy()
  return null
}

async function chargeOf(at: Shop, chargeId: unknown) {
  const { tenantId } = at.merchant
  return at.running.db.database.tenant(tenantId, (tx) => findCharge(tx, tenantId, String(chargeId)))
}

const broken: [what: string, mischief: Mischief][] = [
  ['hangs up', hangsUp],
  ['never answers', () => new Promise<Said>(() => undefined)],
  ['answers 500', (_, __, response) => (response.writeHead(500).end('oops'), null)],
  ['answers garbage', (_, __, response) => (response.writeHead(200).end('<html>'), null)],
  ['answers another shape', () => ({ ok: true })],
  [
    'answers without end',
    (_, __, response) => (response.writeHead(200).write('x'.repeat(1 << 20)), null),
  ],
  ['names another payer', () => ({ isValid: true, payer: newAccount().address })],
]
for (const [what, mischief] of daily(broken, 1)) {
  test(`/verify ${what}: 503, nothing charged, and the same proof pays later`, async (t) => {
    await paying(shop, mischief, async (link, proof) => {
      const answer = await shop.post(link, proof)
      t.is(answer.status, 503, answer.text)
      t.truthy(answer.headers.get('retry-after'))
      t.is(answer.body['charge_id'], undefined)
      t.is(answer.headers.get('payment-required'), null)
      t.is(shop.facilitator.about(link.payTo, 'settle'), 0)
      shop.facilitator.mischiefs.delete(link.payTo)
      t.is((await shop.final(link, proof)).status, 200)
    })
  })
}

test('/verify calls a good payment bad: refused, nothing charged, and it may be tried again', async (t) => {
  const lie = () => ({ isValid: false, invalidReason: 'insufficient_funds' })
  await paying(shop, lie, async (link, proof) => {
    const answer = await shop.final(link, proof)
    t.is(answer.status, 402)
    t.is(decode(answer.headers.get('payment-response'))['errorReason'], 'insufficient_funds')
    shop.facilitator.mischiefs.delete(link.payTo)
    t.is((await shop.final(link, proof)).status, 200)
    t.is((await chain.transfersTo(link.payTo)).length, 1)
  })
})

test('an unreachable facilitator gives 503 and no charge', async (t) => {
  const link = await shop.link()
  const proof = await shop.proof(await shop.buyer(1), link)
  await shop.receive(link.payTo, 'http://127.0.0.1:1')
  t.is((await shop.post(link, proof)).status, 503)
  await shop.receive(link.payTo)
  t.is((await shop.final(link, proof)).status, 200)
})

const afterwards: [what: string, mischief: Mischief][] = [
  ['hangs up after settling', hangsUpAfter],
  [
    'names another payer',
    async (_, honest) => ({ ...(await honest()), payer: newAccount().address }),
  ],
  [
    'says that it is pending',
    async (_, honest) => ({
      ...(await honest()),
      success: false,
      errorReason: 'settlement_pending',
    }),
  ],
  ['names another network', async (_, honest) => ({ ...(await honest()), network: 'eip155:1' })],
  ['names no transaction', async (_, honest) => ({ ...(await honest()), transaction: '' })],
  ['names another amount', async (_, honest) => ({ ...(await honest()), amount: '1' })],
  [
    'settles and answers garbage',
    async (_, honest, response) => {
      await honest()
      response.writeHead(200).end('}{')
      return null
    },
  ],
  [
    'settles and answers 502',
    async (_, honest, response) => {
      await honest()
      response.writeHead(502).end('bad gateway')
      return null
    },
  ],
  [
    'settles and never answers',
    async (_, honest) => {
      await honest()
      return new Promise<Said>(() => undefined)
    },
  ],
]
for (const [what, mischief] of daily(afterwards, 3)) {
  test(`/settle ${what}: pending, then found settled, once`, async (t) => {
    await paying(shop, onSettle(once(mischief)), async (link, proof, payer) => {
      const first = await shop.charged(link, proof)
      t.is(first.status, 503, first.text)
      t.truthy(first.body['charge_id'])
      t.is(first.body['charge_status'], 'pending')
      t.truthy(first.headers.get('retry-after'))
      t.is(first.headers.get('payment-required'), null, 'no challenge for what may be paid')
      const answer = await shop.final(link, proof)
      t.is(answer.status, 200, answer.text)
      t.is(answer.body['charge_id'], first.body['charge_id'])
      const [paid, ...more] = await chain.transfersTo(link.payTo)
      t.is(more.length, 0)
      t.is(paid!.from, payer)
      t.is(decode(answer.headers.get('payment-response'))['transaction'], paid!.transaction)
      t.like(await chargeOf(shop, first.body['charge_id']), { status: 'succeeded' })
    })
  })
}

test('/settle did nothing and hung up: settled by asking again', async (t) => {
  await paying(shop, onSettle(once(hangsUp)), async (link, proof) => {
    t.is((await shop.charged(link, proof)).status, 503)
    const answer = await shop.final(link, proof)
    t.is(answer.status, 200, answer.text)
    t.is((await chain.transfersTo(link.payTo)).length, 1)
  })
})

test('without a chain to ask, a facilitator that answers twice is believed', async (t) => {
  let kept: Said | undefined
  const forgetful: Mischief = async (_, honest, response) => {
    if (kept !== undefined) return kept
    kept = await honest()
    response.destroy()
    return null
  }
  await paying(blind, onSettle(forgetful), async (link, proof) => {
    const first = await blind.charged(link, proof)
    t.is(first.status, 503)
    const answer = await blind.final(link, proof)
    t.is(answer.status, 200, answer.text)
    t.is(answer.body['charge_id'], first.body['charge_id'])
    t.is((await chain.transfersTo(link.payTo)).length, 1)
  })
})

test('without a chain node, a spent authorization stays pending', async (t) => {
  await paying(blind, onSettle(once(hangsUpAfter)), async (link, proof) => {
    t.is((await blind.charged(link, proof)).status, 503)
    await untilSettles(blind, link, 2)
    const again = await blind.post(link, proof)
    t.is(again.status, 503)
    t.like(await chargeOf(blind, again.body['charge_id']), { status: 'pending' })
  })
})

test('/settle refuses: 402, the charge failed, and the same proof hears it again', async (t) => {
  const refusal = () => ({
    success: false,
    errorReason: 'insufficient_funds',
    transaction: '',
    network: 'eip155:84532',
  })
  await paying(shop, onSettle(refusal), async (link, proof) => {
    const answer = await shop.final(link, proof)
    t.is(answer.status, 402)
    t.is(decode(answer.headers.get('payment-response'))['errorReason'], 'insufficient_funds')
    t.truthy(answer.headers.get('payment-required'))
    const again = await shop.final(link, proof)
    t.is(again.status, 402)
    t.is(shop.facilitator.about(link.payTo, 'settle'), 1)
    const { tenantId } = shop.merchant
    await numberAll(shop.running.db.database)
    const { rows } = await shop.running.db.database.tenant(tenantId, (tx) =>
      tx.query<{ status: string; failureCode: string; type: string }>({
        name: 'test.failed',
        text: `select c.status, c.failure_code as "failureCode", e.type from charges c
               join all_events e on e.tenant_id = c.tenant_id and e.data ->> 'charge_id' = c.id::text
               where c.tenant_id = $1 and c.payment_link_id = $2 order by e.sequence`,
        values: [tenantId, link.id],
      }),
    )
    t.deepEqual(rows, [
      { status: 'failed', failureCode: 'insufficient_funds', type: 'commerce.payment.pending' },
      { status: 'failed', failureCode: 'insufficient_funds', type: 'commerce.payment.failed' },
    ])
  })
})

const ambiguous: [what: string, said: Said][] = [
  ['an unexpected error', { errorReason: 'unexpected_settle_error', transaction: '' }],
  ['its own words', { errorReason: 'TimeoutError: no receipt after 60 s', transaction: '' }],
  [
    'a transaction',
    { errorReason: 'invalid_transaction_state', transaction: `0x${'cd'.repeat(32)}` },
  ],
  ['insufficient funds and a transaction', { errorReason: 'insufficient_funds' }],
]
for (const [what, words] of daily(ambiguous, 1)) {
  test(`/settle fails with ${what} after sending: pending, and paid once`, async (t) => {
    const fails: Mischief = async (_, honest) => ({
      ...(await honest()),
      success: false,
      ...words,
    })
    await paying(blind, onSettle(fails), async (link, proof) => {
      const first = await blind.charged(link, proof)
      t.is(first.status, 503, first.text)
      t.is(first.headers.get('payment-required'), null, 'no challenge for what may be paid')
      t.is((await blind.post(link, proof)).status, 503)
      t.like(await chargeOf(blind, first.body['charge_id']), { status: 'pending' })
      // The service may have waited for less time than the facilitator took.
      const transfers = () => chain.transfersTo(link.payTo)
      t.is((await until(transfers, ({ length }) => length > 0)).length, 1)
    })
    await paying(shop, onSettle(once(fails)), async (link, proof) => {
      const first = await shop.charged(link, proof)
      t.is(first.status, 503, first.text)
      const answer = await shop.final(link, proof)
      t.is(answer.status, 200, answer.text)
      t.is(answer.body['charge_id'], first.body['charge_id'])
    })
  })
}

test('an authorization that ran out unspent is a failed payment', async (t) => {
  await paying(shop, onSettle(hangsUp), async (link, proof) => {
    const first = await shop.charged(link, proof)
    t.is(first.status, 503)
    // It ran out long ago, as the next block shows.
    await sql(shop.running)`
      update x402_payments set valid_before = extract(epoch from now())::bigint - 600
      where charge_id = ${first.body['charge_id']}`
    await shop.buyer(1)
    const answer = await shop.final(link, proof)
    t.is(answer.status, 402, answer.text)
    t.is(
      decode(answer.headers.get('payment-response'))['errorReason'],
      'invalid_exact_evm_payload_authorization_valid_before',
    )
    t.like(await chargeOf(shop, first.body['charge_id']), { status: 'failed' })
    t.is((await chain.transfersTo(link.payTo)).length, 0)
  })
})
