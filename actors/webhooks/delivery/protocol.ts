/**
 * Signs webhook deliveries (docs/reference/webhooks.md, Signatures). Derived keys stay in this
 * actor.
 */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'

export type DeliveriesProtocol = {
  sign: Ask<SignDelivery, SignOutcome>
}

export type SignDelivery = {
  /** The subscription's secret. Its UTF-8 bytes are the key material. */
  secret: string
  /** The secret before the last rotation while both are valid, otherwise null. */
  previousSecret: string | null
  timestampSecs: number
  maxAgeSecs: number
  deliveryId: string
  eventType: string
  /** The exact request body. */
  payload: Uint8Array
}
export type SignOutcome =
  /** Header names are in lower case. */
  | { tag: 'signed'; headers: SignatureHeaders }
  /**
   * A field contains characters that would break the canonical string or a header, or the secret is
   * too short.
   */
  | { tag: 'refused'; field: 'secret' | 'timestamp' | 'max_age' | 'delivery_id' | 'event_type' }

export type SignatureHeaders = {
  readonly 'x-svc-signature-suite': string
  readonly 'x-svc-signature-256': string
  readonly 'x-svc-signature-max-age': string
  readonly 'x-svc-timestamp': string
  readonly 'x-svc-event': string
  readonly 'x-svc-delivery': string
  readonly 'webhook-id': string
  readonly 'webhook-timestamp': string
  readonly 'webhook-signature': string
}

export const deliveries = address<DeliveriesProtocol>('deliveries', ['sign'])
