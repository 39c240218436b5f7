/**
 * Transitions of refunds. The requested amount is reserved on the charge in one statement, so that
 * concurrent refunds never exceed the rest. Then the provider is called under the refund's id, and
 * its answer is stored. A worker finishes refunds after a crash.
 */
import type { NewEvent } from '../../../storage/platform/outbox.js'
import { findCharge, lockCharge } from '../../../storage/commerce/charges.js'
import { postEntry } from '../../../storage/commerce/ledger.js'
import { finishRefund, revertRefund, type RefundRow } from '../../../storage/commerce/refunds.js'
import { lockSettlement, reduceSettlement } from '../../../storage/commerce/settlements.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { Caller } from '../../domain/audit.js'
import type { ChargeDeps } from './events.js'
import { ACCOUNT_OF } from './disputes.js'
import { paymentEvent, refundFields } from './events.js'
import type { FinalDone } from './payment-provider.js'

/** @returns the events to emit. Undefined when the refund has ended before. */
export async function applyRefund(
  tx: Transaction,
  deps: ChargeDeps,
  refund: Pick<RefundRow, 'tenantId' | 'id' | 'chargeId' | 'amountMinor' | 'externalReference'>,
  answer: FinalDone,
  caller?: Caller,
): Promise<readonly NewEvent[] | undefined> {
  const { tenantId, id, chargeId, amountMinor } = refund
  const { clock, random } = deps
  const now = clock.now()
  // Lock order: the charge, then its settlement.
  await lockCharge(tx, tenantId, chargeId)
  const code = answer.tag === 'refused' ? answer.code : null
  if (!(await finishRefund(tx, tenantId, id, code, now))) return undefined
  if (code !== null) return []
  const charge = await findCharge(tx, tenantId, chargeId)
  if (charge === undefined || charge.rail === null) throw new Error('a refund has no paid charge')
  const settlement = await lockSettlement(tx, tenantId, chargeId)
  const account = ACCOUNT_OF[settlement?.status ?? 'released']
  const { rail, currency } = charge
  await postEntry(tx, {
    tenantId,
    id: random.uuid(),
    currency,
    kind: 'refund',
    subjectId: id,
    createdAt: now,
    lines: [
      { account, rail, amountMinor },
      { account: 'clearing', rail, amountMinor: -amountMinor },
    ],
  })
  if (settlement !== undefined) {
    await reduceSettlement(tx, tenantId, settlement.id, amountMinor, now)
  }
  return [paymentEvent(deps, 'commerce.payment.refunded', charge, refundFields(refund), caller)]
}

/**
 * Reverts a succeeded refund that the provider could not carry out. The merchant gets the money
 * back, and `commerce.payment.refunded` carries the new refunded amount.
 * @returns the events. Undefined when the refund is not succeeded.
 */
export async function takeRefundBack(
  tx: Transaction,
  deps: ChargeDeps,
  { tenantId, id, chargeId, amountMinor }: RefundRow,
  code: string,
): Promise<readonly NewEvent[] | undefined> {
  const { clock, random } = deps
  const now = clock.now()
  // Lock order: the charge, then its settlement.
  await lockCharge(tx, tenantId, chargeId)
  if (!(await revertRefund(tx, tenantId, id, code, now))) return undefined
  const charge = await findCharge(tx, tenantId, chargeId)
  if (charge === undefined || charge.rail === null) throw new Error('a refund has no paid charge')
  const settlement = await lockSettlement(tx, tenantId, chargeId)
  const { rail, currency } = charge
  await postEntry(tx, {
    tenantId,
    id: random.uuid(),
    currency,
    kind: 'refund.reverted',
    subjectId: id,
    createdAt: now,
    lines: [
      { account: 'clearing', rail, amountMinor },
      { account: ACCOUNT_OF[settlement?.status ?? 'released'], rail, amountMinor: -amountMinor },
    ],
  })
  if (settlement !== undefined) {
    await reduceSettlement(tx, tenantId, settlement.id, -amountMinor, now)
  }
  return [paymentEvent(deps, 'commerce.payment.refunded', charge)]
}
