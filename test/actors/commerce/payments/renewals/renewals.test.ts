/**
 * Renewals on a controlled clock: two processes, a provider that fails at any moment, one charge
 * per period.
 */
import test from 'ava'
import * as fc from 'fast-check'
import { intervalsAfter, periodBounds } from '../../../../../actors/commerce/payments/outcome.js'
import { DUNNING_MS } from '../../../../../actors/commerce/payments/outcome.js'
import { type Logger, silentLogger } from '../../../../../runtime/kernel/log.js'
import { BOOK_MINOR_MAX } from '../../../../../storage/commerce/ledger.js'
import { freshDatabase } from '../../../../support/storage/database.js'
import { sql } from '../../../../support/storage/sql.js'
import { merchantIn } from '../../../../support/commerce/merchant.js'
import {
  auditBooks,
  BUYER,
  callerIn,
  type Mishap,
  openCheckoutFixture,
} from '../../../../support/commerce/checkout-fixture.js'

const fresh = await freshDatabase()
const { database } = fresh
test.after.always(() => fresh.drop())

const DAY_MS = 86_400_000

async function subscribed(next?: () => Mishap) {
  let broken = false
  const fixture = openCheckoutFixture(database, () => (broken ? (next?.() ?? 'none') : 'none'))
  const merchant = await merchantIn(database, { interval: 'day' })
  const opened = await fixture.checkout.createSubscriptionCheckoutSession({
    ...BUYER,
    priceId: merchant.priceId,
  })
  if (opened.tag !== 'subscription_opened') throw new Error(opened.tag)
  const { token, subscriptionId: id } = opened
  await fixture.checkout.pay({
    token: token!,
    rail: 'sandbox',
    outcome: 'succeed',
    customerEmail: '',
  })
  broken = true
  const { tenantId } = merchant
  const read = async () => {
    const found = await fixture.commerce.getSubscription({ tenantId, id })
    if (found.tag !== 'found') throw new Error(found.tag)
    return found.row
  }
  const charges = async () => {
    const { rows } = await fixture.commerce.listCharges({
      tenantId,
      limit: 200,
      after: null,
    })
    return rows
  }
  return { ...fixture, tenantId, id, read, charges }
}

// Serial, because workers process the due work of every tenant by their own clock.
test.serial(
  'two processes and a provider that fails at any moment charge each period once',
  async (t) => {
    t.timeout(120_000)
    await t.notThrowsAsync(
      fc.assert(
        fc.asyncProperty(
          fc.infiniteStream(fc.constantFrom<Mishap>('none', 'none', 'before', 'after')),
          async (mishaps) => {
            const next = () => mishaps.next().value as Mishap
            const { clock, worker, read, charges, tenantId } = await subscribed(next)
            const workers = [worker(), worker()]
            for (let day = 1; day <= 6; day += 1) {
              clock.advance(DAY_MS)
              // Each failed attempt uses up a lease: the next attempt follows when it has expired.
              for (let context = 0; context < 40 && (await read()).period <= day; context += 1) {
                await Promise.all(workers.map((round) => round()))
                if ((await read()).period <= day) clock.advance(61_000)
              }
            }
            const { status, period } = await read()
            const paid = (await charges()).filter((one) => one.status === 'succeeded')
            const books = await auditBooks(database, tenantId)
            return (
              status === 'active' &&
              period === 7 &&
              paid.length === 7 &&
              books.total === '0' &&
              books.unbalanced === 0 &&
              books.apart === 0 &&
              books.strangers === 0 &&
              books.clearing === books.paid &&
              books.paid === String(7 * 1999)
            )
          },
        ),
        { numRuns: 8 },
      ),
    )
  },
)

test.serial('a declined renewal is retried on schedule, then the subscription ends', async (t) => {
  const { clock, worker, commerce, read, charges, tenantId, id } = await subscribed()
  const round = worker()
  await commerce.simulateRenewal({ caller: callerIn(tenantId), id, outcome: 'decline' })
  await round()
  t.is((await read()).status, 'past_due')
  for (const pauseMs of DUNNING_MS) {
    clock.advance(pauseMs - 1_000)
    const before = (await charges()).length
    await round()
    t.is((await charges()).length, before, 'not before its time')
    clock.advance(1_000)
    await round()
    t.is((await charges()).length, before + 1)
  }
  t.like(await read(), { status: 'canceled', period: 1 })
  clock.advance(30 * DAY_MS)
  const before = (await charges()).length
  await round()
  t.is((await charges()).length, before, 'what has ended is not charged')
})

test.serial(
  'renewals are not charged early, and not at all after an immediate cancellation',
  async (t) => {
    const { clock, worker, commerce, read, charges, tenantId, id } = await subscribed()
    const round = worker()
    clock.advance(DAY_MS - 1_000)
    await round()
    t.is((await charges()).length, 1)
    const caller = callerIn(tenantId)
    await commerce.cancelSubscription({ caller, id, atPeriodEnd: false })
    clock.advance(DAY_MS)
    await round()
    t.is((await charges()).length, 1)
    t.is((await read()).status, 'canceled')
  },
)

test.serial(
  'a renewal that could not be booked waits, and is charged once there is room',
  async (t) => {
    const { clock, worker, read, charges, tenantId, id } = await subscribed()
    const told: [object, string][] = []
    const note = (what: object, words: string) => void told.push([what, words])
    const log = { ...silentLogger, error: note } as unknown as Logger
    const workers = [worker(log), worker(log)]
    const rounds = () => Promise.all(workers.map((round) => round()))
    await rounds()
    // A clearing account with limited room.
    const leave = (minor: number) =>
      sql(
        database,
        `update ledger_accounts set balance_minor = ${BOOK_MINOR_MAX - minor}
       where tenant_id = $1 and account = 'clearing'`,
        [tenantId],
      )
    await leave(1_998)
    clock.advance(DAY_MS)
    for (let context = 0; context < 3; context += 1) {
      await rounds()
      clock.advance(61_000)
    }
    t.is((await charges()).length, 1, 'no provider was called, and no charge was opened')
    t.like(await read(), { status: 'active', period: 1 })
    t.is(told.length, 3, 'each look says so, and one worker looks')
    t.like(told[0]![0], { tenantId, subscriptionId: id, rail: 'sandbox', currency: 'USD' })
    t.regex(told[0]![1], /ledger of a payment provider is full/)

    await leave(1_999)
    await rounds()
    t.like(await read(), { status: 'active', period: 2 })
    const [renewed, ...before] = await charges()
    t.like(renewed, { status: 'succeeded', amountMinor: 1_999, subscriptionId: id })
    t.is(before.length, 1)
    t.is(told.length, 3)
    const [account] = await sql<{ full: boolean }>(
      database,
      `select balance_minor = ${BOOK_MINOR_MAX} as full from ledger_accounts
     where tenant_id = $1 and account = 'clearing'`,
      [tenantId],
    )
    t.true(account!.full, 'to the last minor unit')
  },
)

test('periods are counted from the anchor, so that the 31st returns after short months', (t) => {
  const anchor = new Date('2028-01-31T10:00:00.000Z')
  const days = Array.from({ length: 5 }, (_, count) =>
    intervalsAfter(anchor, 'month', count).toISOString().slice(0, 10),
  )
  t.deepEqual(days, ['2028-01-31', '2028-02-29', '2028-03-31', '2028-04-30', '2028-05-31'])
  const leap = new Date('2028-02-29T00:00:00.000Z')
  t.is(intervalsAfter(leap, 'year', 1).toISOString(), '2029-02-28T00:00:00.000Z')
  t.is(intervalsAfter(leap, 'year', 4).toISOString(), '2032-02-29T00:00:00.000Z')
  fc.assert(
    fc.property(
      fc.date({ min: new Date('2000-01-01'), max: new Date('2100-01-01'), noInvalidDate: true }),
      fc.constantFrom('day', 'week', 'month', 'year'),
      fc.integer({ min: 1, max: 365 }),
      fc.integer({ min: 1, max: 40 }),
      (from, interval, count, period) => {
        const one = periodBounds(from, interval, count, period)
        const two = periodBounds(from, interval, count, period + 1)
        return one.start < one.end && one.end.getTime() === two.start.getTime()
      },
    ),
  )
})

test.serial('what a rail did not answer is not left open when its subscription ends', async (t) => {
  for (const mishap of ['before', 'after'] as const) {
    let next: Mishap = mishap
    for (const atPeriodEnd of [false, true]) {
      next = mishap
      const fixture = await subscribed(() => next)
      const { clock, worker, commerce, read, charges, tenantId, id } = fixture
      const round = worker()
      clock.advance(DAY_MS)
      await round()
      t.is((await charges()).filter(({ status }) => status === 'pending').length, 1)
      next = 'none'
      await commerce.cancelSubscription({ caller: callerIn(tenantId), id, atPeriodEnd })
      clock.advance(61_000)
      await round()
      await round()
      t.like(await read(), { status: 'canceled', period: 1 })
      // Newest first.
      const [renewed] = await charges()
      // A payment that the provider took is announced. A payment that it never saw is never taken.
      t.is(renewed?.status, mishap === 'after' ? 'succeeded' : 'failed')
    }
  }
})
