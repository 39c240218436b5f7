/**
 * Messages of buyers (checkout, payment page) and of merchants that look up a charge.
 * docs/reference/commerce.md.
 */
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import type { Charge, Recurring } from '../protocol.js'
import type { IdempotencyClaim, IdempotencyRefused } from '../../../domain/idempotency.js'
import type { PageTenant } from '../../../domain/tenants/branding.js'

export type CheckoutProtocol = {
  createCheckoutSession: Ask<Checkout, CheckoutOpened | CheckoutRefused>
  createSubscriptionCheckoutSession: Ask<Subscribe, SubscriptionOpened | CheckoutRefused>
  checkoutPaymentLink: Ask<CheckoutLink, CheckoutOpened | CheckoutRefused | LinkUnknown>
  /** Shows the payment page, or the page of a payment link. */
  showPayment: Ask<{ readonly token: string }, PayShown | LinkShown | PayEnded | PayUnknown>
  pay: Ask<Pay, PaySent | PayAgain | PayFull | LinkUnpayable | PayEnded | PayUnknown>
  getFulfillment: Ask<AskFulfillment, FulfillmentFound | FulfillmentRefused | ChargeUnknown>
  /** Receives a webhook of the card provider. */
  receiveCardEvent: Ask<CardEvent, CardEventReceived | CardEventRefused | NoCardProvider>
}

/** Details that every checkout accepts. Null where the request omits one. */
export type CheckoutDetails = {
  readonly successUrl: string | null
  readonly cancelUrl: string | null
  readonly customerEmail: string | null
  readonly buyerCountry: string | null
  readonly buyerRegion: string | null
  readonly metadata: Readonly<Record<string, unknown>>
  readonly idempotency: IdempotencyClaim | null
}
export type Checkout = CheckoutDetails & { readonly priceId: string; readonly quantity: number }
export type Subscribe = CheckoutDetails & { readonly priceId: string }
export type CheckoutLink = CheckoutDetails & {
  readonly token: string
  /** Null: the quantity of the link. */
  readonly quantity: number | null
}

export type CheckoutOpened = {
  readonly tag: 'opened'
  /**
   * Token of the payment page. Its holder can pay, and can read and change the buyer's email
   * address. Null in a replay under an idempotency key that others could guess.
   */
  readonly token: string | null
  readonly checkoutSessionId: string
  readonly chargeId: string
  readonly amountMinor: number
  readonly currency: string
  readonly metadata: Readonly<Record<string, unknown>>
  /** The buyer's metadata at the payment link, unmerged. Null without a link. */
  readonly buyerMetadata: Readonly<Record<string, unknown>> | null
  /** Path at which an agent pays by x402. Null where x402 is not offered. */
  readonly x402Path: string | null
  readonly expiresAt: Date
  readonly replayed: boolean
}
export type SubscriptionOpened = Omit<CheckoutOpened, 'tag'> & {
  readonly tag: 'subscription_opened'
  readonly subscriptionId: string
  readonly recurring: Recurring
}
export type CheckoutRefused =
  | {
      readonly tag: 'refused'
      readonly error:
        | 'invalid_price'
        | 'invalid_buyer'
        | 'redirect_host_not_allowed'
        | 'bad_request'
      /** JSON pointer into the body. */
      readonly pointer: string
      readonly detail: string
    }
  | NoWayToPay
  | IdempotencyRefused
/** The tenant offers no payment method for the price. */
export type NoWayToPay = { readonly tag: 'no_way_to_pay' }
/** The link does not exist or is inactive. */
export type LinkUnknown = { readonly tag: 'unknown_link' }

/** State of the payment page. */
export type PayState = 'open' | 'processing' | 'succeeded' | 'failed' | 'refunded'

/** How to pay by x402 or by a transfer. */
export type X402Shown = {
  /** Path to which an agent posts its payment proof. */
  readonly path: string
  /** One entry per accepted token. */
  readonly terms: readonly X402Terms[]
}
export type X402Terms = {
  /** CAIP-2 id. */
  readonly network: string
  /** Display name of the network. */
  readonly networkName: string
  /** Contract address of the token. */
  readonly asset: string
  readonly assetName: string
  readonly payTo: string
  /** In whole tokens. The exact amount, where the payment is recognised by it. */
  readonly amount: string
  /** EIP-681 URI. Null on the page of a payment link, because each checkout has another amount. */
  readonly wallet: string | null
  /** True if the service sees the transfer, and completes the checkout by it. */
  readonly recognised: boolean
}

export type PayShown = {
  readonly tag: 'page'
  readonly token: string
  readonly state: PayState
  readonly tenant: PageTenant
  readonly productName: string
  readonly quantity: number
  readonly amountMinor: number
  readonly currency: string
  readonly recurring: Recurring | null
  readonly chargeId: string
  /** Null: not paid. */
  readonly paidAt: Date | null
  readonly refundedAmountMinor: number
  readonly customerEmail: string | null
  /** Names of the payment providers on offer. */
  readonly rails: readonly string[]
  /** True if a payment was started at a provider's page. The form continues it. */
  readonly continues: boolean
  /** Origins of the provider pages to which the form may redirect (CSP form-action). */
  readonly leadsTo: readonly string[]
  readonly x402: X402Shown | null
  readonly successUrl: string | null
  readonly cancelUrl: string | null
}
/** What a payment link sells. Viewing it starts nothing. */
export type LinkShown = Pick<
  PayShown,
  'token' | 'tenant' | 'productName' | 'quantity' | 'amountMinor' | 'currency' | 'x402'
> & {
  readonly tag: 'link_page'
  /** True if the tenant offers a payment method. */
  readonly payable: boolean
}
/** The buyer submitted the page of a link whose tenant offers no payment method. */
export type LinkUnpayable = Omit<LinkShown, 'tag'> & { readonly tag: 'link_unpayable' }
/** The session expired or is over. */
export type PayEnded = { readonly tag: 'ended' }
export type PayUnknown = { readonly tag: 'unknown_page' }

export type Pay = {
  /** Token of a checkout session, or of a payment link, which opens a checkout. */
  readonly token: string
  readonly rail: string
  /** For the sandbox provider: succeed, decline or dispute. */
  readonly outcome: string | null
  /** As typed. Empty for none. */
  readonly customerEmail: string
}
/** Paid, refused, or started: redirect the buyer. */
export type PaySent = { readonly tag: 'sent'; readonly location: string }
/** The form has an invalid value. */
export type PayAgain = Omit<PayShown, 'tag'> & {
  readonly tag: 'again'
  readonly fault: 'email' | 'rail'
}

/** The ledger has no room for the amount. No money was taken, and the page stays unchanged. */
export type PayFull = Omit<PayShown, 'tag'> & { readonly tag: 'full' }

export type AskFulfillment = {
  readonly chargeId: string
  /** The header value. Null when absent. */
  readonly secret: string | null
}
export type FulfillmentFound = { readonly tag: 'found'; readonly charge: Charge }
export type FulfillmentRefused = { readonly tag: 'unauthorized' }
export type ChargeUnknown = { readonly tag: 'unknown_charge' }

export type CardEvent = {
  readonly body: Uint8Array
  /** The header value. Null when absent. */
  readonly signature: string | null
}
/** Stored now, stored before, or ignored. */
export type CardEventReceived = { readonly tag: 'received' }
export type CardEventRefused = {
  readonly tag: 'event_refused'
  readonly reason: 'signature' | 'timestamp' | 'body'
}
/** `commerce.card.provider` is `none`. */
export type NoCardProvider = { readonly tag: 'no_provider' }

export const checkout = address<CheckoutProtocol>('checkout', {
  idempotent: ['getFulfillment'],
})
