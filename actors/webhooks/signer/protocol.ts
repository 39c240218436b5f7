/**
 * The protocol of the signer of webhook deliveries. Secrets in its messages are sealed, as they are stored: only the
 * signer opens them.
 */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { ReceivedHeaders, ReceiveVerdict } from '../../domain/webhooks/receive.js'

export type WebhookSignerProtocol = {
  signDelivery: Ask<SignDelivery, DeliverySigned | SigningRefused>
  /** As a receiver verifies a delivery. */
  verifyDelivery: Ask<VerifyDelivery, ReceiveVerdict>
}

/** The subscription that a secret belongs to. */
export type SecretOwner = { readonly tenantId: string; readonly webhookId: string }

export type SignedDelivery = {
  readonly timestampSecs: number
  readonly maxAgeSecs: number
  readonly deliveryId: string
  readonly eventType: string
  /** The exact request body. */
  readonly payload: Uint8Array
}

export type SignDelivery = SecretOwner &
  SignedDelivery & {
    readonly secret: Uint8Array
    /** The secret before the last rotation while both are valid, else null. */
    readonly previousSecret: Uint8Array | null
  }

/** Header names in lower case, ready to send. */
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

export type DeliverySigned = { readonly tag: 'signed'; readonly headers: SignatureHeaders }
/** A field would break out of the canonical string or a header, or the secret cannot be used. */
export type SigningRefused = {
  readonly tag: 'refused'
  readonly field: 'secret' | 'timestamp' | 'max_age' | 'delivery_id' | 'event_type'
}

export type VerifyDelivery = SecretOwner & {
  readonly headers: ReceivedHeaders
  /** The received bytes, not re-serialized JSON. */
  readonly body: Uint8Array
  /** Valid secrets, newest first. Two during the overlap of a rotation. */
  readonly secrets: readonly Uint8Array[]
  readonly nowSecs: number
}

export const webhookSigner = address<WebhookSignerProtocol>('webhook-signer', {
  idempotent: ['signDelivery', 'verifyDelivery'],
})
