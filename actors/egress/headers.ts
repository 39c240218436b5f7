/** Which header fields cross the relay, in each direction (decisions.md section 5). */
import { acceptedEncodings } from './decoding.js'
import type { HeaderFault, HeaderPair } from './protocol.js'
import type { Redactor } from './redaction.js'

/** RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}$/
/** RFC 9110 section 5.5 without obs-fold; bytes above 0x7f pass as they are. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Fields that are ours to set, or that belong to one hop only (RFC 9110 section 7.6.1). */
const REQUEST_DROPPED = new Set([
  'host',
  'content-length',
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'forwarded',
  'via',
  'cookie',
])
const REQUEST_DROPPED_PREFIXES = ['proxy-', 'x-forwarded-', 'x-svc-'] as const

const RESPONSE_ALLOWED = new Set([
  'content-type',
  'content-language',
  'content-disposition',
  'content-range',
  'accept-ranges',
  'cache-control',
  'etag',
  'last-modified',
  'expires',
  'vary',
  'age',
  'date',
  'link',
  'location',
  'retry-after',
  'allow',
  'deprecation',
  'sunset',
  'ratelimit',
  'ratelimit-policy',
])
const RESPONSE_ALLOWED_PREFIX = 'x-ratelimit-'
const UPSTREAM_REQUEST_ID = 'x-svc-upstream-request-id'

export type SanitizedHeaders =
  | { readonly tag: 'headers'; readonly headers: readonly HeaderPair[] }
  | { readonly tag: 'refused'; readonly fault: HeaderFault }

/** The caller's fields that go upstream, with the credential's field at the end. */
export function requestHeaders(
  sent: readonly HeaderPair[],
  injected: HeaderPair | null,
): SanitizedHeaders {
  const lowered: HeaderPair[] = []
  for (const [name, value] of injected === null ? sent : [...sent, injected]) {
    if (!TOKEN.test(name)) return { tag: 'refused', fault: 'header_name' }
    if (!VALUE.test(value)) return { tag: 'refused', fault: 'header_value' }
    const lower = name.toLowerCase()
    lowered.push([lower, lower === 'accept-encoding' ? acceptedEncodings(value) : value])
  }
  const own = injected === null ? null : lowered.pop()!
  const named = namedByConnection(lowered)
  const headers: HeaderPair[] = []
  for (const pair of lowered) {
    const [name] = pair
    if (own !== null && sameField(name, own[0])) {
      return { tag: 'refused', fault: 'header_duplicates_injected' }
    }
    if (!isDropped(name) && !named.has(name)) headers.push(pair)
  }
  if (own !== null) headers.push(own)
  return { tag: 'headers', headers }
}

/**
 * The upstream's fields that are handed on, without the secret. Content-Encoding is not among them:
 * codings are undone on the way.
 */
export function responseHeaders(
  received: Readonly<Record<string, string | string[] | undefined>>,
  redactor: Redactor | null = null,
): readonly HeaderPair[] {
  const named = namedByConnection(valuesOf('connection', received['connection']))
  const headers: HeaderPair[] = []
  for (const [sent, value] of Object.entries(received)) {
    const name = sent.toLowerCase()
    if (named.has(name)) continue
    const as = name === 'x-request-id' ? UPSTREAM_REQUEST_ID : isAllowed(name) ? name : null
    if (as === null) continue
    for (const [, text] of valuesOf(as, value)) {
      if (VALUE.test(text)) headers.push([as, redactor?.text(text) ?? text])
    }
  }
  return headers
}

function isDropped(name: string): boolean {
  return (
    REQUEST_DROPPED.has(name) || REQUEST_DROPPED_PREFIXES.some((start) => name.startsWith(start))
  )
}

function isAllowed(name: string): boolean {
  return RESPONSE_ALLOWED.has(name) || name.startsWith(RESPONSE_ALLOWED_PREFIX)
}

/** Servers exist that read `_` and `-` alike, so one must not pass for the other. */
function sameField(one: string, other: string): boolean {
  return one.replaceAll('_', '-') === other.replaceAll('_', '-')
}

/** Fields a Connection field names are hop-by-hop too. */
function namedByConnection(pairs: readonly HeaderPair[]): ReadonlySet<string> {
  const named = new Set<string>()
  for (const [name, value] of pairs) {
    if (name !== 'connection') continue
    for (const option of value.split(',')) named.add(option.trim().toLowerCase())
  }
  return named
}

function valuesOf(name: string, value: string | string[] | undefined): HeaderPair[] {
  if (value === undefined) return []
  return (Array.isArray(value) ? value : [value]).map((one) => [name, one])
}
