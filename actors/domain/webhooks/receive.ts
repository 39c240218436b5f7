/**
 * Reference verification of a delivery at its receiver (docs/reference/webhooks.md, Verification).
 */
import { timingSafeEqual } from 'node:crypto'
import { deriveKey, SECRET_BYTES_MIN, suiteMac, WEBHOOK_SUITE } from './signature.js'

/** Header values by lower-case name. `undefined` when absent. */
export type ReceivedHeaders = Readonly<Record<string, string | undefined>>

export type ReceiveOptions = {
  /** Valid secrets, newest first. Two during the overlap of a rotation. */
  readonly secrets: readonly string[]
  readonly nowSecs: number
  /** The receiver's own limit on the age of a delivery, in seconds. Default 300. */
  readonly maxAgeSecs?: number | undefined
}

export type ReceiveVerdict =
  /**
   * Authentic and recent. Remember `deliveryId` until `forgetAfterSecs` (Unix seconds) to detect
   * duplicates.
   */
  | { tag: 'genuine'; deliveryId: string; eventType: string; forgetAfterSecs: number }
  | { tag: 'refused'; reason: ReceiveFault }
export type ReceiveFault =
  | 'unsupported_suite'
  | 'malformed_header'
  | 'wrong_signature'
  | 'from_the_future'
  | 'too_old'

const MAX_AGE_SECS_DEFAULT = 300
const SIGNATURE = /^sha256=[0-9a-f]{64}$/
const DECIMAL = /^(?:0|[1-9][0-9]{0,14})$/
const VISIBLE = /^[\x21-\x7e]{1,255}$/

/**
 * Verifies the raw body of a delivery. `body` must be the received bytes, not re-serialized JSON.
 */
export function receive(
  headers: ReceivedHeaders,
  body: Uint8Array,
  { secrets, nowSecs, maxAgeSecs = MAX_AGE_SECS_DEFAULT }: ReceiveOptions,
): ReceiveVerdict {
  if (headers['x-svc-signature-suite'] !== WEBHOOK_SUITE) return refused('unsupported_suite')
  const signature = matching(headers['x-svc-signature-256'], SIGNATURE)
  const timestamp = matching(headers['x-svc-timestamp'], DECIMAL)
  const maxAge = matching(headers['x-svc-signature-max-age'], DECIMAL)
  const deliveryId = matching(headers['x-svc-delivery'], VISIBLE)
  const eventType = matching(headers['x-svc-event'], VISIBLE)
  if (signature === null || timestamp === null || maxAge === null)
    return refused('malformed_header')
  if (deliveryId === null || eventType === null) return refused('malformed_header')

  const sent = Buffer.from(signature.slice('sha256='.length), 'hex')
  const fields = { timestamp, maxAge, deliveryId, eventType }
  let genuine = false
  // Tries every secret, so that the time does not reveal which one matched.
  for (const secret of secrets) {
    // An unset secret is empty, and anybody can sign with an empty secret.
    if (Buffer.byteLength(secret) < SECRET_BYTES_MIN) continue
    const mac = suiteMac(deriveKey(secret), fields, body).digest()
    if (timingSafeEqual(mac, sent)) genuine = true
  }
  if (!genuine) return refused('wrong_signature')

  const ageSecs = nowSecs - Number(timestamp)
  const windowSecs = Math.min(Number(maxAge), maxAgeSecs)
  if (ageSecs < 0) return refused('from_the_future')
  if (ageSecs > windowSecs) return refused('too_old')
  return {
    tag: 'genuine',
    deliveryId,
    eventType,
    forgetAfterSecs: Number(timestamp) + windowSecs,
  }
}

function matching(value: string | undefined, pattern: RegExp): string | null {
  return value !== undefined && pattern.test(value) ? value : null
}

function refused(reason: ReceiveFault): ReceiveVerdict {
  return { tag: 'refused', reason }
}
