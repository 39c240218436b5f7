/** Bodies that many answers share: encoded and hashed once, and never copied for an answer. */
import { createHash } from 'node:crypto'

/** Shorter bodies stay strings, which transports write together with the head. */
const SHORT_CHARS = 16 * 1024

const shared = new WeakSet<Uint8Array>()

export type SharedBody = {
  readonly body: string | Uint8Array
  /** Strong entity tag with quotes. */
  readonly etag: string
}

/** Encodes and hashes a document. Keep the result for all its answers. */
export function sharedBody(text: string | Uint8Array): SharedBody {
  const etag = strongTag(text)
  if (typeof text === 'string' && text.length < SHORT_CHARS) return { body: text, etag }
  const body = typeof text === 'string' ? Buffer.from(text) : text
  shared.add(body)
  return { body, etag }
}

/** The same, made at the first request. */
export function sharedOnce(make: () => string | Uint8Array): () => SharedBody {
  let made: SharedBody | null = null
  return () => (made ??= sharedBody(make()))
}

/** True for bytes that do not belong to one answer. */
export function isShared(body: Uint8Array): boolean {
  return shared.has(body)
}

/** The strong entity tag of a body. */
export function strongTag(body: string | Uint8Array): string {
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
}
