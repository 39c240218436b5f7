/**
 * The port of a payment processor. Whoever adds one implements `Rail` and puts it into
 * `runtime/wiring/payment-providers.ts`; routes, events, ledger and pages stay as they are.
 *
 * The contract: every question carries an id of ours (of the charge, refund or payout), and the
 * first answer to it is the answer for good. The same question may be asked again, by another
 * process, after a crash, and at the same time; it must move money once. A question that throws, or
 * takes longer than its signal lets it, has an unknown answer: we ask again later, never anew.
 *
 * A rail may answer `pending`: the buyer is at the provider's page, or the provider has not decided. The
 * charge stays pending and `conclude` is asked later, at the latest at `askAgainAt`.
 */
import type { Environment } from '../../domain/tenants/tenancy.js'

export interface Rail {
  /** Lower case, as in `charges.rail`; never changed. */
  readonly name: string
  /** Whether buyers of such a tenant are offered it for that amount. */
  offers(environment: Environment, amount: RailAmount): boolean
  /** Origins of the pages to which `take` sends buyers; empty where it sends them nowhere. */
  readonly leadsTo: readonly string[]
  /** Milliseconds that a payment stays held before it is available. */
  readonly clearingMs: number
  /** Takes a payment. */
  take(order: ChargeOrder, signal: AbortSignal): Promise<TakeAnswer>
  /**
   * Returns the outcome of a payment that we may have asked for. An `abandoned` payment is refused for
   * good unless it is taken already, so that it cannot be taken behind our back. A rail without a page
   * of its own refuses any payment that it has not seen.
   */
  conclude(order: ConcludeOrder, signal: AbortSignal): Promise<TakeAnswer>
  /**
   * Looks a payment up while its buyer waits at our page. Undefined when it was looked up a moment ago.
   * Absent on rails that answer at once.
   */
  lookUp?(order: OrderName, signal: AbortSignal): Promise<TakeAnswer | undefined>
  /** Gives a part of a payment, or all of it, back to the buyer. */
  refund(order: RefundOrder, signal: AbortSignal): Promise<DoneAnswer>
  /** Sends what is available to the merchant's account. */
  payOut(order: PayoutOrder, signal: AbortSignal): Promise<DoneAnswer>
  /** Absent on rails whose provider sends no webhooks. */
  readonly provider?: RailProvider | undefined
}

/** What a provider says without being asked: signed webhooks, disputes, refunds made at its own dashboard. */
export interface RailProvider {
  /** Verifies the signature of a webhook and reads it. Pure. */
  readWebhook(body: Uint8Array, signature: string | null, now: Date): WebhookReading
  /** Looks up a dispute; undefined when the provider does not know it. */
  dispute(id: string, signal: AbortSignal): Promise<ProviderDispute | undefined>
  /** Looks up a refund; undefined when the provider does not know it. */
  refund(id: string, signal: AbortSignal): Promise<ProviderRefund | undefined>
}

export type WebhookReading =
  | {
      readonly tag: 'event'
      /** The provider's id of the event; the same in every delivery of it. */
      readonly id: string
      readonly type: string
      readonly about: 'payment' | 'dispute' | 'refund' | 'nothing'
      /** The provider's id of the object. */
      readonly objectId: string
      /** The provider's id of the payment that the object belongs to, where it names one. */
      readonly paymentId: string | null
    }
  | { readonly tag: 'refused'; readonly reason: 'signature' | 'timestamp' | 'body' }

export type ProviderRefund = {
  /** The provider's id of the payment that was given back. */
  readonly paymentId: string
  /** Our id of the refund; null where it was made at the provider's dashboard. */
  readonly refundId: string | null
  readonly amountMinor: number
  readonly currency: string
  readonly answer: DoneAnswer
}

export type ProviderDispute = {
  /** The provider's id of the disputed payment. */
  readonly paymentId: string
  /** Null where the currency is another one than ours or the amount is not a whole number of our units. */
  readonly amountMinor: number | null
  readonly currency: string
  readonly reason: string
  readonly status: 'open' | 'won' | 'lost'
}

export type RailAmount = { readonly amountMinor: number; readonly currency: string }

export type OrderName = {
  readonly tenantId: string
  /** Of the charge. */
  readonly chargeId: string
  readonly amountMinor: number
  readonly currency: string
}

export type ChargeOrder = OrderName & {
  readonly by:
    | {
        /** The buyer is at the page. */
        readonly tag: 'buyer'
        /** What the page's form said to this rail. */
        readonly instruction: string | null
        /** Ask for consent to be charged again, and answer with a mandate. */
        readonly again: boolean
        readonly page: BuyerPage
      }
    /** The buyer consented before. */
    | { readonly tag: 'mandate'; readonly mandate: string }
}

/** What a provider's page shows, and where it sends the buyer afterwards. */
export type BuyerPage = {
  /** Our payment page: the buyer returns there, paid or not. */
  readonly url: string
  readonly productName: string
  readonly merchantName: string
  readonly customerEmail: string | null
}

export type ConcludeOrder = OrderName & {
  /** The page has expired or the subscription has ended: the payment is no longer wanted. */
  readonly abandoned: boolean
}

export type RefundOrder = OrderName & { readonly refundId: string }
export type PayoutOrder = {
  readonly tenantId: string
  readonly payoutId: string
  readonly amountMinor: number
  readonly currency: string
}

/** The outcome of a payment, final. */
export type FinalAnswer =
  | {
      readonly tag: 'taken'
      /** How the rail names the payment. */
      readonly reference: string
      readonly mandate: string | null
      /** The reason, where the payment is disputed at once. */
      readonly disputed: string | null
      /** How the rail names the buyer. */
      readonly buyerId?: string
      /** True if the money went to the merchant itself: there is nothing to settle or to pay out. */
      readonly direct?: boolean
    }
  | { readonly tag: 'refused'; readonly code: string }

/** No outcome yet. */
export type PendingAnswer = {
  readonly tag: 'pending'
  /** The provider's page, where the buyer has to act. */
  readonly sendTo: string | null
  /** When to ask again at the latest; null where the caller asks again without a reminder. */
  readonly askAgainAt: Date | null
}

export type TakeAnswer = FinalAnswer | PendingAnswer

export type FinalDone =
  | { readonly tag: 'done' }
  | { readonly tag: 'refused'; readonly code: string }

/** `pending`: the provider has accepted it and not finished, so that it is asked again later. */
export type DoneAnswer = FinalDone | { readonly tag: 'pending' }

export type Rails = ReadonlyMap<string, Rail>

export function railsOf(rails: readonly Rail[]): Rails {
  return new Map(rails.map((rail) => [rail.name, rail]))
}
