/** Payments of payment links and checkout sessions by the x402 protocol (decisions.md sections 11, 18 and 22). */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { Changed, Listed, ListOf, Unknown } from '../payments/protocol.js'
import type { Caller } from '../../domain/audit.js'

export type X402Protocol = {
  /** What a link or a session costs and how it is paid. */
  challenge: Ask<X402Order, ChallengeOutcome>
  /** Shows a proof of payment, or none. */
  pay: Ask<PayOrder, PayOutcome>
  /** What became of payments, for their merchant. */
  listPayments: Ask<ListPayments, Listed<X402Payment>>
  /** Ends a payment that neither chain nor facilitator tells the outcome of. */
  resolvePayment: Ask<ResolvePayment, Changed<X402Payment> | ResolutionRefused | Unknown>
}

/** What is paid, as it was sent. */
export type X402Target = { tag: 'link'; token: string } | { tag: 'session'; id: string }

export type X402Order = {
  target: X402Target
  /** As sent; undefined where they were not. */
  buyerCountry: string | undefined
  buyerRegion: string | undefined
}

export type PayOrder = X402Order & {
  /** The PAYMENT-SIGNATURE field: version 2. */
  proof: string | undefined
  /** The X-PAYMENT field: version 1. */
  proofV1: string | undefined
}

/** A challenge as it crosses HTTP. */
export type PaymentChallenge = {
  /** Value of the PAYMENT-REQUIRED field. */
  header: string
  /** PaymentRequired of version 2, or of version 1 where that is spoken and can be. */
  body: Record<string, unknown>
}

/** SettleResponse: the PAYMENT-RESPONSE field. */
export type SettlementResponse = {
  success: boolean
  transaction: string
  network: string
  payer: string
  amount?: string
  /** Of the list of x402 v2 section 9. */
  errorReason?: string
}

export type OrderFault =
  /** No such link or session, an inactive one, or one that is not payable this way. */
  | { tag: 'unknown' }
  | { tag: 'invalid_buyer'; parameter: 'buyer_country' | 'buyer_region' }
  /** The session is paid, or is being paid, or has ended. */
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
  /** Not paid; the buyer may pay anew. */
  | { tag: 'refused'; challenge: PaymentChallenge; settlement: SettlementResponse }
  | { tag: 'malformed'; pointer: string; detail: string }
  /** The identifier was used for another payment. */
  | { tag: 'identifier_reused' }
  /** Nobody knows yet whether it was paid: the same proof again will tell. */
  | { tag: 'pending'; chargeId: string }
  /** The payment could not be verified. Nothing was charged. */
  | { tag: 'unavailable' }
  | OrderFault

/** `unknown`: nobody has told yet whether it was settled. */
export type PaymentState = 'verifying' | 'settling' | 'unknown' | 'settled' | 'failed'

export type X402Payment = {
  id: string
  chargeId: string
  /** One of both. */
  paymentLinkId: string | null
  checkoutSessionId: string | null
  state: PaymentState
  /** CAIP-2. */
  network: string
  asset: string
  payer: string
  payTo: string
  /** Atomic units of the asset, decimal. */
  amount: string
  nonce: string
  /** Unix seconds, decimal: after this the authorization cannot be spent any more. */
  validBefore: string
  /** Hash; also one that a facilitator named and nobody has seen. */
  transaction: string | null
  errorReason: string | null
  /** How often it was looked at. */
  checks: number
  createdAt: Date
}

/** `state`: null for every one. */
export type ListPayments = ListOf & { state: PaymentState | null }

/** What an operator has found out, on the chain itself or from the facilitator. */
export type Resolution = { outcome: 'settled'; transaction: string } | { outcome: 'failed' }
export type ResolvePayment = { caller: Caller; id: string; resolution: Resolution }
/** What is known speaks against it, or does not allow it yet. */
export type ResolutionRefused = { tag: 'refused_resolution'; detail: string }

export const x402 = address<X402Protocol>('x402')
