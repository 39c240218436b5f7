/**
 * Payments of payment links and checkout sessions by the x402 protocol (docs/reference/commerce.md,
 * x402).
 */
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import type { Changed, ListOf, Unknown } from '../protocol.js'
import type { Caller } from '../../../domain/audit.js'
import type { Listed } from '../../../domain/paging.js'

export type X402Protocol = {
  /** The price of a link or session, and how to pay it. */
  getX402Challenge: Ask<X402Order, ChallengeOutcome>
  /** Submits a payment proof, or none. */
  payByX402: Ask<PayOrder, PayOutcome>
  /** Lists the payments of a merchant. */
  listX402Payments: Ask<ListPayments, Listed<X402Payment>>
  /** Ends a payment whose outcome neither the chain nor the facilitator reveals. */
  resolveX402Payment: Ask<ResolvePayment, Changed<X402Payment> | ResolutionRefused | Unknown>
}

/** The target as named in the request. */
export type X402Target = { tag: 'link'; token: string } | { tag: 'session'; id: string }

export type X402Order = {
  target: X402Target
  /** As sent. Undefined when absent. */
  buyerCountry: string | undefined
  buyerRegion: string | undefined
}

export type PayOrder = X402Order & {
  /** The PAYMENT-SIGNATURE field (version 2). */
  proof: string | undefined
  /** The X-PAYMENT field (version 1). */
  proofV1: string | undefined
}

/** A challenge in its HTTP form. */
export type PaymentChallenge = {
  /** Value of the PAYMENT-REQUIRED field. */
  header: string
  /**
   * PaymentRequired of version 2, or of version 1 where the deployment supports it and it can
   * express the offer.
   */
  body: Record<string, unknown>
}

/** SettleResponse: the PAYMENT-RESPONSE field. */
export type SettlementResponse = {
  success: boolean
  transaction: string
  network: string
  payer: string
  amount?: string
  /** A code of the list in x402 v2 section 9. */
  errorReason?: string
}

export type OrderFault =
  /** The link or session does not exist, is inactive, or cannot be paid by x402. */
  | { tag: 'unknown' }
  | { tag: 'invalid_buyer'; parameter: 'buyer_country' | 'buyer_region' }
  /** The session is paid, is being paid, or has ended. */
  | { tag: 'not_open' }

export type PaymentRequired = { tag: 'payment_required'; challenge: PaymentChallenge }
export type ChallengeOutcome = PaymentRequired | OrderFault

export type PayOutcome =
  | {
      tag: 'settled'
      chargeId: string
      amountMinor: number
      currency: string
      metadata: Record<string, unknown>
      settlement: SettlementResponse
    }
  | PaymentRequired
  /** Not paid. The buyer may pay again. */
  | { tag: 'refused'; challenge: PaymentChallenge; settlement: SettlementResponse }
  | { tag: 'malformed'; pointer: string; detail: string }
  /** The identifier was used for another payment. */
  | { tag: 'identifier_reused' }
  /** The outcome is unknown for now. The same proof, sent again, returns it. */
  | { tag: 'pending'; chargeId: string }
  /** The payment could not be verified. No money was taken. */
  | { tag: 'unavailable' }
  | OrderFault

/** `unknown`: the settlement is not confirmed yet. */
export type PaymentState = 'verifying' | 'settling' | 'unknown' | 'settled' | 'failed'

export type X402Payment = {
  id: string
  chargeId: string
  /** Exactly one of the two ids is set. */
  paymentLinkId: string | null
  checkoutSessionId: string | null
  state: PaymentState
  /** CAIP-2 id. */
  network: string
  asset: string
  payer: string
  payTo: string
  /** Atomic units of the asset, decimal. */
  amount: string
  nonce: string
  /** Unix seconds, decimal. After this the authorization cannot be spent. */
  validBefore: string
  /** Transaction hash, or the unconfirmed hash that a facilitator named. */
  transaction: string | null
  errorReason: string | null
  /** Number of checks so far. */
  checks: number
  createdAt: Date
}

/** `state`: null for every state. */
export type ListPayments = ListOf & { state: PaymentState | null }

/** The outcome that an operator found on the chain or at the facilitator. */
export type Resolution = { outcome: 'settled'; transaction: string } | { outcome: 'failed' }
export type ResolvePayment = { caller: Caller; id: string; resolution: Resolution }
/** Known facts contradict the outcome, or it is too early for it. */
export type ResolutionRefused = { tag: 'refused_resolution'; detail: string }

export const x402 = address<X402Protocol>('x402')
