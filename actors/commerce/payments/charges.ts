/**
 * Transitions of a charge with everything that depends on it: the row, the ledger, the settlement
 * and the events. Every payment provider uses these functions. The caller appends the events last
 * in its transaction (`appendEvents`), together with its own.
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
import type { EventFields } from '../../domain/events.js'
import { type ChargeDeps, paymentEvent, settlementEvent } from './events.js'

/** A transition, with the events to emit. */
export type Transition<Row> = { readonly row: Row; readonly events: readonly NewEvent[] }

/**
 * Inserts a pending charge and emits `commerce.payment.pending`.
 * @param more additional members of the event.
 * @returns undefined when the subscription period, or the provider's reference, has a charge
 *   already.
 */
export async function openCharge(
  tx: Transaction,
  deps: ChargeDeps,
  charge: NewCharge,
  more: Partial<EventFields<'commerce.payment.pending'>> = {},
): Promise<Transition<ChargeRow> | undefined> {
  const row = await insertCharge(tx, charge)
  if (row === undefined) return undefined
  const event = paymentEvent(deps, 'commerce.payment.pending', row, more)
  return { row, events: [event] }
}

type Payment = {
  readonly tenantId: string
  readonly chargeId: string
  readonly rail: string
  /** The provider's reference of the payment. */
  readonly railReference: string | null
  readonly buyerId?: string | undefined
  /**
   * True if the merchant received the money directly. The ledger books it in and out, and there is
   * no settlement and no payout.
   */
  readonly direct: boolean
}

/**
 * pending -> succeeded: books the money, opens its settlement and emits
 * `commerce.payment.succeeded`, and `commerce.settlement.created` unless the payment is direct.
 * @returns undefined when the charge is not pending: a concurrent transition ended it.
 */
export async function chargePaid(
  tx: Transaction,
  deps: ChargeDeps,
  payment: Payment,
): Promise<Transition<ChargeRow> | undefined> {
  const { clock, random } = deps
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
  const paid = paymentEvent(deps, 'commerce.payment.succeeded', row)
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
  const created = settlementEvent('commerce.settlement.created', settlement, deps)
  return { row, events: [paid, created] }
}

/**
 * pending -> failed: emits `commerce.payment.failed`.
 * @returns undefined when the charge is not pending: a concurrent transition ended it.
 */
export async function chargeFailed(
  tx: Transaction,
  deps: ChargeDeps,
  failure: { readonly tenantId: string; readonly chargeId: string; readonly code: string },
): Promise<Transition<ChargeRow> | undefined> {
  const { tenantId, chargeId, code } = failure
  const row = await failCharge(tx, tenantId, chargeId, code, deps.clock.now())
  if (row === undefined) return undefined
  return { row, events: [paymentEvent(deps, 'commerce.payment.failed', row)] }
}
