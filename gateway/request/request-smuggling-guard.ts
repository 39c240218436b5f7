/**
 * The first look at a request head, before anything believes it. Transports hand every header in
 * as it came; what two servers could read differently is refused and the connection cut
 * (RFC 9112 sections 3.2, 5.1, 6.3, 11.2).
 */

import type { HeaderFields, HeadFault } from '../exchange.js'

/** All header fields together: names, values and four bytes each for the separators. */
export const HEAD_BYTES_MAX = 16 * 1024
export const HEADER_COUNT_MAX = 64
export const TARGET_BYTES_MAX = 16 * 1024

/** Fields that must come at most once; two of them mean two readings. */
const SINGLE_FIELDS = new Set([
  'content-length',
  'host',
  'authorization',
  'transfer-encoding',
  'content-type',
])

const METHOD_TOKEN = /^[A-Z][A-Z-]{0,19}$/
const CONTENT_LENGTH = /^[0-9]{1,15}$/
// Visible ASCII without the characters RFC 3986 excludes and some servers fold: " # < > \ ^ ` { | }
const TARGET = /^[!$-;=?-[\]_a-z~]+$/
// In a query also what browsers leave as it is: \ ^ ` { | } (WHATWG URL, query percent-encode set).
const QUERY = /^[!$-;=?-~]+$/

/**
 * Collects the header fields of one request and remembers the first thing wrong with them. A request
 * has a handful of fields and few of them are looked up, so a list is cheaper than a map.
 */
export class HeadCheck implements HeaderFields {
  private readonly names: string[] = []
  private readonly values: string[] = []
  private ambiguous = false
  private count = 0
  private bytes = 0

  /** `name` is lower case. */
  add(name: string, value: string): void {
    this.count += 1
    this.bytes += name.length + value.length + 4
    const at = this.names.indexOf(name)
    if (at < 0) {
      this.names.push(name)
      this.values.push(value)
    } else if (SINGLE_FIELDS.has(name)) this.ambiguous = true
    else if (this.count <= HEADER_COUNT_MAX) {
      this.values[at] = `${this.values[at]!}${name === 'cookie' ? '; ' : ', '}${value}`
    }
  }

  get(name: string): string | undefined {
    const at = this.names.indexOf(name)
    return at < 0 ? undefined : this.values[at]
  }

  has(name: string): boolean {
    return this.names.includes(name)
  }

  all(): Record<string, string> {
    const all: Record<string, string> = {}
    // A text is never what an object inherits from: `__proto__` is left out.
    for (let at = 0; at < this.names.length; at += 1) all[this.names[at]!] = this.values[at]!
    return all
  }

  /** The verdict once every field was added; null means the head may be believed. */
  judge(method: string, path: string, query: string): HeadFault | null {
    if (this.ambiguous) return 'ambiguous'
    const contentLength = this.get('content-length')
    const transferEncoding = this.get('transfer-encoding')
    if (transferEncoding !== undefined) {
      if (contentLength !== undefined || transferEncoding !== 'chunked') return 'ambiguous'
    }
    if (contentLength !== undefined && !CONTENT_LENGTH.test(contentLength)) return 'ambiguous'
    if (!isKnownMethod(method) && !METHOD_TOKEN.test(method)) return 'ambiguous'
    if (method === 'CONNECT') return 'tunnel'
    if (path.length + query.length > TARGET_BYTES_MAX) return 'target_too_long'
    if (this.count > HEADER_COUNT_MAX || this.bytes > HEAD_BYTES_MAX) return 'too_large'
    if (path === '*' && method === 'OPTIONS') return null
    if (!isPath(path) || (query !== '' && !QUERY.test(query))) return 'malformed'
    return null
  }
}

export function isKnownMethod(method: string): boolean {
  switch (method) {
    case 'GET':
    case 'HEAD':
    case 'POST':
    case 'PUT':
    case 'PATCH':
    case 'DELETE':
    case 'OPTIONS':
      return true
    default:
      return false
  }
}

function isPath(path: string): boolean {
  return path.charCodeAt(0) === 0x2f && TARGET.test(path)
}

const ABSOLUTE_FORM = /^https?:\/\/([^/?#@\\]+)([/?].*)?$/i

export type Target = {
  readonly path: string
  readonly query: string
  /** Of an absolute-form target: it takes the place of the Host field (RFC 9112 section 3.2.2). */
  readonly authority: string | null
}

/** Takes a request target apart: origin-form, absolute-form or `*` (RFC 9112 section 3.2). */
export function targetOf(method: string, target: string): Target {
  let authority: string | null = null
  let rest = target
  if (target.charCodeAt(0) !== 0x2f) {
    const absolute = ABSOLUTE_FORM.exec(target)
    if (absolute !== null) {
      authority = absolute[1]!
      // Without a path OPTIONS asks about the server itself (RFC 9112 section 3.2.4).
      rest = absolute[2] ?? (method === 'OPTIONS' ? '*' : '/')
      if (rest.startsWith('?')) rest = `/${rest}`
    }
  }
  const mark = rest.indexOf('?')
  return {
    path: mark < 0 ? rest : rest.slice(0, mark),
    query: mark < 0 ? '' : rest.slice(mark + 1),
    authority,
  }
}

/** Whether a request announces a body. A body on GET or HEAD has no meaning and is not read. */
export function announcesBody(method: string, headers: HeaderFields): boolean {
  if (method === 'GET' || method === 'HEAD') return false
  const length = headers.get('content-length')
  return length === undefined ? headers.has('transfer-encoding') : length !== '0'
}
