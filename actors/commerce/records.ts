/** What merchants and buyers see of goods and charges. decisions.md 10, 17, 22 (records). */

export type BillingInterval = 'day' | 'week' | 'month' | 'year'

export type Product = {
  readonly id: string
  readonly name: string
  readonly active: boolean
  readonly createdAt: Date
}

export type Price = {
  readonly id: string
  readonly productId: string
  readonly amountMinor: number
  readonly currency: string
  /** Null for a price that is paid once. */
  readonly recurring: {
    readonly interval: BillingInterval
    readonly intervalCount: number
  } | null
  readonly active: boolean
  readonly createdAt: Date
}

/** Terms of its own under which a link is payable by x402. */
export type LinkTerms = {
  readonly network: string
  readonly asset?: string | undefined
  readonly pay_to?: string | undefined
}

export type PaymentLink = {
  readonly id: string
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
