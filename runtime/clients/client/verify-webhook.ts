/** Verifies webhook deliveries, suite `svc-webhook-v1` (docs/reference/webhooks.md, Signatures). */
import { SECRET_BYTES_MIN } from '../../../actors/domain/webhooks/signature.js'
import { receive } from '../../../actors/domain/webhooks/receive.js'
import { type Clock, systemClock } from '../../kernel/clock.js'

const SIGNED_HEADERS = [
  'x-svc-signature-suite',
  'x-svc-signature-256',
  'x-svc-signature-max-age',
  'x-svc-timestamp',
  'x-svc-delivery',
  'x-svc-event',
] as const
const WHY_REFUSED = {
  unsupported_suite: 'The signature suite is not supported.',
  wrong_signature: 'The signature is not valid.',
  from_the_future: 'The time of the delivery is in the future.',
  too_old: 'The delivery is too old.',
} as const

/** Headers of `node:http`, Express or the Fetch standard. */
export type WebhookHeaders =
  | Headers
  | Readonly<Record<string, string | readonly string[] | undefined>>

export type WebhookDelivery = {
  readonly headers: WebhookHeaders
  /** The body as received. A body that was parsed and written again has another signature. */
  readonly body: Uint8Array | string
  /** The secret of the subscription. During a rotation: the old and the new one. */
  readonly secret: string | readonly string[]
}

export type VerifyWebhookOptions = {
  /** The age in seconds up to which a delivery is accepted. Default 300. The sender may set less. */
  readonly maxAgeSecs?: number | undefined
  readonly clock?: Clock | undefined
}

/** An authentic delivery. */
export type VerifiedWebhook = {
  /** Store it with the effect of the event: a repeated delivery has the same id. */
  readonly deliveryId: string
  readonly eventType: string
  readonly sentAt: Date
  /** The parsed body. */
  readonly event: Readonly<Record<string, unknown>>
}

/** The delivery is not authentic, or too old. Answer 400. */
export class InvalidWebhook extends Error {
  override readonly name = 'InvalidWebhook'
}

/**
 * @throws InvalidWebhook if the delivery must be refused.
 * @throws TypeError for a secret with less than 16 bytes: an unset secret is empty, and everybody can sign with it.
 */
export function verifyWebhook(
  { headers, body, secret }: WebhookDelivery,
  { maxAgeSecs, clock = systemClock }: VerifyWebhookOptions = {},
): VerifiedWebhook {
  const secrets = typeof secret === 'string' ? [secret] : secret
  for (const one of secrets) {
    if (Buffer.byteLength(one) < SECRET_BYTES_MIN)
      throw new TypeError(`verifyWebhook: a secret has at least ${SECRET_BYTES_MIN} bytes`)
  }
  const signed = Object.fromEntries(SIGNED_HEADERS.map((name) => [name, valueOf(headers, name)]))
  const payload = typeof body === 'string' ? Buffer.from(body) : body
  const verdict = receive(signed, payload, { secrets, nowSecs: clock.nowSecs(), maxAgeSecs })
  if (verdict.tag === 'refused') {
    const { reason, header } = verdict
    throw new InvalidWebhook(
      reason === 'malformed_header'
        ? `The header ${header} is missing or malformed.`
        : WHY_REFUSED[reason],
    )
  }
  return {
    deliveryId: verdict.deliveryId,
    eventType: verdict.eventType,
    sentAt: new Date(Number(signed['x-svc-timestamp']) * 1000),
    event: JSON.parse(Buffer.from(payload).toString('utf8')) as Record<string, unknown>,
  }
}

function valueOf(headers: WebhookHeaders, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? ''
  const value = headers[name]
  // A repeated header is ambiguous, so it counts as missing.
  return typeof value === 'string' ? value : ''
}
