/**
 * Transitions of payments, each in one transaction with its charge, the ledger and the events. Used
 * by the lease holder: a request or the reconciliation.
 */
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import { findCharge } from '../../../../storage/commerce/charges.js'
import {
  beginPaying,
  lockOpenCheckout,
  reopenCheckout,
} from '../../../../storage/commerce/checkout-sessions.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Database, Transaction } from '../../../../storage/platform/sql.js'
import {
  beginX402Settlement,
  endX402Payment,
  postponeX402Payment,
  type X402PaymentRow,
} from '../../../../storage/commerce/x402-payments.js'
import { chargeFailed, openCharge } from '../charges.js'
import { applyAnswer } from '../outcome.js'
import { v1NetworkOf } from '../../../domain/commerce/assets.js'
import type { Chain, OnChain, AuthorizationStatus } from './chain.js'
import type { Expected, SettlementResult } from './facilitator.js'
import type { ErrorReason } from './reasons.js'

const PROVIDER = 'x402'

type EndingNeeds = {
  readonly database: Pick<Database, 'tenant'>
  readonly clock: Clock
  readonly random: Random
}

export type LeasedPayment = Pick<
  X402PaymentRow,
  | 'tenantId'
  | 'id'
  | 'chargeId'
  | 'checkoutSessionId'
  | 'network'
  | 'asset'
  | 'payer'
  | 'payTo'
  | 'amount'
  | 'nonce'
> & { readonly version: 1 | 2; readonly lease: string }

/** The item that is paid: a link, which creates a charge, or a session, which has one. */
export type Bill = LinkBill | SessionBill
type SessionBill = {
  readonly tag: 'session'
  readonly sessionId: string
  readonly chargeId: string
}
type LinkBill = {
  readonly tag: 'link'
  readonly amountMinor: number
  readonly currency: string
  readonly quantity: number
  readonly metadata: Record<string, unknown>
  readonly productId: string
  readonly priceId: string
  readonly paymentLinkId: string
  readonly buyerCountry: string
  readonly buyerRegion: string
}

/** The item that a payment pays. The same proof for another target is another payment. */
export type Target = {
  readonly paymentLinkId: string | null
  readonly checkoutSessionId: string | null
}

export function targetOfBill(bill: Bill): Target {
  return bill.tag === 'link'
    ? { paymentLinkId: bill.paymentLinkId, checkoutSessionId: null }
    : { paymentLinkId: null, checkoutSessionId: bill.sessionId }
}

/** The payer's account as a CAIP-10 id. */
function buyerOf({ network, payer }: Pick<LeasedPayment, 'network' | 'payer'>): string {
  return `${network}:${payer}`
}

export function expectedOf({ version, network, payer, amount }: LeasedPayment): Expected {
  return { network: version === 1 ? v1NetworkOf(network)! : network, payer, amount }
}

export function onChain({ asset, payer, payTo, amount, nonce }: LeasedPayment): OnChain {
  return { asset, payer, payTo, amount, nonce }
}

/** Additional work in the transaction that ends a payment. */
type Also = (tx: Transaction) => Promise<unknown> | void
const nothing: Also = () => undefined

/**
 * verifying -> settling, with the pending charge.
 * @param leaseSecs time until a worker checks the payment.
 * @returns `lost` when the lease was lost, `taken` when another payment pays the session or it
 *   cannot be paid any more.
 */
export function beginPayment(
  needs: EndingNeeds,
  leased: LeasedPayment,
  bill: Bill,
  leaseSecs: number,
  requestId: string | undefined,
): Promise<'begun' | 'lost' | 'taken'> {
  const { tenantId, id, chargeId, lease } = leased
  return needs.database.tenant(tenantId, async (tx) => {
    const now = needs.clock.now()
    const session = bill.tag === 'session' ? bill.sessionId : null
    if (session !== null && !(await lockOpenCheckout(tx, tenantId, session, now))) return 'taken'
    if (!(await beginX402Settlement(tx, tenantId, id, lease, leaseSecs))) return 'lost'
    if (bill.tag === 'session') {
      const payment = { tenantId, id: bill.sessionId, rail: PROVIDER, customerEmail: null, now }
      // The due time is in the payment's own row.
      if (await beginPaying(tx, { ...payment, dueAt: null })) return 'begun'
      throw new Error('an open session has a charge that is not pending')
    }
    const { tag: _link, ...sold } = bill
    const charge = {
      ...sold,
      tenantId,
      id: chargeId,
      rail: PROVIDER,
      railReference: id,
      buyerId: buyerOf(leased),
      // The due time is in the payment's own row.
      dueAt: null,
      createdAt: now,
    }
    const opened = await openCharge(tx, { ...needs, requestId }, charge)
    if (opened === undefined) throw new Error('a payment has a charge before it began')
    appendEvents(tx, opened.events)
    return 'begun'
  })
}

/** settling -> settled. @returns false when the lease was lost. */
export function settlePayment(
  needs: EndingNeeds,
  leased: LeasedPayment,
  transaction: string,
  requestId?: string,
  also: Also = nothing,
): Promise<boolean> {
  const { tenantId, id, chargeId, lease } = leased
  return needs.database.tenant(tenantId, async (tx) => {
    const end = { state: 'settled', transaction } as const
    if (!(await endX402Payment(tx, tenantId, id, lease, end))) return false
    const charge = await findCharge(tx, tenantId, chargeId)
    if (charge === undefined) throw new Error('a payment that settles has a charge')
    const answer = {
      tag: 'taken',
      reference: id,
      mandate: null,
      disputed: null,
      buyerId: buyerOf(leased),
      // The token moved from the buyer to the merchant. No money passes through this service.
      direct: true,
    } as const
    const events = await applyAnswer(tx, { ...needs, requestId }, charge, PROVIDER, answer)
    if (events === undefined) throw new Error('the charge of a payment ended before the payment')
    await also(tx)
    appendEvents(tx, events)
    return true
  })
}

/** Fails the charge of a link, or reopens a session. @returns false when the lease was lost. */
export function failPayment(
  needs: EndingNeeds,
  leased: LeasedPayment,
  reason: ErrorReason,
  requestId?: string,
  also: Also = nothing,
): Promise<boolean> {
  const { tenantId, id, chargeId, checkoutSessionId, lease } = leased
  return needs.database.tenant(tenantId, async (tx) => {
    const end = { state: 'failed', errorReason: reason } as const
    if (!(await endX402Payment(tx, tenantId, id, lease, end))) return false
    if (checkoutSessionId !== null) {
      await reopenCheckout(tx, tenantId, chargeId, needs.clock.now())
      await also(tx)
      return true
    }
    const ended = { tenantId, chargeId, code: reason }
    const failed = await chargeFailed(tx, { ...needs, requestId }, ended)
    if (failed === undefined) throw new Error('the charge of a payment ended before the payment')
    await also(tx)
    appendEvents(tx, failed.events)
    return true
  })
}

/** Schedules another check. @returns false when the lease was lost. */
export function postponePayment(
  { database }: EndingNeeds,
  leased: LeasedPayment,
  againSecs: number,
  transaction: string | null,
): Promise<boolean> {
  return database.tenant(leased.tenantId, (tx) =>
    postponeX402Payment(tx, leased, againSecs, transaction),
  )
}

/**
 * Verifies the facilitator's result on the chain, where it is watched: a settlement needs its
 * transfer, and a failure needs an unspent authorization.
 */
export async function confirmed(
  settlement: SettlementResult,
  look: ((transaction: string | null) => Promise<AuthorizationStatus>) | null,
): Promise<SettlementResult> {
  if (look === null || settlement.tag === 'unknown') return settlement
  const transaction = settlement.tag === 'settled' ? settlement.transaction : null
  const seen = await look(transaction)
  if (seen.tag === 'settled') return { tag: 'settled', transaction: seen.transaction }
  if (seen.tag === 'cancelled') return { tag: 'failed', reason: 'invalid_transaction_state' }
  if (seen.tag === 'unspent' && settlement.tag === 'failed') return settlement
  const error = seen.tag === 'unclear' ? seen.error : 'not on the chain'
  return { tag: 'unknown', error, transaction }
}

/** Polls until the chain shows the transfer or the time is over. */
export function patientLook(
  chain: Chain,
  leased: LeasedPayment,
  options: {
    readonly withinMs: number
    readonly clock: Clock
    readonly pause: () => Promise<unknown>
  },
) {
  const { withinMs, clock, pause } = options
  return async (transaction: string | null): Promise<AuthorizationStatus> => {
    const endMs = clock.monotonicMs() + withinMs
    for (;;) {
      const seen = await chain.look(onChain(leased), transaction)
      const final = seen.tag === 'settled' || seen.tag === 'cancelled' || transaction === null
      if (final || clock.monotonicMs() >= endMs) return seen
      await pause()
    }
  }
}
