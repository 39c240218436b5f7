/** An idempotency key as a message carries it (decisions.md section 14, Idempotency-Key). */

export type IdempotencyClaim = {
  /** Tenant, caller, method and path: the same key means something else for another scope. */
  readonly scope: string
  /** As sent: 1..255 visible ASCII characters, without quotes. */
  readonly key: string
  /** SHA-256 of the body as sent: the same key with another body is the caller's mistake. */
  readonly fingerprint: Uint8Array
}
