/** An idempotency key as a message carries it (decisions.md section 14, Idempotency-Key). */

export type IdempotencyClaim = {
  /** Tenant, caller, method and path: the same key means something else for another scope. */
  readonly scope: string
  /** As sent: 1..255 visible ASCII characters, without quotes. */
  readonly key: string
  /** SHA-256 of the body as sent: the same key with another body is the caller's mistake. */
  readonly fingerprint: Uint8Array
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const HEX_CHARS_MIN = 32
const BASE64URL_CHARS_MIN = 22

/**
 * True for a key in a form that holds 128 bits: a UUID, 32 or more digits of hex, or 22 or more
 * characters of base64url. Who sends such a key again is taken for who sent it first.
 */
export function isUnguessableKey(key: string): boolean {
  if (UUID.test(key)) return true
  if (/^[0-9a-f]+$/i.test(key)) return key.length >= HEX_CHARS_MIN
  return /^[A-Za-z0-9_-]+$/.test(key) && key.length >= BASE64URL_CHARS_MIN
}
