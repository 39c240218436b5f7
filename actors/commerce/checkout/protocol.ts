/** What buyers do: check out, pay, and what merchants ask afterwards. decisions.md 10, 20, 22. */
import type { Locale } from '../../domain/locales.js'
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { Charge, Recurring } from '../payments/protocol.js'
import type { IdempotencyClaim } from '../../domain/idempotency.js'

export type CheckoutProtocol = {
  checkout: Ask<Checkout, CheckoutOpened | CheckoutRefused>
  subscribe: Ask<Subscribe, SubscriptionOpened | CheckoutRefused>
  checkoutLink: Ask<CheckoutLink, CheckoutOpened | CheckoutRefused | LinkUnknown>
  /** The payment page as it stands, or the page of a payment link. */
  show: Ask<{ readonly token: string }, PayShown | LinkShown | PayEnded | PayUnknown>
  pay: Ask<Pay, PaySent | PayAgain | PayFull | LinkUnpayable | PayEnded | PayUnknown>
  fulfillment: Ask<AskFulfillment, FulfillmentFound | FulfillmentRefused | ChargeUnknown>
  /** A webhook of the card provider. */
  receiveCardEvent: Ask<CardEvent, CardEventReceived | CardEventRefused | NoCardProvider>
}

/** What every checkout may say; null where it was left out. */
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
  /** Null: the link's. */
  readonly quantity: number | null
}

export type CheckoutOpened = {
  readonly tag: 'opened'
  /**
   * Of the page: it lets its holder pay, and see and change the email address of the buyer. Null in
   * a replay under an idempotency key that others could guess.
   */
  readonly token: string | null
  readonly checkoutSessionId: string
  readonly chargeId: string
  readonly amountMinor: number
  readonly currency: string
  readonly metadata: Readonly<Record<string, unknown>>
  /** What the buyer said at the payment link, whole; null without a link. */
  readonly buyerMetadata: Readonly<Record<string, unknown>> | null
  /** Path at which an agent pays it by x402; null where that is not offered. */
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
  | { readonly tag: 'idempotency_mismatch' }
  | { readonly tag: 'idempotency_in_progress' }
/** The tenant offers no way to pay for it. */
export type NoWayToPay = { readonly tag: 'no_way_to_pay' }
/** Unknown and inactive are the same. */
export type LinkUnknown = { readonly tag: 'unknown_link' }

/** A tenant as its pages show it. */
export type PayTenant = {
  readonly name: string
  readonly color: string | null
  readonly logo: string | null
  readonly locale: Locale | null
  /** An address or page where people find help; null: none. */
  readonly supportContact: string | null
}

/** Where the page is in its life. */
export type PayState = 'open' | 'processing' | 'succeeded' | 'failed' | 'refunded'

/** How something is paid by x402, and by a transfer where the chain is watched. */
export type X402Shown = {
  /** Path at which an agent posts its proof. */
  readonly path: string
  /** One for each token that is accepted. */
  readonly terms: readonly X402Terms[]
}
export type X402Terms = {
  /** CAIP-2. */
  readonly network: string
  /** As people call it. */
  readonly networkName: string
  /** Address of the token. */
  readonly asset: string
  readonly assetName: string
  readonly payTo: string
  /** In whole tokens; with a wallet link, exactly what is recognised as this payment. */
  readonly amount: string
  /** EIP-681; null where a transfer would not be noticed. */
  readonly wallet: string | null
}

export type PayShown = {
  readonly tag: 'page'
  readonly token: string
  readonly state: PayState
  readonly tenant: PayTenant
  readonly productName: string
  readonly quantity: number
  readonly amountMinor: number
  readonly currency: string
  readonly recurring: Recurring | null
  readonly chargeId: string
  readonly customerEmail: string | null
  /** The rails on offer. */
  readonly rails: readonly string[]
  /** The payment was begun at a provider's page, and the form leads back to it. */
  readonly continues: boolean
  /** Origins of the providers' pages to which the form may lead. */
  readonly leadsTo: readonly string[]
  readonly x402: X402Shown | null
  readonly successUrl: string | null
  readonly cancelUrl: string | null
}
/** What a payment link sells. Nothing is begun by looking at it. */
export type LinkShown = Pick<
  PayShown,
  'token' | 'tenant' | 'productName' | 'quantity' | 'amountMinor' | 'currency' | 'x402'
> & {
  readonly tag: 'link_page'
  /** True if the tenant offers a way to pay. */
  readonly payable: boolean
}
/** The button of a link was pressed whose tenant offers no way to pay. */
export type LinkUnpayable = Omit<LinkShown, 'tag'> & { readonly tag: 'link_unpayable' }
/** Paid too late, or never: the page is gone. */
export type PayEnded = { readonly tag: 'ended' }
export type PayUnknown = { readonly tag: 'unknown_page' }

export type Pay = {
  /** Of the page of a checkout, or of a payment link, where a checkout of its own begins. */
  readonly token: string
  readonly rail: string
  /** For the sandbox rail: succeed, decline or dispute. */
  readonly outcome: string | null
  /** As typed; empty for none. */
  readonly customerEmail: string
}
/** Paid, refused, or begun: go there. */
export type PaySent = { readonly tag: 'sent'; readonly location: string }
/** The form said something that cannot be. */
export type PayAgain = Omit<PayShown, 'tag'> & {
  readonly tag: 'again'
  readonly fault: 'email' | 'rail'
}

/** What was paid could not be booked: nothing was taken, and the page stays as it is. */
export type PayFull = Omit<PayShown, 'tag'> & { readonly tag: 'full' }

export type AskFulfillment = {
  readonly chargeId: string
  /** The header as sent; null when absent. */
  readonly secret: string | null
}
export type FulfillmentFound = { readonly tag: 'found'; readonly charge: Charge }
export type FulfillmentRefused = { readonly tag: 'unauthorized' }
export type ChargeUnknown = { readonly tag: 'unknown_charge' }

export type CardEvent = {
  readonly body: Uint8Array
  /** The header as sent; null when absent. */
  readonly signature: string | null
}
/** Taken in, now or before, or of no concern. */
export type CardEventReceived = { readonly tag: 'received' }
export type CardEventRefused = {
  readonly tag: 'event_refused'
  readonly reason: 'signature' | 'timestamp' | 'body'
}
/** `commerce.card.provider` is `none`. */
export type NoCardProvider = { readonly tag: 'no_provider' }

export const checkout = address<CheckoutProtocol>('checkout', ['show', 'fulfillment'])
