/** Payments of payment links by the x402 protocol (decisions.md sections 11, 18 and 22). */
import { address, type Ask } from '../../runtime/kernel/protocol.js'

export type X402Protocol = {
  /** What a link costs and how it is paid. */
  challenge: Ask<X402Order, ChallengeOutcome>
  /** Shows a proof of payment, or none. */
  pay: Ask<PayOrder, PayOutcome>
}

export type X402Order = {
  /** Of the payment link, as it was sent. */
  linkToken: string
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
  /** No such link, an inactive one, or one that is not payable this way. */
  { tag: 'unknown' } | { tag: 'invalid_buyer'; parameter: 'buyer_country' | 'buyer_region' }

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

export const x402 = address<X402Protocol>('x402')
