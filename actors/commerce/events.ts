/** What commerce tells receivers. interface.md, Event types: fields of payment events. */
import type { ChargeRow } from '../../storage/charges.js'
import type { NewEvent } from '../../storage/outbox.js'
import type { PayoutRow } from '../../storage/payouts.js'
import type { DisputeRow } from '../../storage/disputes.js'
import type { SettlementRow } from '../../storage/settlements.js'
import type { StatementRow } from '../../storage/statements.js'
import { actorOf, type Caller, doneBy } from '../domain/audit.js'
import { eventData } from '../domain/events.js'
import type { ChargeMeans } from './charges.js'

/** No person and no agent does what time and rails do. */
const SYSTEM = { type: 'service', id: 'commerce' } as const

type PaymentType =
  | 'commerce.payment.pending'
  | 'commerce.payment.succeeded'
  | 'commerce.payment.failed'
  | 'commerce.payment.refunded'

/** Payment events have no actor: `metadata` is what a merchant correlates by. */
export function paymentEvent(
  type: PaymentType,
  charge: ChargeRow,
  { clock, random }: ChargeMeans,
  requestId?: string,
  caller?: Caller,
): NewEvent {
  return {
    id: random.uuid(),
    tenantId: charge.tenantId,
    type,
    occurredAt: clock.now(),
    data: {
      charge_id: charge.id,
      amount_minor: charge.amountMinor,
      currency: charge.currency,
      metadata: charge.metadata,
      ...known('product_id', charge.productId),
      ...known('price_id', charge.priceId),
      ...known('buyer_id', charge.buyerId),
      ...known('customer_email', charge.customerEmail),
      ...known('subscription_id', charge.subscriptionId),
      ...(type === 'commerce.payment.refunded'
        ? { refunded_amount_minor: charge.refundedAmountMinor }
        : {}),
      ...(type === 'commerce.payment.failed' ? known('failure_code', charge.failureCode) : {}),
    },
    audit: {
      ...(caller === undefined ? {} : doneBy(caller)),
      resource: { type: 'charge', id: charge.id },
      requestId: requestId ?? null,
    },
  }
}

type SettlementType =
  | 'commerce.settlement.created'
  | 'commerce.settlement.held'
  | 'commerce.settlement.released'

export function settlementEvent(
  type: SettlementType,
  settlement: SettlementRow,
  { clock, random }: ChargeMeans,
  requestId?: string,
): NewEvent {
  const { id, tenantId } = settlement
  return {
    id: random.uuid(),
    tenantId,
    type,
    occurredAt: clock.now(),
    data: eventData(
      { actor: SYSTEM, resource: { type: 'settlement', id }, requestId },
      {
        charge_id: settlement.chargeId,
        rail: settlement.rail,
        amount_minor: settlement.amountMinor,
        currency: settlement.currency,
        status: settlement.status,
        ...known('hold_reason', settlement.holdReason),
      },
    ),
  }
}

export function disputeEvent(
  type: 'commerce.dispute.opened' | 'commerce.dispute.closed',
  dispute: DisputeRow,
  { clock, random }: ChargeMeans,
  requestId?: string,
  caller?: Caller,
): NewEvent {
  const { id, tenantId } = dispute
  return {
    id: random.uuid(),
    tenantId,
    type,
    occurredAt: clock.now(),
    data: eventData(
      { actor: byWhom(caller), resource: { type: 'dispute', id }, requestId },
      {
        charge_id: dispute.chargeId,
        amount_minor: dispute.amountMinor,
        currency: dispute.currency,
        reason: dispute.reason,
        status: dispute.status,
        ...known('outcome', dispute.outcome),
      },
    ),
    ...(caller === undefined ? {} : { audit: doneBy(caller) }),
  }
}

export function payoutEvent(
  type: 'commerce.payout.submitted' | 'commerce.payout.paid' | 'commerce.payout.failed',
  payout: PayoutRow,
  { clock, random }: ChargeMeans,
  requestId?: string,
  caller?: Caller,
): NewEvent {
  const { id, tenantId } = payout
  return {
    id: random.uuid(),
    tenantId,
    type,
    occurredAt: clock.now(),
    data: eventData(
      { actor: byWhom(caller), resource: { type: 'payout', id }, requestId },
      {
        rail: payout.rail,
        amount_minor: payout.amountMinor,
        currency: payout.currency,
        status: payout.status,
        ...known('failure_code', payout.failureCode),
      },
    ),
    ...(caller === undefined ? {} : { audit: doneBy(caller) }),
  }
}

export function statementEvent(
  statement: StatementRow,
  { clock, random }: ChargeMeans,
  requestId?: string,
  caller?: Caller,
): NewEvent {
  const { id, tenantId } = statement
  return {
    id: random.uuid(),
    tenantId,
    type: 'commerce.statement.created',
    occurredAt: clock.now(),
    data: eventData(
      { actor: byWhom(caller), resource: { type: 'statement', id }, requestId },
      {
        currency: statement.currency,
        opening_balance_minor: statement.openingBalanceMinor,
        closing_balance_minor: statement.closingBalanceMinor,
        totals: statement.totals,
        period_start: statement.periodStart.toISOString(),
        period_end: statement.periodEnd.toISOString(),
      },
    ),
    ...(caller === undefined ? {} : { audit: doneBy(caller) }),
  }
}

function byWhom(caller: Caller | undefined): { readonly type: string; readonly id: string } {
  return caller === undefined ? SYSTEM : actorOf(caller)
}

function known(name: string, value: string | null): Record<string, string> {
  return value === null ? {} : { [name]: value }
}
