/**
 * Reference verification of a delivery at its receiver (docs/reference/webhooks.md, Verification).
 */
import { timingSafeEqual } from 'node:crypto'
import { deriveKey, SECRET_BYTES_MIN, suiteMac, WEBHOOK_SUITE } from './signature.js'

/** Header values by lower-case name. `undefined` when absent. */
export type ReceivedHeaders = Readonly<Record<string, string | undefined>>

type ReceiveOptions = {
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
  | {
      readonly tag: 'genuine'
      readonly deliveryId: string
      readonly eventType: string
      readonly forgetAfterSecs: number
    }
  | {
      readonly tag: 'refused'
      readonly reason: ReceiveFault
      /** The malformed header. */
      readonly header?: string
    }
export type ReceiveFault =
  | 'unsupported_suite'
  | 'malformed_header'
  | 'wrong_signature'
  | 'from_the_future'
  | 'too_old'

const MAX_AGE_SECS_DEFAULT = 300
const DECIMAL = /^(?:0|[1-9][0-9]{0,14})$/
const VISIBLE = /^[\x21-\x7e]{1,255}$/
const HEADERS = {
  'x-svc-signature-256': /^sha256=[0-9a-f]{64}$/,
  'x-svc-timestamp': DECIMAL,
  'x-svc-signature-max-age': DECIMAL,
  'x-svc-delivery': VISIBLE,
  'x-svc-event': VISIBLE,
} as const

/**
 * Verifies the raw body of a delivery. `body` must be the received bytes, not re-serialized JSON.
 */
export function receive(
  headers: ReceivedHeaders,
  body: Uint8Array,
  { secrets, nowSecs, maxAgeSecs = MAX_AGE_SECS_DEFAULT }: ReceiveOptions,
): ReceiveVerdict {
  if (headers['x-svc-signature-suite'] !== WEBHOOK_SUITE) return refused('unsupported_suite')
  for (const [header, form] of Object.entries(HEADERS)) {
    if (!form.test(headers[header] ?? '')) return { ...refused('malformed_header'), header }
  }
  const named = (name: keyof typeof HEADERS) => headers[name]!
  const sent = Buffer.from(named('x-svc-signature-256').slice('sha256='.length), 'hex')
  const timestamp = named('x-svc-timestamp')
  const maxAge = named('x-svc-signature-max-age')
  const deliveryId = named('x-svc-delivery')
  const eventType = named('x-svc-event')
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

function refused(reason: ReceiveFault) {
  return { tag: 'refused', reason } as const
}
