/** Idempotency keys in messages (docs/reference/http.md, Idempotency). */
import type { Caller } from './audit.js'

export type IdempotencyClaim = {
  /** Tenant, caller, method and path. Keys of different scopes are independent. */
  readonly scope: string
  /** 1 to 255 visible ASCII characters, without quotes. */
  readonly key: string
  /** SHA-256 of the body. The same key with another body is an error. */
  readonly fingerprint: Uint8Array
}

export type IdempotencyRefused =
  /** The key came with another body before. */
  { readonly tag: 'idempotency_mismatch' } | { readonly tag: 'idempotency_in_progress' }

/** A request to create an object in the tenant of the caller. */
export type Creation = {
  readonly caller: Caller
  /** Null for a request without a key. */
  readonly idempotency: IdempotencyClaim | null
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const HEX_CHARS_MIN = 32
const BASE64URL_CHARS_MIN = 22

/**
 * True for a key with the form of 128 random bits: a UUID, at least 32 hexadecimal digits, or at least 22 base64url
 * characters. The sender of such a key is assumed to be the sender of the first request.
 */
export function isUnguessableKey(key: string): boolean {
  if (UUID.test(key)) return true
  if (/^[0-9a-f]+$/i.test(key)) return key.length >= HEX_CHARS_MIN
  return /^[A-Za-z0-9_-]+$/.test(key) && key.length >= BASE64URL_CHARS_MIN
}
