/** Verifies webhook deliveries, suite `svc-webhook-v1` (docs/reference/webhooks.md, Signatures). */
import { timingSafeEqual } from 'node:crypto'
import { deriveKey, suiteMac, WEBHOOK_SUITE } from '../../actors/domain/webhooks/signature.js'
import { type Clock, systemClock } from '../kernel/clock.js'

const MAX_AGE_SECS = 300
const SECRET_BYTES_MIN = 16
const DECIMAL = /^(?:0|[1-9][0-9]{0,14})$/
const VISIBLE = /^[!-~]{1,255}$/
const SIGNATURE = /^sha256=([0-9a-f]{64})$/

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
  { maxAgeSecs = MAX_AGE_SECS, clock = systemClock }: VerifyWebhookOptions = {},
): VerifiedWebhook {
  const secrets = typeof secret === 'string' ? [secret] : secret
  for (const one of secrets) {
    if (Buffer.byteLength(one) < SECRET_BYTES_MIN)
      throw new TypeError(`verifyWebhook: a secret has at least ${SECRET_BYTES_MIN} bytes`)
  }
  const named = (name: string, rule: RegExp) => {
    const value = valueOf(headers, name)
    if (!rule.test(value)) throw new InvalidWebhook(`The header ${name} is missing or malformed.`)
    return value
  }
  if (valueOf(headers, 'x-svc-signature-suite') !== WEBHOOK_SUITE)
    throw new InvalidWebhook('The signature suite is not supported.')
  const [, hex = ''] = SIGNATURE.exec(named('x-svc-signature-256', SIGNATURE)) ?? []
  const fields = {
    timestamp: named('x-svc-timestamp', DECIMAL),
    maxAge: named('x-svc-signature-max-age', DECIMAL),
    deliveryId: named('x-svc-delivery', VISIBLE),
    eventType: named('x-svc-event', VISIBLE),
  }
  const payload = typeof body === 'string' ? Buffer.from(body) : body
  const given = Buffer.from(hex, 'hex')
  const matches = secrets.map((one) =>
    timingSafeEqual(suiteMac(deriveKey(one), fields, payload).digest(), given),
  )
  if (!matches.includes(true)) throw new InvalidWebhook('The signature is not valid.')
  const ageSecs = clock.nowSecs() - Number(fields.timestamp)
  if (ageSecs < 0 || ageSecs > Math.min(Number(fields.maxAge), maxAgeSecs))
    throw new InvalidWebhook('The delivery is too old, or its time is in the future.')
  return {
    deliveryId: fields.deliveryId,
    eventType: fields.eventType,
    sentAt: new Date(Number(fields.timestamp) * 1000),
    event: JSON.parse(Buffer.from(payload).toString('utf8')) as Record<string, unknown>,
  }
}

function valueOf(headers: WebhookHeaders, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? ''
  const value = headers[name]
  // A repeated header is ambiguous, so it counts as missing.
  return typeof value === 'string' ? value : ''
}
