/**
 * The form of API keys: `svc_key_`, 256 random bits and a CRC-32 of what is before it, in base64url. The prefix lets
 * secret scanners find a key, and the checksum lets them and this service discard other texts without a look-up.
 */
import { crc32 } from 'node:zlib'
import type { Random } from '../../../runtime/kernel/random.js'

export const API_KEY_PREFIX = 'svc_key_'
const SECRET_BYTES = 32
const API_KEY_FORM = /^svc_key_[A-Za-z0-9_-]{49}$/
const CHECKSUM_CHARS = 6

/** A new key. Shown once, never stored. */
export function newApiKey(random: Random): string {
  const body = API_KEY_PREFIX + random.token(SECRET_BYTES)
  return body + checksum(body)
}

/** True if the text has the form of a key, its checksum included. */
export function isApiKey(text: string): boolean {
  if (!API_KEY_FORM.test(text)) return false
  return checksum(text.slice(0, -CHECKSUM_CHARS)) === text.slice(-CHECKSUM_CHARS)
}

function checksum(body: string): string {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(crc32(body))
  return bytes.toString('base64url')
}
