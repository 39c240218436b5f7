/** Signs deliveries, and caches the keys derived from secrets. */
import { createHash, type Hmac } from 'node:crypto'
import { deriveKey, standardKey, standardMac, suiteMac, WEBHOOK_SUITE } from './canonical.js'

/** Minimum length of a secret in bytes. Shorter secrets are also refused at creation. */
export const SECRET_BYTES_MIN = 16
export const SECRET_BYTES_MAX = 256
/** Maximum number of cached keys. An entry takes about 200 bytes. */
const KEYS_CACHED_MAX = 4096
const VISIBLE = /^[\x21-\x7e]{1,255}$/

export type SignDelivery = {
  /** The subscription's secret as its owner knows it; its UTF-8 bytes are the key material. */
  secret: string
  /** The secret before the last rotation while both are valid, else null. */
  previousSecret: string | null
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

type DerivedKeys = { readonly suite: Uint8Array; readonly standard: Uint8Array }

export interface Signer {
  sign(delivery: SignDelivery): SignOutcome
  /** Number of secrets with cached keys. */
  readonly cached: number
}

/**
 * @param keysCachedMax size of the LRU cache. Evicted keys are wiped. The cache key is the secret's
 *   SHA-256, so that the cache holds no secret.
 */
export function createSigner(keysCachedMax = KEYS_CACHED_MAX): Signer {
  const cache = new Map<string, DerivedKeys>()

  function keysOf(secret: string): DerivedKeys {
    const name = createHash('sha256').update(secret, 'utf8').digest('base64')
    const known = cache.get(name)
    if (known !== undefined) {
      cache.delete(name)
      cache.set(name, known)
      return known
    }
    const keys = { suite: deriveKey(secret), standard: standardKey(secret) }
    cache.set(name, keys)
    if (cache.size > keysCachedMax) forgetOldest(cache)
    return keys
  }

  return {
    get cached() {
      return cache.size
    },
    sign(delivery) {
      const field = faultOf(delivery)
      if (field !== null) return { tag: 'refused', field }
      const { deliveryId, eventType, payload, previousSecret } = delivery
      const timestamp = String(delivery.timestampSecs)
      const maxAge = String(delivery.maxAgeSecs)
      const keys = keysOf(delivery.secret)
      const mac = suiteMac(keys.suite, { timestamp, maxAge, deliveryId, eventType }, payload)
      const stamp = ({ standard }: DerivedKeys) =>
        `v1,${base64(standardMac(standard, deliveryId, timestamp, payload))}`
      // svc-webhook-v1 has a single signature header, which uses the new secret. Standard Webhooks
      // accepts a list.
      const standard = stamp(keys)
      const signatures =
        previousSecret === null ? standard : `${standard} ${stamp(keysOf(previousSecret))}`
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

function forgetOldest(cache: Map<string, DerivedKeys>): void {
  const oldest = cache.entries().next()
  if (oldest.done === true) return
  const [name, keys] = oldest.value
  keys.suite.fill(0)
  keys.standard.fill(0)
  cache.delete(name)
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

function isSecret(secret: string): boolean {
  const bytes = Buffer.byteLength(secret, 'utf8')
  return bytes >= SECRET_BYTES_MIN && bytes <= SECRET_BYTES_MAX
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0
}

function base64(mac: Hmac): string {
  return mac.digest('base64')
}
