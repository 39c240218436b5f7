/** Normalised host names: lower case, A-labels, no trailing dot. */
import { domainToASCII } from 'node:url'

const NAME_CHARS_MAX = 253
/**
 * Includes `_`. RFC 1123 section 2.1 does not allow it in host names, but the DNS does (RFC 2181 section 11), and names of
 * buckets and containers use it.
 */
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/
const TYPED = /^[^\s\p{Cc}/\\?#@:[\]%]+$/u

/** The normalised name. Null for wildcards, addresses, ports and other invalid names. */
export function normalizeHostname(text: string): string | null {
  if (!TYPED.test(text)) return null
  const ascii = domainToASCII(text.endsWith('.') ? text.slice(0, -1) : text)
  return isHostname(ascii) ? ascii : null
}

/** True for a normalised host name. */
export function isHostname(ascii: string): boolean {
  if (ascii === '' || ascii.length > NAME_CHARS_MAX) return false
  const labels = ascii.split('.')
  if (!labels.every((label) => LABEL.test(label))) return false
  // All spellings of IPv4 addresses end with a number, and no top-level domain is a number (RFC 3696 section 2).
  return !/^(?:[0-9]+|0x[0-9a-f]*)$/.test(labels.at(-1)!)
}
