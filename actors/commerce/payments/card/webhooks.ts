/**
 * Verifies webhooks of the card provider: `Stripe-Signature: t=<seconds>,v1=<hex>`, where v1 is the
 * HMAC-SHA256 of `<t>.<body>` under the endpoint's secret
 * (https://docs.stripe.com/webhooks/signature). An event is only a hint: it names an object, and
 * the service looks up the state of that object.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { idIn, idOf, membersOf } from './client.js'
import type { WebhookReading } from '../payment-provider.js'

const WEBHOOK_TOLERANCE_SECS = 300
const HEADER_CHARS_MAX = 2048
/** The provider signs with both secrets during a rotation. */
const SIGNATURES_MAX = 8
const TIMESTAMP = /^[0-9]{1,12}$/
const SHA256_HEX = /^[0-9a-f]{64}$/

/** The event types that the service handles. docs/guides/commerce/payments.md lists them. */
const ABOUT: Readonly<Record<string, 'payment' | 'dispute' | 'refund'>> = {
  'checkout.session.completed': 'payment',
  'checkout.session.async_payment_succeeded': 'payment',
  'checkout.session.async_payment_failed': 'payment',
  'checkout.session.expired': 'payment',
  'payment_intent.succeeded': 'payment',
  'payment_intent.payment_failed': 'payment',
  'payment_intent.canceled': 'payment',
  'payment_intent.requires_action': 'payment',
  'charge.dispute.created': 'dispute',
  'charge.dispute.updated': 'dispute',
  'charge.dispute.closed': 'dispute',
  'refund.created': 'refund',
  'refund.updated': 'refund',
  'refund.failed': 'refund',
  'charge.refund.updated': 'refund',
}

/** Pure. Compares every signature of the header in constant time. */
export function readWebhook(
  secret: string,
  body: Uint8Array,
  signature: string | null,
  now: Date,
): WebhookReading {
  const header = signature === null ? undefined : parseSignature(signature)
  if (header === undefined) return { tag: 'refused', reason: 'signature' }
  const mac = createHmac('sha256', secret).update(`${header.timestamp}.`).update(body).digest()
  const matches = header.signatures.map((signature) =>
    timingSafeEqual(Buffer.from(signature, 'hex'), mac),
  )
  if (!matches.includes(true)) return { tag: 'refused', reason: 'signature' }
  const skewSecs = Math.abs(now.getTime() / 1000 - Number(header.timestamp))
  if (skewSecs > WEBHOOK_TOLERANCE_SECS) return { tag: 'refused', reason: 'timestamp' }
  return readEvent(body) ?? { tag: 'refused', reason: 'body' }
}

function parseSignature(
  header: string,
): { readonly timestamp: string; readonly signatures: readonly string[] } | undefined {
  if (header.length > HEADER_CHARS_MAX) return undefined
  const pairs = header.split(',').map((pair) => pair.trim().split('='))
  const timestamps = pairs.filter(([name]) => name === 't').map(([, value = '']) => value)
  const signatures = pairs
    .filter(([name, value = '']) => name === 'v1' && SHA256_HEX.test(value))
    .map(([, value = '']) => value)
  const [timestamp = ''] = timestamps
  if (timestamps.length !== 1 || !TIMESTAMP.test(timestamp)) return undefined
  if (signatures.length === 0 || signatures.length > SIGNATURES_MAX) return undefined
  return { timestamp, signatures }
}

function readEvent(body: Uint8Array): WebhookReading | undefined {
  let json: unknown
  try {
    json = JSON.parse(Buffer.from(body).toString('utf8'))
  } catch {
    return undefined
  }
  const event = membersOf(json)
  const object = membersOf(membersOf(event?.['data'])?.['object'])
  const id = idOf(event?.['id'])
  const type = event?.['type']
  if (id === undefined || typeof type !== 'string' || type.length > 128) return undefined
  const objectId = idOf(object?.['id'])
  const about = Object.hasOwn(ABOUT, type) ? ABOUT[type]! : 'nothing'
  if (objectId === undefined && about !== 'nothing') return undefined
  const paymentId = idIn(object?.['payment_intent']) ?? null
  return { tag: 'event', id, type, about, objectId: objectId ?? '', paymentId }
}
