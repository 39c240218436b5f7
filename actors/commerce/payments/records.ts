/** Rows as merchants and buyers see them. */
import type { ChargeView } from '../../../storage/commerce/charges.js'
import type { PaymentLinkRow, PriceRow, ProductRow } from '../../../storage/commerce/products.js'
import type { RefundRow } from '../../../storage/commerce/refunds.js'
import type { SubscriptionRow } from '../../../storage/commerce/subscriptions.js'
import type {
  Charge,
  PaymentLink,
  Price,
  Product,
  Recurring,
  Refund,
  Subscription,
} from './protocol.js'

export function productOf({ id, name, active, createdAt }: ProductRow): Product {
  return { id, name, active, createdAt }
}

export function priceOf(row: PriceRow): Price {
  const { id, productId, amountMinor, currency, active, createdAt } = row
  return { id, productId, amountMinor, currency, recurring: recurringOf(row), active, createdAt }
}

/** @returns null for a one-time price. */
export function recurringOf({
  interval,
  intervalCount,
}: Pick<PriceRow, 'interval' | 'intervalCount'>): Recurring | null {
  return interval === null || intervalCount === null ? null : { interval, intervalCount }
}

export function linkOf({ tenantId: _tenant, ...link }: PaymentLinkRow): PaymentLink {
  return link
}

export function chargeOf(row: ChargeView): Charge {
  return {
    id: row.id,
    tenantId: row.tenantId,
    status: row.status,
    rail: row.rail,
    amountMinor: row.amountMinor,
    currency: row.currency,
    refundedAmountMinor: row.refundedAmountMinor,
    failureCode: row.failureCode,
    metadata: row.metadata,
    buyerMetadata: row.buyerMetadata,
    productId: row.productId,
    priceId: row.priceId,
    buyerId: row.buyerId,
    customerEmail: row.customerEmail,
    checkoutSessionId: row.checkoutSessionId,
    paymentLinkId: row.paymentLinkId,
    subscriptionId: row.subscriptionId,
    disputeStatus: row.disputeStatus,
    paidAt: row.paidAt,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
  }
}

export function refundOf(row: RefundRow): Refund {
  const { id, chargeId, amountMinor, status, reason, failureCode, externalReference } = row
  const { createdAt } = row
  return { id, chargeId, amountMinor, status, reason, failureCode, externalReference, createdAt }
}

export function subscriptionOf(row: SubscriptionRow): Subscription {
  return {
    id: row.id,
    productId: row.productId,
    priceId: row.priceId,
    amountMinor: row.amountMinor,
    currency: row.currency,
    recurring: { interval: row.interval, intervalCount: row.intervalCount },
    customerEmail: row.customerEmail,
    metadata: row.metadata,
    status: row.status,
    period: row.period,
    currentPeriodStart: row.currentPeriodStart,
    currentPeriodEnd: row.currentPeriodEnd,
    cancelAtPeriodEnd: row.cancelAtPeriodEnd,
    canceledAt: row.canceledAt,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
  }
}
