/** Strict base64 of both alphabets: one spelling per byte string, no ignored characters. */

const URL_ALPHABET = /^[A-Za-z0-9_-]*$/
const STANDARD_ALPHABET = /^[A-Za-z0-9+/]*$/

/** Bytes of an unpadded base64url string (RFC 4648 section 5), null when it is anything else. */
export function fromBase64Url(text: string): Uint8Array | null {
  if (!URL_ALPHABET.test(text) || text.length % 4 === 1) return null
  const bytes = new Uint8Array(Buffer.from(text, 'base64url'))
  // Unused trailing bits must be zero, otherwise several strings would name the same bytes.
  return toBase64Url(bytes) === text ? bytes : null
}

/** As `fromBase64Url`, and accepts the standard alphabet and correct padding too. */
export function fromAnyBase64(text: string): Uint8Array | null {
  const bare = text.replace(/={1,2}$/, '')
  if (bare.length !== text.length && text.length % 4 !== 0) return null
  if (URL_ALPHABET.test(bare)) return fromBase64Url(bare)
  if (!STANDARD_ALPHABET.test(bare)) return null
  return fromBase64Url(bare.replaceAll('+', '-').replaceAll('/', '_'))
}

/** base64url without padding. */
export function toBase64Url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url')
}
