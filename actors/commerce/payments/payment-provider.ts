/**
 * The port of a payment provider (the `rail` of a charge on the wire). To add one, implement
 * `PaymentProvider` and register it in `runtime/process/wiring/payment-providers.ts`. Routes, events,
 * ledger and pages need no change.
 *
 * Contract: every request carries an id of ours (of the charge, refund or payout), and the first
 * answer to that id is final. The same request may be repeated, by another process, after a crash,
 * and concurrently. It must move money once. When a request throws or exceeds its signal, its
 * outcome is unknown: the caller repeats the request under the same id, never under a new one.
 *
 * A provider may answer `pending`: the buyer is at the provider's page, or the provider has not
 * decided. The charge stays pending and `conclude` is called later, at the latest at `askAgainAt`.
 */
import type { Environment } from '../../domain/tenants/tenancy.js'

export interface PaymentProvider {
  /** Lower case, as in `charges.rail`. Never changes. */
  readonly name: string
  /** True if buyers of such a tenant are offered the provider for the amount. */
  offers(environment: Environment, amount: PaymentAmount): boolean
  /** Origins of the pages to which `take` redirects buyers. Empty where it redirects none. */
  readonly leadsTo: readonly string[]
  /** Milliseconds that a payment is held before it is available. */
  readonly clearingMs: number
  /** Takes a payment. */
  take(order: ChargeOrder, signal: AbortSignal): Promise<TakeAnswer>
  /**
   * Returns the outcome of a possibly requested payment. An `abandoned` payment that is not taken yet is refused
   * permanently, so that it cannot succeed later. A provider without a payment page refuses any payment that it has not
   * seen.
   */
  conclude(order: ConcludeOrder, signal: AbortSignal): Promise<TakeAnswer>
  /**
   * Looks a payment up while its buyer waits at our page.
   * @returns undefined when it was looked up a moment ago. Absent on providers that answer immediately.
   */
  lookUp?(order: OrderName, signal: AbortSignal): Promise<TakeAnswer | undefined>
  /** Refunds a payment in part or in full. */
  refund(order: RefundOrder, signal: AbortSignal): Promise<DoneAnswer>
  /** Pays the available balance out to the merchant's account. */
  payOut(order: PayoutOrder, signal: AbortSignal): Promise<DoneAnswer>
  /** Absent on providers that send no webhooks. */
  readonly notifications?: ProviderNotifications | undefined
}

/**
 * Notifications that a provider sends: signed webhooks, disputes, and refunds made at its own
 * dashboard.
 */
export interface ProviderNotifications {
  /** Verifies the signature of a webhook and parses it. Pure. */
  readWebhook(body: Uint8Array, signature: string | null, now: Date): WebhookReading
  /** Looks up a dispute. @returns undefined when the provider does not know it. */
  dispute(id: string, signal: AbortSignal): Promise<ProviderDispute | undefined>
  /** Looks up a refund. @returns undefined when the provider does not know it. */
  refund(id: string, signal: AbortSignal): Promise<ProviderRefund | undefined>
}

export type WebhookReading =
  | {
      readonly tag: 'event'
      /** The provider's id of the event, the same in every delivery. */
      readonly id: string
      readonly type: string
      readonly about: 'payment' | 'dispute' | 'refund' | 'nothing'
      /** The provider's id of the object. */
      readonly objectId: string
      /** The provider's id of the object's payment, where the event names one. */
      readonly paymentId: string | null
    }
  | { readonly tag: 'refused'; readonly reason: 'signature' | 'timestamp' | 'body' }

export type ProviderRefund = {
  /** The provider's id of the refunded payment. */
  readonly paymentId: string
  /** Our id of the refund. Null where it was made at the provider's dashboard. */
  readonly refundId: string | null
  readonly amountMinor: number
  readonly currency: string
  readonly answer: DoneAnswer
}

export type ProviderDispute = {
  /** The provider's id of the disputed payment. */
  readonly paymentId: string
  /**
   * Null when the currency differs from ours or the amount is not a whole number of our minor
   * units.
   */
  readonly amountMinor: number | null
  readonly currency: string
  readonly reason: string
  readonly status: 'open' | 'won' | 'lost'
}

type PaymentAmount = { readonly amountMinor: number; readonly currency: string }

export type OrderName = {
  readonly tenantId: string
  readonly chargeId: string
  readonly amountMinor: number
  readonly currency: string
}

export type ChargeOrder = OrderName & {
  readonly by:
    | {
        /** The buyer is at the payment page. */
        readonly tag: 'buyer'
        /** The form's instruction to this provider. */
        readonly instruction: string | null
        /** True: ask for consent to future charges, and return a mandate. */
        readonly again: boolean
        readonly page: BuyerPage
      }
    /** The buyer consented earlier. */
    | { readonly tag: 'mandate'; readonly mandate: string }
}

/** What a provider's page shows, and where it redirects the buyer afterwards. */
type BuyerPage = {
  /** Our payment page. The buyer returns there in any case. */
  readonly url: string
  readonly productName: string
  readonly merchantName: string
  readonly customerEmail: string | null
}

type ConcludeOrder = OrderName & {
  /** The session has expired or the subscription has ended: the payment is no longer wanted. */
  readonly abandoned: boolean
}

export type RefundOrder = OrderName & { readonly refundId: string }
type PayoutOrder = {
  readonly tenantId: string
  readonly payoutId: string
  readonly amountMinor: number
  readonly currency: string
}

/** The final outcome of a payment. */
export type FinalAnswer =
  | {
      readonly tag: 'taken'
      /** The provider's reference of the payment. */
      readonly reference: string
      readonly mandate: string | null
      /** The reason, where the payment is disputed immediately. */
      readonly disputed: string | null
      /** The provider's id of the buyer. */
      readonly buyerId?: string
      /** True if the merchant received the money directly: there is no settlement and no payout. */
      readonly direct?: boolean
    }
  | { readonly tag: 'refused'; readonly code: string }

/** No outcome yet. */
export type PendingAnswer = {
  readonly tag: 'pending'
  /** The provider's page, where the buyer has to act. */
  readonly sendTo: string | null
  /** When to ask again at the latest. Null where the caller asks again without a reminder. */
  readonly askAgainAt: Date | null
}

export type TakeAnswer = FinalAnswer | PendingAnswer

export type FinalDone =
  | { readonly tag: 'done' }
  | { readonly tag: 'refused'; readonly code: string }

/**
 * `pending`: the provider has accepted the request and not finished it. It is asked again later.
 */
export type DoneAnswer = FinalDone | { readonly tag: 'pending' }

export type PaymentProviders = ReadonlyMap<string, PaymentProvider>

export function providersByName(providers: readonly PaymentProvider[]): PaymentProviders {
  return new Map(providers.map((provider) => [provider.name, provider]))
}
