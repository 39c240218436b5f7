/** Host names in their one spelling: lower case, A-labels, no trailing dot (decisions.md section 4). */
import { domainToASCII } from 'node:url'

const NAME_CHARS_MAX = 253
/**
 * With `_`, which RFC 1123 section 2.1 gives no host but the DNS carries (RFC 2181 section 11) and buckets and
 * containers are called by: a name is for resolving here, not for giving.
 */
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/
const TYPED = /^[^\s\p{Cc}/\\?#@:[\]%]+$/u

/** The normalized name; null for wildcards, addresses, ports and whatever else is no host name. */
export function normalizeHostname(text: string): string | null {
  if (!TYPED.test(text)) return null
  const ascii = domainToASCII(text.endsWith('.') ? text.slice(0, -1) : text)
  return isHostname(ascii) ? ascii : null
}

/** Whether a name is a host's, in its one spelling already. What may be stored may be called. */
export function isHostname(ascii: string): boolean {
  if (ascii === '' || ascii.length > NAME_CHARS_MAX) return false
  const labels = ascii.split('.')
  if (!labels.every((label) => LABEL.test(label))) return false
  // Every spelling of an IPv4 address ends in a number, and no top-level domain does (RFC 3696, 2).
  return !/^(?:[0-9]+|0x[0-9a-f]*)$/.test(labels.at(-1)!)
}
