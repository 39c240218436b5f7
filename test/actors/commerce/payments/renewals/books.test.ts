/** Random concurrent operations over a failing payment provider: the ledger balances. */
import test from 'ava'
import * as fc from 'fast-check'
import { freshDatabase } from '../../../../support/storage/database.js'
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

type Move =
  | { readonly do: 'buy'; readonly outcome: string; readonly quantity: number }
  | { readonly do: 'refund'; readonly which: number; readonly amount: number | null }
  | { readonly do: 'close'; readonly which: number; readonly outcome: 'won' | 'lost' }
  | { readonly do: 'payout'; readonly amount: number | null }
  | { readonly do: 'state' }
  | { readonly do: 'work' }

const which = fc.nat(20)
const amount = fc.option(fc.integer({ min: 1, max: 5_000 }))
const move: fc.Arbitrary<Move> = fc.oneof(
  fc.record({
    do: fc.constant('buy' as const),
    outcome: fc.constantFrom('succeed', 'succeed', 'decline', 'dispute'),
    quantity: fc.integer({ min: 1, max: 3 }),
  }),
  fc.record({ do: fc.constant('refund' as const), which, amount }),
  fc.record({
    do: fc.constant('close' as const),
    which,
    outcome: fc.constantFrom('won' as const, 'lost' as const),
  }),
  fc.record({ do: fc.constant('payout' as const), amount }),
  fc.constant({ do: 'state' as const }),
  fc.constant({ do: 'work' as const }),
)

test('accounts sum to zero, match their lines, and match the books of the provider', async (t) => {
  t.timeout(180_000)
  await t.notThrowsAsync(
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(move, { minLength: 1, maxLength: 5 }), { minLength: 3, maxLength: 12 }),
        fc.infiniteStream(fc.constantFrom<Mishap>('none', 'none', 'none', 'before', 'after')),
        async (steps, mishaps) => {
          let calm = false
          const fixture = openCheckoutFixture(database, () =>
            calm ? 'none' : (mishaps.next().value as Mishap),
          )
          const { tenantId, priceId } = await merchantIn(database)
          const caller = callerIn(tenantId)
          const page = { tenantId, limit: 200, after: null }
          const workers = [fixture.worker(), fixture.worker()]

          async function make(one: Move): Promise<void> {
            if (one.do === 'buy') {
              const { quantity, outcome } = one
              const opened = await fixture.checkout.createCheckoutSession({
                ...BUYER,
                priceId,
                quantity,
              })
              if (opened.tag !== 'opened') throw new Error(opened.tag)
              const token = opened.token!
              const form = { token, rail: 'sandbox', outcome, customerEmail: '' }
              await fixture.checkout.pay(form)
            } else if (one.do === 'refund') {
              const { rows } = await fixture.commerce.listCharges(page)
              const charge = rows[one.which % Math.max(1, rows.length)]
              if (charge === undefined) return
              const { id: chargeId } = charge
              const order = {
                caller,
                chargeId,
                amountMinor: one.amount,
                reason: null,
                externalReference: null,
              }
              await fixture.commerce.refundCharge({ ...order, idempotency: null })
            } else if (one.do === 'close') {
              const { rows } = await fixture.settlement.listDisputes(page)
              const dispute = rows[one.which % Math.max(1, rows.length)]
              if (dispute === undefined) return
              const { outcome } = one
              await fixture.settlement.closeDispute({ caller, id: dispute.id, outcome })
            } else if (one.do === 'payout') {
              const order = { caller, rail: 'sandbox', currency: 'USD', amountMinor: one.amount }
              await fixture.settlement.createPayout({ ...order, idempotency: null })
            } else if (one.do === 'state') {
              const order = { caller, currency: 'USD', idempotency: null }
              await fixture.settlement.createStatement(order)
            } else await Promise.all(workers.map((round) => round()))
          }

          const sound = async () => {
            const books = await auditBooks(database, tenantId)
            return books.total === '0' && books.unbalanced + books.apart + books.strangers === 0
          }
          for (const step of steps) {
            await Promise.all(step.map(make))
            if (!(await sound())) return false
          }
          // Then all work ends, and the ledger equals the provider's books to the cent.
          calm = true
          for (let context = 0; context < 6; context += 1) {
            fixture.clock.advance(130_000)
            for (const round of workers) await round()
          }
          await make({ do: 'state' })
          const { clearing, paid, stated } = await auditBooks(database, tenantId)
          const { balances } = await fixture.settlement.listBalances({ tenantId })
          const [balance] = balances
          const owed =
            (balance?.pendingMinor ?? 0) +
            (balance?.heldMinor ?? 0) +
            (balance?.availableMinor ?? 0) +
            (balance?.inTransitMinor ?? 0)
          const { rows: charges } = await fixture.commerce.listCharges(page)
          return (
            (await sound()) &&
            clearing === paid &&
            owed === Number(paid) &&
            Number(stated) === owed &&
            charges.every(({ status }) => status !== 'pending') &&
            (balance?.pendingMinor !== undefined) ===
              charges.some(({ status }) => status === 'succeeded' || status === 'refunded')
          )
        },
      ),
      { numRuns: 15 },
    ),
  )
})
