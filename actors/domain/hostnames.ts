/** Host names in their one spelling: lower case, A-labels, no trailing dot (decisions.md section 4). */
import { domainToASCII } from 'node:url'

const NAME_CHARS_MAX = 253
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/
const TYPED = /^[^\s\p{Cc}/\\?#@:[\]%]+$/u

/** The normalized name; null for wildcards, addresses, ports and whatever else is no host name. */
export function normalizeHostname(text: string): string | null {
  if (!TYPED.test(text)) return null
  const ascii = domainToASCII(text.endsWith('.') ? text.slice(0, -1) : text)
  if (ascii === '' || ascii.length > NAME_CHARS_MAX) return null
  const labels = ascii.split('.')
  if (!labels.every((label) => LABEL.test(label))) return null
  // Every spelling of an IPv4 address ends in a number, and no top-level domain does (RFC 3696, 2).
  return /^(?:[0-9]+|0x[0-9a-f]*)$/.test(labels.at(-1)!) ? null : ascii
}
