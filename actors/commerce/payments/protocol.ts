/**
 * Messages of merchants about their catalog, charges and subscriptions. docs/reference/commerce.md.
 */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { Caller } from '../../domain/audit.js'
import type { Creation, IdempotencyRefused } from '../../domain/idempotency.js'
import type { TenantId } from '../../domain/ids.js'
import type { Listed, Page } from '../../domain/paging.js'
import type { MemberInvalid } from '../../domain/entities/messages.js'

export type CommerceProtocol = {
  createProduct: Ask<CreateProduct, Created<Product> | GoodsRefused>
  listProducts: Ask<ListOf, Listed<Product>>
  getProduct: Ask<Named, Found<Product> | Unknown>
  changeProduct: Ask<Activate, Changed<Product> | Unknown>
  createPrice: Ask<CreatePrice, Created<Price> | GoodsRefused>
  listPrices: Ask<ListOf, Listed<Price>>
  getPrice: Ask<Named, Found<Price> | Unknown>
  changePrice: Ask<Activate, Changed<Price> | Unknown>
  createPaymentLink: Ask<CreatePaymentLink, Created<PaymentLink> | GoodsRefused>
  listPaymentLinks: Ask<ListOf, Listed<PaymentLink>>
  getPaymentLink: Ask<Named, Found<PaymentLink> | Unknown>
  changePaymentLink: Ask<Activate, Changed<PaymentLink> | Unknown>
  listCharges: Ask<ListOf, Listed<Charge>>
  getCharge: Ask<Named, Found<Charge> | Unknown>
  refundCharge: Ask<RefundCharge, RefundOutcome>
  listRefunds: Ask<Named, RefundsListed | Unknown>
  listSubscriptions: Ask<ListOf, Listed<Subscription>>
  getSubscription: Ask<Named, Found<Subscription> | Unknown>
  cancelSubscription: Ask<CancelSubscription, Changed<Subscription> | Unknown | NotOpen>
  simulateRenewal: Ask<SimulateRenewal, Changed<Subscription> | Unknown | NotOpen>
}

export type BillingInterval = 'day' | 'week' | 'month' | 'year'

export type Product = {
  readonly id: string
  readonly name: string
  readonly active: boolean
  readonly createdAt: Date
}

export type Recurring = { readonly interval: BillingInterval; readonly intervalCount: number }

export type Price = {
  readonly id: string
  readonly productId: string
  readonly amountMinor: number
  readonly currency: string
  /** Null for a one-time price. */
  readonly recurring: Recurring | null
  readonly active: boolean
  readonly createdAt: Date
}

/** x402 terms of a payment link. */
export type LinkTerms = {
  readonly network: string
  readonly asset?: string | undefined
  readonly pay_to?: string | undefined
}

export type PaymentLink = {
  readonly id: string
  /** Published by the merchant, not a secret. */
  readonly token: string
  readonly priceId: string
  readonly quantity: number
  readonly metadata: Readonly<Record<string, unknown>>
  readonly x402: LinkTerms | null
  readonly active: boolean
  readonly createdAt: Date
}

export type Charge = {
  readonly id: string
  readonly tenantId: string
  readonly status: 'pending' | 'succeeded' | 'failed' | 'refunded'
  readonly rail: string | null
  readonly amountMinor: number
  readonly currency: string
  readonly refundedAmountMinor: number
  readonly failureCode: string | null
  readonly metadata: Readonly<Record<string, unknown>>
  /** The buyer's metadata at a payment link, unmerged. */
  readonly buyerMetadata: Readonly<Record<string, unknown>> | null
  readonly productId: string | null
  readonly priceId: string | null
  readonly buyerId: string | null
  readonly customerEmail: string | null
  readonly checkoutSessionId: string | null
  readonly paymentLinkId: string | null
  readonly subscriptionId: string | null
  readonly disputeStatus: 'opened' | 'closed' | null
  readonly paidAt: Date | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

export type ListOf = Page & { readonly tenantId: TenantId }
export type Named = { readonly tenantId: TenantId; readonly id: string }
export type Found<Row> = { readonly tag: 'found'; readonly row: Row }
export type Changed<Row> = { readonly tag: 'changed'; readonly row: Row }
export type Unknown = { readonly tag: 'unknown' }
export type Created<Row> = {
  readonly tag: 'created'
  readonly row: Row
  readonly replayed: boolean
}
export type Invalid = MemberInvalid
export type GoodsRefused = Invalid | IdempotencyRefused

export type CreateProduct = Creation & { readonly name: string }
export type CreatePrice = Creation & {
  readonly productId: string
  readonly amountMinor: number
  readonly currency: string
  readonly recurring: Recurring | null
}
export type CreatePaymentLink = Creation & {
  readonly priceId: string
  readonly quantity: number
  readonly metadata: Readonly<Record<string, unknown>>
  readonly x402: LinkTerms | null
}
export type Activate = {
  readonly caller: Caller
  readonly id: string
  readonly active: boolean
}

export type RefundCharge = Creation & {
  readonly chargeId: string
  /** Null: the whole rest. */
  readonly amountMinor: number | null
  readonly reason: string | null
  /**
   * The merchant's reference of a refund made elsewhere. Required where the provider cannot refund.
   */
  readonly externalReference: string | null
}
export type Refund = {
  readonly id: string
  readonly chargeId: string
  readonly amountMinor: number
  readonly status: 'pending' | 'succeeded' | 'failed' | 'recorded'
  readonly reason: string | null
  readonly failureCode: string | null
  readonly externalReference: string | null
  readonly createdAt: Date
}
export type RefundsListed = { readonly tag: 'refunds'; readonly refunds: readonly Refund[] }
export type RefundOutcome =
  | {
      readonly tag: 'refunded'
      readonly charge: Charge
      readonly refund: Refund
      readonly replayed: boolean
    }
  | { readonly tag: 'disputed' }
  | { readonly tag: 'not_paid' }
  /** The merchant's balance at the provider, available and in reserve, is less than the refund. */
  | { readonly tag: 'insufficient_funds' }
  /** The provider cannot refund its payments. */
  | { readonly tag: 'no_refunds' }
  | { readonly tag: 'refused'; readonly code: string }
  | Unknown
  | Invalid
  | IdempotencyRefused

export type Subscription = {
  readonly id: string
  readonly productId: string
  readonly priceId: string
  readonly amountMinor: number
  readonly currency: string
  readonly recurring: Recurring
  readonly customerEmail: string
  readonly metadata: Readonly<Record<string, unknown>>
  readonly status: 'incomplete' | 'active' | 'past_due' | 'canceled'
  readonly period: number
  readonly currentPeriodStart: Date | null
  readonly currentPeriodEnd: Date | null
  readonly cancelAtPeriodEnd: boolean
  readonly canceledAt: Date | null
  readonly createdAt: Date
  readonly updatedAt: Date
}
export type CancelSubscription = {
  readonly caller: Caller
  readonly id: string
  /** False: immediately. */
  readonly atPeriodEnd: boolean
}
/** For sandboxes: sets the outcome of future renewals and runs the next one now. */
export type SimulateRenewal = {
  readonly caller: Caller
  readonly id: string
  readonly outcome: 'succeed' | 'decline'
}
/** The subscription is in no state for the change. */
export type NotOpen = { readonly tag: 'not_open'; readonly detail: string }

export const commerce = address<CommerceProtocol>('commerce', {
  idempotent: [
    'listProducts',
    'getProduct',
    'listPrices',
    'getPrice',
    'listPaymentLinks',
    'getPaymentLink',
    'listCharges',
    'getCharge',
    'listRefunds',
    'listSubscriptions',
    'getSubscription',
  ],
})
