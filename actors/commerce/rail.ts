/**
 * The port of a payment processor. Whoever adds one implements `Rail` and puts it into
 * `runtime/rails.ts`; routes, events, ledger and pages stay as they are.
 *
 * The contract: every question carries an id of ours (of the charge, refund or payout), and the
 * first answer to it is the answer for good. The same question may be asked again, by another
 * process, after a crash, and at the same time; it must move money once. A question that throws, or
 * takes longer than its signal lets it, has an unknown answer: we ask again later, never anew.
 */
import type { Environment } from '../domain/tenancy.js'

export interface Rail {
  /** Lower case, as in `charges.rail`; never changed. */
  readonly name: string
  /** Whether buyers of such a tenant are offered it. */
  offers(environment: Environment): boolean
  /** Takes a payment. */
  take(order: ChargeOrder, signal: AbortSignal): Promise<TakeAnswer>
  /**
   * Tells what became of a payment that we may have asked for. One that the rail has not seen until
   * now is refused for good, so that it cannot be taken behind our back.
   */
  conclude(order: OrderName, signal: AbortSignal): Promise<TakeAnswer>
  /** Gives a part of a payment, or all of it, back to the buyer. */
  refund(order: RefundOrder, signal: AbortSignal): Promise<DoneAnswer>
  /** Sends what is available to the merchant's account. */
  payOut(order: PayoutOrder, signal: AbortSignal): Promise<DoneAnswer>
}

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
      }
    /** The buyer consented before. */
    | { readonly tag: 'mandate'; readonly mandate: string }
}

export type RefundOrder = OrderName & { readonly refundId: string }
export type PayoutOrder = {
  readonly tenantId: string
  readonly payoutId: string
  readonly amountMinor: number
  readonly currency: string
}

export type TakeAnswer =
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

export type DoneAnswer =
  | { readonly tag: 'done' }
  | { readonly tag: 'refused'; readonly code: string }

export type Rails = ReadonlyMap<string, Rail>

export function railsOf(rails: readonly Rail[]): Rails {
  return new Map(rails.map((rail) => [rail.name, rail]))
}
