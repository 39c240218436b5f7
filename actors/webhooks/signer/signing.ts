/** Signs deliveries, and caches the keys derived from secrets. */
import { createHash, createSecretKey, type Hmac, type KeyObject } from 'node:crypto'
import {
  deriveKey,
  SECRET_BYTES_MAX,
  SECRET_BYTES_MIN,
  standardKey,
  standardMac,
  suiteMac,
  WEBHOOK_SUITE,
} from '../../domain/webhooks/signature.js'

/** Maximum number of cached keys. An entry takes about 500 bytes. */
const KEYS_CACHED_MAX = 4096
const VISIBLE = /^[\x21-\x7e]{1,255}$/

/** The keys of one secret. `keysOf` makes them, so that several deliveries derive them once. */
export type SigningKeys = {
  readonly suite: KeyObject
  readonly standard: KeyObject
  /** False if the secret is too short or too long. Nothing is signed with it. */
  readonly isUsable: boolean
}

export type SignDelivery = {
  /**
   * The subscription's secret as its owner knows it, or its keys. The UTF-8 bytes of the secret are the key material.
   */
  secret: string | SigningKeys
  /** The secret before the last rotation while both are valid, else null. */
  previousSecret: string | SigningKeys | null
  timestampSecs: number
  maxAgeSecs: number
  deliveryId: string
  eventType: string
  /** The exact request body. */
  payload: Uint8Array
}
export type SignOutcome =
  /** Header names in lower case, ready to send. */
  | { tag: 'signed'; headers: SignatureHeaders }
  /** A field would break out of the canonical string or a header, or the secret is too short. */
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

export interface Signer {
  keysOf(secret: string): SigningKeys
  sign(delivery: SignDelivery): SignOutcome
  /** Number of secrets with cached keys. */
  readonly cached: number
}

/**
 * @param keysCachedMax size of the LRU cache. OpenSSL wipes evicted keys when their last user drops them. The cache
 *   key is the secret's SHA-256, so that the cache holds no secret.
 */
export function createSigner(keysCachedMax = KEYS_CACHED_MAX): Signer {
  const cache = new Map<string, SigningKeys>()

  function keysOf(secret: string): SigningKeys {
    const name = createHash('sha256').update(secret, 'utf8').digest('base64')
    const known = cache.get(name)
    if (known !== undefined) {
      cache.delete(name)
      cache.set(name, known)
      return known
    }
    const keys = {
      suite: keyObject(deriveKey(secret)),
      standard: keyObject(standardKey(secret)),
      isUsable: isSecret(secret),
    }
    cache.set(name, keys)
    if (cache.size > keysCachedMax) cache.delete(cache.keys().next().value!)
    return keys
  }
  const found = (secret: string | SigningKeys) =>
    typeof secret === 'string' ? keysOf(secret) : secret

  return {
    get cached() {
      return cache.size
    },
    keysOf,
    sign(delivery) {
      const field = faultOf(delivery)
      if (field !== null) return { tag: 'refused', field }
      const { deliveryId, eventType, payload, previousSecret } = delivery
      const timestamp = String(delivery.timestampSecs)
      const maxAge = String(delivery.maxAgeSecs)
      const keys = found(delivery.secret)
      const mac = suiteMac(keys.suite, { timestamp, maxAge, deliveryId, eventType }, payload)
      const stamp = ({ standard }: SigningKeys) =>
        `v1,${base64(standardMac(standard, deliveryId, timestamp, payload))}`
      // svc-webhook-v1 has a single signature header, which uses the new secret. Standard Webhooks
      // accepts a list.
      const standard = stamp(keys)
      const signatures =
        previousSecret === null ? standard : `${standard} ${stamp(found(previousSecret))}`
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
    },
  }
}

/** A key whose memory OpenSSL wipes. Wipes `bytes`. */
function keyObject(bytes: Uint8Array): KeyObject {
  const key = createSecretKey(bytes)
  bytes.fill(0)
  return key
}

type RefusedField = Extract<SignOutcome, { tag: 'refused' }>['field']

function faultOf(delivery: SignDelivery): RefusedField | null {
  if (!isSecret(delivery.secret)) return 'secret'
  if (delivery.previousSecret !== null && !isSecret(delivery.previousSecret)) return 'secret'
  if (!isCount(delivery.timestampSecs)) return 'timestamp'
  if (!isCount(delivery.maxAgeSecs) || delivery.maxAgeSecs === 0) return 'max_age'
  if (!VISIBLE.test(delivery.deliveryId)) return 'delivery_id'
  if (!VISIBLE.test(delivery.eventType)) return 'event_type'
  return null
}

function isSecret(secret: string | SigningKeys): boolean {
  if (typeof secret !== 'string') return secret.isUsable
  const bytes = Buffer.byteLength(secret, 'utf8')
  return bytes >= SECRET_BYTES_MIN && bytes <= SECRET_BYTES_MAX
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0
}

function base64(mac: Hmac): string {
  return mac.digest('base64')
}
