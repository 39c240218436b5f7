/** A merchant gives money back. decisions.md 17 and 22, refund. */
import type { Turn } from '../../runtime/kernel/actor.js'
import { findCharge } from '../../storage/charges.js'
import { idempotently } from '../../storage/idempotency.js'
import { appendEvents } from '../../storage/outbox.js'
import { findRefund, insertRefund, type RefundRow, reserveRefund } from '../../storage/refunds.js'
import type { Transaction } from '../../storage/sql.js'
import { isUuid } from '../domain/ids.js'
import type { CommerceNeeds } from './needs.js'
import type { RefundCharge, RefundOutcome } from './protocol.js'
import { chargeOf } from './records.js'
import { applyRefund } from './refunds.js'

/** After this a worker asks the rail again. Longer than any request lives. */
const ASK_AGAIN_MS = 120_000
const UNKNOWN = { tag: 'unknown' } as const

type Reserved = { readonly tag: 'reserved'; readonly refundId: string; readonly replayed?: boolean }

export function refunding({ database, clock, random, rails }: CommerceNeeds) {
  const means = { clock, random }

  async function reserve(
    tx: Transaction,
    { caller, chargeId, amountMinor, reason }: RefundCharge,
  ): Promise<Reserved | RefundOutcome> {
    const { tenantId } = caller.principal
    const charge = await findCharge(tx, tenantId, chargeId)
    if (charge === undefined) return UNKNOWN
    if (charge.disputeStatus === 'opened') return { tag: 'disputed' }
    if (charge.status === 'pending' || charge.status === 'failed') return { tag: 'not_paid' }
    if (!rails.has(charge.rail ?? '')) return { tag: 'no_refunds' }
    const now = clock.now()
    const reserved = await reserveRefund(tx, charge, amountMinor, now)
    if (reserved === 'funds') return { tag: 'insufficient_funds' }
    if (reserved === 'left') {
      return { tag: 'invalid', pointer: '/amount_minor', detail: 'More than is left to give back.' }
    }
    const refundId = random.uuid()
    await insertRefund(tx, {
      id: refundId,
      tenantId,
      chargeId,
      amountMinor: reserved,
      reason,
      createdAt: now,
      dueAt: new Date(now.getTime() + ASK_AGAIN_MS),
    })
    return { tag: 'reserved', refundId }
  }

  /** Asks the rail and writes its answer down; nothing where it gave none. */
  async function carryOut(message: RefundCharge, refund: RefundRow, turn: Turn): Promise<void> {
    const { caller } = message
    const { tenantId, id: refundId, chargeId, amountMinor } = refund
    const charge = await database.tenant(tenantId, (tx) => findCharge(tx, tenantId, chargeId))
    const rail = rails.get(charge?.rail ?? '')
    if (charge === undefined || rail === undefined) return
    const order = { tenantId, refundId, chargeId, amountMinor, currency: charge.currency }
    const answer = await rail
      .refund(order, AbortSignal.timeout(ASK_AGAIN_MS / 2))
      .catch((error: unknown) => {
        turn.log.warn({ err: error, refundId }, 'a rail gave no answer')
        return undefined
      })
    if (answer === undefined || answer.tag === 'pending') return
    await database.tenant(tenantId, async (tx) => {
      const events = await applyRefund(tx, means, refund, answer, turn.requestId, caller)
      appendEvents(tx, events ?? [])
    })
  }

  return {
    async refundCharge(message: RefundCharge, turn: Turn): Promise<RefundOutcome> {
      const { caller, chargeId, idempotency } = message
      const { tenantId } = caller.principal
      if (!isUuid(chargeId)) return UNKNOWN
      const begun = await database.tenant(
        tenantId,
        (tx) =>
          idempotently(
            tx,
            idempotency,
            () => reserve(tx, message),
            (outcome) => (outcome.tag === 'reserved' ? outcome : undefined),
          ),
        { signal: turn.signal },
      )
      if (begun.tag !== 'reserved') return begun
      const { refundId } = begun
      const refund = await database.tenant(tenantId, (tx) => findRefund(tx, tenantId, refundId))
      if (refund?.status === 'pending') await carryOut(message, refund, turn)
      const [charge, ended] = await database.tenant(tenantId, async (tx) => [
        await findCharge(tx, tenantId, chargeId),
        await findRefund(tx, tenantId, refundId),
      ])
      if (charge === undefined || ended === undefined) return UNKNOWN
      if (ended.status === 'failed') return { tag: 'refused', code: ended.failureCode ?? 'refused' }
      return { tag: 'refunded', charge: chargeOf(charge), replayed: begun.replayed === true }
    },
  }
}
