/** Events of commerce and their fields (docs/reference/commerce.md, Events). */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import type { ChargeRow } from '../../../storage/commerce/charges.js'
import type { NewEvent } from '../../../storage/platform/outbox.js'
import type { PayoutRow } from '../../../storage/commerce/payouts.js'
import type { RefundRow } from '../../../storage/commerce/refunds.js'
import type { DisputeRow } from '../../../storage/commerce/disputes.js'
import type { SettlementRow } from '../../../storage/commerce/settlements.js'
import type { MerchantStatementRow } from '../../../storage/commerce/merchant-statements.js'
import { actorOf, type Caller, doneBy } from '../../domain/audit.js'
import { catalogued, type EventFields, type EventType } from '../../domain/events.js'

export type ChargeDeps = {
  readonly clock: Clock
  readonly random: Random
  /** Undefined for what time or a payment provider causes. */
  readonly requestId?: string | undefined
}

/** The actor of events that time or a payment provider causes. */
const SYSTEM = { type: 'service', id: 'commerce' } as const

type TypeOf<Kind extends string> = Extract<EventType, `commerce.${Kind}.${string}`>

/** Members that a refund adds to the event of its charge. */
export function refundFields({
  id,
  amountMinor,
  externalReference,
}: Pick<RefundRow, 'id' | 'amountMinor' | 'externalReference'>) {
  return {
    refund_id: id,
    refund_amount_minor: amountMinor,
    ...known('external_reference', externalReference),
  }
}

/** Payment events have no actor. Merchants correlate them by `metadata`. */
export function paymentEvent<T extends TypeOf<'payment'>>(
  deps: ChargeDeps,
  type: T,
  charge: ChargeRow,
  more: Partial<EventFields<T>> = {},
  caller?: Caller,
): NewEvent {
  const data: EventFields<TypeOf<'payment'>> = {
    charge_id: charge.id,
    amount_minor: charge.amountMinor,
    currency: charge.currency,
    metadata: charge.metadata,
    ...(charge.buyerMetadata === null ? {} : { buyer_metadata: charge.buyerMetadata }),
    ...known('product_id', charge.productId),
    ...known('price_id', charge.priceId),
    ...known('buyer_id', charge.buyerId),
    ...known('customer_email', charge.customerEmail),
    ...known('subscription_id', charge.subscriptionId),
    ...(type === 'commerce.payment.refunded'
      ? { refunded_amount_minor: charge.refundedAmountMinor }
      : {}),
    ...(type === 'commerce.payment.failed' ? known('failure_code', charge.failureCode) : {}),
    ...more,
  }
  const audit = {
    ...(caller === undefined ? {} : doneBy(caller)),
    resource: { type: 'charge', id: charge.id },
    requestId: deps.requestId ?? null,
  }
  return { ...stamped(deps, charge.tenantId), type, data, audit }
}

export const settlementEvent = eventComposer('settlement', (row: SettlementRow) => ({
  charge_id: row.chargeId,
  rail: row.rail,
  amount_minor: row.amountMinor,
  currency: row.currency,
  status: row.status,
  ...known('hold_reason', row.holdReason),
}))

export const disputeEvent = eventComposer('dispute', (row: DisputeRow) => ({
  charge_id: row.chargeId,
  amount_minor: row.amountMinor,
  currency: row.currency,
  reason: row.reason,
  status: row.status,
  ...known('outcome', row.outcome),
}))

export const payoutEvent = eventComposer('payout', (row: PayoutRow) => ({
  rail: row.rail,
  amount_minor: row.amountMinor,
  currency: row.currency,
  status: row.status,
  ...known('failure_code', row.failureCode),
}))

export const statementEvent = eventComposer('statement', (row: MerchantStatementRow) => ({
  currency: row.currency,
  opening_balance_minor: row.openingBalanceMinor,
  closing_balance_minor: row.closingBalanceMinor,
  totals: row.totals,
  period_start: row.periodStart.toISOString(),
  period_end: row.periodEnd.toISOString(),
}))

/** Builds an event composer for one resource type: actor, resource, public fields. */
function eventComposer<
  Kind extends string,
  Row extends { readonly id: string; readonly tenantId: string },
>(kind: Kind, fieldsOf: (row: Row) => EventFields<TypeOf<Kind>>) {
  return (type: TypeOf<Kind>, row: Row, deps: ChargeDeps, caller?: Caller): NewEvent => {
    const actor = caller === undefined ? SYSTEM : actorOf(caller)
    const resource = { type: kind, id: row.id }
    return {
      ...stamped(deps, row.tenantId),
      ...catalogued(type, { actor, resource, requestId: deps.requestId }, fieldsOf(row)),
      ...(caller === undefined ? {} : { audit: doneBy(caller) }),
    }
  }
}

function stamped({ clock, random }: ChargeDeps, tenantId: string) {
  return { id: random.uuid(), tenantId, occurredAt: clock.now() }
}

function known<Name extends string>(name: Name, value: string | null) {
  return (value === null ? {} : { [name]: value }) as { readonly [N in Name]?: string }
}
