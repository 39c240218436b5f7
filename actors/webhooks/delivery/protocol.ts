/** The sender of deliveries. Test deliveries use it too. */
import type { ActorRef } from '../../../runtime/kernel/actor.js'
import type { SecretOwner, WebhookSignerProtocol } from '../signer/protocol.js'

/** Where deliveries of a subscription go, with its sealed secrets. */
export type DeliveryTarget = {
  readonly url: string
  readonly secret: Uint8Array
  /** The secret before the last rotation while both are valid, otherwise null. */
  readonly previousSecret: Uint8Array | null
}

export type Outgoing = SecretOwner &
  DeliveryTarget & {
    readonly deliveryId: string
    readonly eventType: string
    readonly body: string
  }

export interface Sender {
  /**
   * Failures of the receiver are part of the result.
   * @throws {ActorUnavailable} when the signer is: then nothing was sent.
   */
  send(
    outgoing: Outgoing,
    signer: ActorRef<WebhookSignerProtocol>,
    signal: AbortSignal,
  ): Promise<AttemptResult>
  close(): Promise<void>
}

/** The result of one attempt. */
export type AttemptResult = {
  readonly attemptedAt: Date
  readonly durationMs: number
  /** Null when there was no response. */
  readonly responseStatus: number | null
  /** Null after success. One of our error codes, not text of the receiver. */
  readonly error: string | null
  /** Retry-After of the receiver in seconds. Null when absent. */
  readonly retryAfterSecs: number | null
}
