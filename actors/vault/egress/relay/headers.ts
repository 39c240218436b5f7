/** The header fields that the relay forwards in each direction (docs/reference/vault.md). */
import { acceptedEncodings } from '../decode/decoding.js'
import type { HeaderFault, HeaderPair } from '../protocol.js'
import type { Redactor } from '../redact/redaction.js'

/** RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}$/
/** RFC 9110 section 5.5 without obs-fold; bytes above 0x7f are unchanged. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Fields that the proxy sets and hop-by-hop fields (RFC 9110 section 7.6.1). */
const REQUEST_DROPPED = new Set([
  'host',
  'content-length',
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
  'expect',
  'forwarded',
  // Frameworks read the method, path or client address from these, which would bypass a grant.
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  'x-original-url',
  'x-rewrite-url',
  'x-host',
  'x-real-ip',
  'x-client-ip',
  'true-client-ip',
  'via',
  'cookie',
])
const REQUEST_DROPPED_PREFIXES = ['proxy-', 'x-forwarded', 'x-svc-'] as const

/** Without Date: the response of the service has its own. */
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
  'link',
  'location',
  'retry-after',
  'allow',
  'deprecation',
  'sunset',
  'ratelimit',
  'ratelimit-policy',
])
/** The rest of the name is the upstream's: words without digits, so that it has no room for a token or hex. */
const RATE_LIMIT = /^x-ratelimit-[a-z]{1,16}(?:-[a-z]{1,16}){0,4}$/
const UPSTREAM_REQUEST_ID = 'x-svc-upstream-request-id'
/** The size that the answer to a HEAD request announces. It differs from the size of the answer to the caller. */
const UPSTREAM_LENGTH = 'x-svc-upstream-content-length'

type SanitizedHeaders =
  | { readonly tag: 'headers'; readonly headers: readonly HeaderPair[] }
  | RefusedHeader

export type RefusedHeader = {
  readonly tag: 'refused'
  readonly fault: HeaderFault
  /** As received. */
  readonly name: string
}

/** The caller's fields for the upstream. */
export function sanitizedHeaders(sent: readonly HeaderPair[]): SanitizedHeaders {
  const lowered: HeaderPair[] = []
  let isTyped = false
  for (const [name, value] of sent) {
    const fault = faultOf(name, value)
    if (fault !== undefined) return { tag: 'refused', fault, name }
    const lower = name.toLowerCase()
    if (lower === 'content-type') {
      // Content-Type is not a list: upstreams would disagree which of two applies.
      if (isTyped) return { tag: 'refused', fault: 'header_repeated', name }
      isTyped = true
    }
    lowered.push([lower, lower === 'accept-encoding' ? acceptedEncodings(value) : value])
  }
  const named = namedByConnection(lowered)
  const headers = lowered.filter(([name]) => !isDropped(name) && !named.has(name))
  return { tag: 'headers', headers }
}

/** Appends the field of the credential. @param sent the caller's fields before sanitizing. */
export function withCredential(
  sent: readonly HeaderPair[],
  headers: readonly HeaderPair[],
  [name, value]: HeaderPair,
): SanitizedHeaders {
  const fault = faultOf(name, value)
  if (fault !== undefined) return { tag: 'refused', fault, name }
  const own = name.toLowerCase()
  const duplicate = sent.find(([other]) => sameField(other.toLowerCase(), own))
  if (duplicate !== undefined) {
    return { tag: 'refused', fault: 'header_duplicates_injected', name: duplicate[0] }
  }
  return { tag: 'headers', headers: [...headers, [own, value]] }
}

function faultOf(name: string, value: string): HeaderFault | undefined {
  if (!TOKEN.test(name)) return 'header_name'
  return VALUE.test(value) ? undefined : 'header_value'
}

/**
 * The upstream's fields for the caller, redacted. Without Content-Encoding, because the relay decodes
 * the body.
 */
export function responseHeaders(
  received: Readonly<Record<string, string | string[] | undefined>>,
  redactor: Redactor | null = null,
  method = 'GET',
): readonly HeaderPair[] {
  const named = namedByConnection(valuesOf('connection', received['connection']))
  const headers: HeaderPair[] = []
  for (const sent in received) {
    const value = received[sent]
    const name = sent.toLowerCase()
    if (named.has(name)) continue
    const as =
      name === 'x-request-id'
        ? UPSTREAM_REQUEST_ID
        : name === 'content-length' && method === 'HEAD'
          ? UPSTREAM_LENGTH
          : isAllowed(name)
            ? name
            : null
    if (as === null || (redactor !== null && redactor.text(as) !== as)) continue
    for (const [, text] of valuesOf(as, value)) {
      if (VALUE.test(text)) headers.push([as, redactor?.text(text) ?? text])
    }
  }
  return headers
}

function isDropped(sent: string): boolean {
  // CGI servers read `_` as `-`.
  const name = sent.replaceAll('_', '-')
  return (
    REQUEST_DROPPED.has(name) || REQUEST_DROPPED_PREFIXES.some((start) => name.startsWith(start))
  )
}

function isAllowed(name: string): boolean {
  return RESPONSE_ALLOWED.has(name) || RATE_LIMIT.test(name)
}

/** CGI servers do not distinguish `_` and `-`. */
function sameField(name: string, other: string): boolean {
  return name.replaceAll('_', '-') === other.replaceAll('_', '-')
}

const NO_NAMES: ReadonlySet<string> = new Set()

/** Fields that Connection names are hop-by-hop too. */
function namedByConnection(pairs: readonly HeaderPair[]): ReadonlySet<string> {
  let named: Set<string> | undefined
  for (const [name, value] of pairs) {
    if (name !== 'connection') continue
    named ??= new Set()
    for (const option of value.split(',')) named.add(option.trim().toLowerCase())
  }
  return named ?? NO_NAMES
}

function valuesOf(name: string, value: string | string[] | undefined): HeaderPair[] {
  if (value === undefined) return []
  return (Array.isArray(value) ? value : [value]).map((text) => [name, text])
}
