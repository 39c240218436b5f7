/**
 * The `svc-webhook-v1` signature suite: signed content and key derivation
 * (docs/reference/webhooks.md, Signatures).
 */
import { createHmac, hkdfSync, type Hmac, type KeyObject } from 'node:crypto'

export const WEBHOOK_SUITE = 'svc-webhook-v1'
/** Length of a secret in bytes. Others are refused at creation, and nothing is signed with them. */
export const SECRET_BYTES_MIN = 16
export const SECRET_BYTES_MAX = 256
const HKDF_SALT = 'svc:webhook-mac:v1'
const HKDF_INFO = 'svc-webhook-mac-v1'
const HKDF_BYTES = 32

/** Derives the HMAC key. The key material is the secret's UTF-8 bytes, including any prefix. */
export function deriveKey(secret: string): Uint8Array {
  const material = Buffer.from(secret, 'utf8')
  return new Uint8Array(hkdfSync('sha256', material, HKDF_SALT, HKDF_INFO, HKDF_BYTES))
}

type SignedFields = {
  readonly timestamp: string
  readonly maxAge: string
  readonly deliveryId: string
  readonly eventType: string
}

/** HMAC-SHA256 over suite, timestamp, max age, delivery id, event type and raw body. */
export function suiteMac(
  key: Uint8Array | KeyObject,
  fields: SignedFields,
  payload: Uint8Array,
): Hmac {
  const { timestamp, maxAge, deliveryId, eventType } = fields
  return createHmac('sha256', key)
    .update(`${WEBHOOK_SUITE}\n${timestamp}\n${maxAge}\n${deliveryId}\n${eventType}\n`)
    .update(payload)
}

/**
 * The Standard Webhooks key: the base64 after `whsec_`, or the UTF-8 bytes of any other secret. The
 * base64 is decoded leniently, as the stock libraries do.
 */
export function standardKey(secret: string): Uint8Array {
  if (!secret.startsWith('whsec_')) return new Uint8Array(Buffer.from(secret, 'utf8'))
  return new Uint8Array(Buffer.from(secret.slice('whsec_'.length), 'base64'))
}

/** HMAC-SHA256 over `id.timestamp.body` (Standard Webhooks). */
export function standardMac(
  key: Uint8Array | KeyObject,
  deliveryId: string,
  timestamp: string,
  payload: Uint8Array,
): Hmac {
  return createHmac('sha256', key).update(`${deliveryId}.${timestamp}.`).update(payload)
}
