/**
 * What happens to a charge, with everything that belongs to it: the row, the ledger, the settlement,
 * and the events that tell of it. Every rail goes through here. The caller appends the events last in
 * its transaction (`appendEvents`), together with its own.
 */
import {
  type ChargeRow,
  failCharge,
  insertCharge,
  type NewCharge,
  succeedCharge,
} from '../../../storage/commerce/charges.js'
import { postEntry } from '../../../storage/commerce/ledger.js'
import type { NewEvent } from '../../../storage/platform/outbox.js'
import { insertSettlement } from '../../../storage/commerce/settlements.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { type ChargeMeans, paymentEvent, settlementEvent } from './events.js'

/** A change that happened, and what is to be told of it. */
export type Told<Row> = { readonly row: Row; readonly events: readonly NewEvent[] }

/**
 * Writes a pending charge; `commerce.payment.pending`.
 * @param more members that the event carries besides.
 * @returns undefined where the period of its subscription, or the reference of its rail, has one.
 */
export async function openCharge(
  tx: Transaction,
  means: ChargeMeans,
  charge: NewCharge,
  requestId?: string,
  more: Readonly<Record<string, unknown>> = {},
): Promise<Told<ChargeRow> | undefined> {
  const row = await insertCharge(tx, charge)
  if (row === undefined) return undefined
  const event = paymentEvent('commerce.payment.pending', row, means, requestId, undefined, more)
  return { row, events: [event] }
}

export type Payment = {
  readonly tenantId: string
  readonly chargeId: string
  readonly rail: string
  /** How the rail names the payment. */
  readonly railReference: string | null
  readonly buyerId?: string | undefined
  /**
   * The money reached the merchant by itself, without a way through us: it is booked and done with,
   * and there is nothing to settle or to pay out.
   */
  readonly direct: boolean
}

/**
 * pending -> succeeded: books the money, opens its settlement; `commerce.payment.succeeded`, and
 * `commerce.settlement.created` unless the money is the merchant's already.
 * @returns undefined when the charge is not pending: somebody else has ended it.
 */
export async function chargePaid(
  tx: Transaction,
  means: ChargeMeans,
  payment: Payment,
  requestId?: string,
): Promise<Told<ChargeRow> | undefined> {
  const { clock, random } = means
  const { tenantId, chargeId, rail, railReference, buyerId, direct } = payment
  const now = clock.now()
  const row = await succeedCharge(tx, tenantId, chargeId, { rail, railReference, buyerId, now })
  if (row === undefined) return undefined
  const { amountMinor, currency } = row
  const entry = { tenantId, currency, subjectId: chargeId, createdAt: now }
  await postEntry(tx, {
    ...entry,
    id: random.uuid(),
    kind: 'charge',
    lines: [
      { account: 'clearing', rail, amountMinor },
      { account: 'pending', rail, amountMinor: -amountMinor },
    ],
  })
  const paid = paymentEvent('commerce.payment.succeeded', row, means, requestId)
  if (direct) {
    await postEntry(tx, {
      ...entry,
      id: random.uuid(),
      kind: 'charge.direct',
      lines: [
        { account: 'pending', rail, amountMinor },
        { account: 'clearing', rail, amountMinor: -amountMinor },
      ],
    })
    return { row, events: [paid] }
  }
  const settlement = await insertSettlement(tx, {
    id: random.uuid(),
    tenantId,
    chargeId,
    rail,
    amountMinor,
    currency,
    dueAt: now,
    createdAt: now,
  })
  const created = settlementEvent('commerce.settlement.created', settlement, means, requestId)
  return { row, events: [paid, created] }
}

/**
 * pending -> failed; `commerce.payment.failed`.
 * @returns undefined when the charge is not pending: somebody else has ended it.
 */
export async function chargeFailed(
  tx: Transaction,
  means: ChargeMeans,
  failure: { readonly tenantId: string; readonly chargeId: string; readonly code: string },
  requestId?: string,
): Promise<Told<ChargeRow> | undefined> {
  const { tenantId, chargeId, code } = failure
  const row = await failCharge(tx, tenantId, chargeId, code, means.clock.now())
  if (row === undefined) return undefined
  return { row, events: [paymentEvent('commerce.payment.failed', row, means, requestId)] }
}
