/** What buyers do: check out, pay, and what merchants ask afterwards. decisions.md 10, 20, 22. */
import type { Locale } from '../domain/locales.js'
import { address, type Ask } from '../../runtime/kernel/protocol.js'
import type { Charge, Recurring } from '../commerce/protocol.js'
import type { IdempotencyClaim } from '../domain/idempotency.js'

export type CheckoutProtocol = {
  checkout: Ask<Checkout, CheckoutOpened | CheckoutRefused>
  subscribe: Ask<Subscribe, SubscriptionOpened | CheckoutRefused>
  checkoutLink: Ask<CheckoutLink, CheckoutOpened | CheckoutRefused | LinkUnknown>
  /** The payment page as it stands, or the page of a payment link. */
  show: Ask<{ readonly token: string }, PayShown | LinkShown | PayEnded | PayUnknown>
  pay: Ask<Pay, PaySent | PayAgain | PayFull | PayEnded | PayUnknown>
  fulfillment: Ask<AskFulfillment, FulfillmentFound | FulfillmentRefused | ChargeUnknown>
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
  /** Of the page: it lets its holder pay, and nothing else. */
  readonly token: string
  readonly checkoutSessionId: string
  readonly chargeId: string
  readonly amountMinor: number
  readonly currency: string
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
  | { readonly tag: 'idempotency_mismatch' }
  | { readonly tag: 'idempotency_in_progress' }
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
  readonly successUrl: string | null
  readonly cancelUrl: string | null
}
/** What a payment link sells. Nothing is begun by looking at it. */
export type LinkShown = Pick<
  PayShown,
  'token' | 'tenant' | 'productName' | 'quantity' | 'amountMinor' | 'currency'
> & {
  readonly tag: 'link_page'
  /** Whether there is a rail to pay by. */
  readonly payable: boolean
}
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

export const checkout = address<CheckoutProtocol>('checkout', ['show', 'fulfillment'])
