/** Signs a delivery with the keys of a secret: the suite `svc-webhook-v1`, and Standard Webhooks. */
import { createSecretKey, type KeyObject } from 'node:crypto'
import {
  deriveKey,
  SECRET_BYTES_MAX,
  SECRET_BYTES_MIN,
  standardKey,
  standardMac,
  suiteMac,
  WEBHOOK_SUITE,
} from '../../domain/webhooks/signature.js'
import type { DeliverySigned, SignedDelivery, SigningRefused } from './protocol.js'

const VISIBLE = /^[\x21-\x7e]{1,255}$/

/** The keys of one secret, in memory that OpenSSL wipes. Null: the secret is too short or too long to sign with. */
export type SigningKeys = { readonly suite: KeyObject; readonly standard: KeyObject } | null

/** The UTF-8 bytes of the secret are the key material. */
export function signingKeysOf(secret: string): SigningKeys {
  const bytes = Buffer.byteLength(secret, 'utf8')
  if (bytes < SECRET_BYTES_MIN || bytes > SECRET_BYTES_MAX) return null
  return { suite: keyObject(deriveKey(secret)), standard: keyObject(standardKey(secret)) }
}

/** @param previous the keys of the secret before the last rotation while both are valid, else undefined. */
export function sign(
  delivery: SignedDelivery,
  keys: SigningKeys,
  previous?: SigningKeys | undefined,
): DeliverySigned | SigningRefused {
  const field = faultOf(delivery)
  if (field !== undefined) return { tag: 'refused', field }
  if (keys === null || previous === null) return { tag: 'refused', field: 'secret' }
  const { deliveryId, eventType, payload } = delivery
  const timestamp = String(delivery.timestampSecs)
  const maxAge = String(delivery.maxAgeSecs)
  const mac = suiteMac(keys.suite, { timestamp, maxAge, deliveryId, eventType }, payload)
  const stamp = ({ standard }: NonNullable<SigningKeys>) =>
    `v1,${standardMac(standard, deliveryId, timestamp, payload).digest('base64')}`
  // svc-webhook-v1 has a single signature header, which uses the new secret. Standard Webhooks
  // accepts a list.
  const signatures = previous === undefined ? stamp(keys) : `${stamp(keys)} ${stamp(previous)}`
  return {
    tag: 'signed',
    headers: {
      'x-svc-signature-suite': WEBHOOK_SUITE,
      'x-svc-signature-256': `sha256=${mac.digest('hex')}`,
      'x-svc-signature-max-age': maxAge,
      'x-svc-timestamp': timestamp,
      'x-svc-event': eventType,
      'x-svc-delivery': deliveryId,
      'webhook-id': deliveryId,
      'webhook-timestamp': timestamp,
      'webhook-signature': signatures,
    },
  }
}

/** A key whose memory OpenSSL wipes. Wipes `bytes`. */
function keyObject(bytes: Uint8Array): KeyObject {
  const key = createSecretKey(bytes)
  bytes.fill(0)
  return key
}

function faultOf(delivery: SignedDelivery): SigningRefused['field'] | undefined {
  if (!isCount(delivery.timestampSecs)) return 'timestamp'
  if (!isCount(delivery.maxAgeSecs) || delivery.maxAgeSecs === 0) return 'max_age'
  if (!VISIBLE.test(delivery.deliveryId)) return 'delivery_id'
  if (!VISIBLE.test(delivery.eventType)) return 'event_type'
  return undefined
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0
}
