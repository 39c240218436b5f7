/**
 * Admission of request heads, shared by all transports. A head that two servers could read differently is
 * refused, and the connection is closed (request smuggling, RFC 9112 sections 3.2, 5.1, 6.3, 11.2).
 */

import type { HeaderFields, HeadFault, RequestHead } from '../http-exchange.js'

/** Limit of all header fields together: names, values and four bytes of separators for each. */
export const HEAD_BYTES_MAX = 16 * 1024
export const HEADER_COUNT_MAX = 64
export const TARGET_BYTES_MAX = 16 * 1024

/** Fields that may occur once: servers differ in which of two values they use. */
const SINGLE_FIELDS = new Set([
  'content-length',
  'authorization',
  'transfer-encoding',
  'content-type',
])

const METHOD_TOKEN = /^[A-Z][A-Z-]{0,19}$/
const CONTENT_LENGTH = /^[0-9]{1,15}$/
// Visible ASCII without the characters that RFC 3986 excludes and some servers normalise: " # < > \ ^ ` { | }
const TARGET = /^[!$-;=?-[\]_a-z~]+$/
// Browsers do not escape \ ^ ` { | } in a query (WHATWG URL, query percent-encode set).
const QUERY = /^[!$-;=?-~]+$/

/** Collects the header fields of a request. Requests have few fields, so a list is cheaper than a map. */
export class HeadCheck implements HeaderFields {
  private readonly names: string[] = []
  private readonly values: string[] = []
  private ambiguous = false
  private hosts = 0
  private count = 0
  private bytes = 0

  /** `name` is lower case. */
  add(name: string, value: string): void {
    this.count += 1
    this.bytes += name.length + value.length + 4
    if (name === 'host') this.hosts += 1
    const index = this.names.indexOf(name)
    if (index < 0) {
      this.names.push(name)
      this.values.push(value)
    } else if (SINGLE_FIELDS.has(name)) this.ambiguous = true
    else if (this.count <= HEADER_COUNT_MAX) {
      this.values[index] = `${this.values[index]!}${name === 'cookie' ? '; ' : ', '}${value}`
    }
  }

  get(name: string): string | undefined {
    const index = this.names.indexOf(name)
    return index < 0 ? undefined : this.values[index]
  }

  has(name: string): boolean {
    return this.names.includes(name)
  }

  all(): Record<string, string> {
    const all: Record<string, string> = {}
    // Assigning a string to `__proto__` has no effect, so that field is left out.
    for (let index = 0; index < this.names.length; index += 1)
      all[this.names[index]!] = this.values[index]!
    return all
  }

  /** Call after every field was added. @returns the first fault, or null if the head is admitted. */
  faultOf(method: string, path: string, query: string): HeadFault | null {
    if (this.ambiguous) return 'ambiguous'
    const contentLength = this.get('content-length')
    const transferEncoding = this.get('transfer-encoding')
    if (transferEncoding !== undefined) {
      if (contentLength !== undefined) return 'ambiguous'
      if (transferEncoding !== 'chunked') return 'unknown_coding'
    }
    if (contentLength !== undefined && !CONTENT_LENGTH.test(contentLength)) return 'ambiguous'
    if (!isKnownMethod(method) && !METHOD_TOKEN.test(method)) return 'ambiguous'
    if (method === 'CONNECT') return 'tunnel'
    if (path.length + query.length > TARGET_BYTES_MAX) return 'target_too_long'
    if (this.count > HEADER_COUNT_MAX || this.bytes > HEAD_BYTES_MAX) return 'too_large'
    if (this.hosts > 1) return 'malformed'
    if (path === '*' && method === 'OPTIONS') return null
    if (!isPath(path) || (query !== '' && !QUERY.test(query))) return 'malformed'
    return null
  }
}

export type AdmittedHead = Pick<
  RequestHead,
  'method' | 'path' | 'query' | 'headers' | 'host' | 'fault'
>

/**
 * Checks a head and determines its host.
 * @param authority of an absolute-form target or of `:authority`. It replaces the Host field
 * (RFC 9112 section 3.2.2, RFC 9113 section 8.3.1).
 */
export function admitHead(
  headers: HeadCheck,
  method: string,
  { path, query, authority }: Target,
): AdmittedHead {
  const fault = headers.faultOf(method, path, query)
  const host = (authority ?? headers.get('host') ?? '').toLowerCase()
  return { method, path, query, headers, host, fault }
}

function isKnownMethod(method: string): boolean {
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

type Target = {
  readonly path: string
  readonly query: string
  /** The authority of an absolute-form target, or null. */
  readonly authority: string | null
}

/** Parses a request target: origin-form, absolute-form or `*` (RFC 9112 section 3.2). */
export function targetOf(method: string, target: string): Target {
  let authority: string | null = null
  let rest = target
  if (target.charCodeAt(0) !== 0x2f) {
    const absolute = ABSOLUTE_FORM.exec(target)
    if (absolute !== null) {
      authority = absolute[1]!
      // OPTIONS without a path is about the server (RFC 9112 section 3.2.4).
      rest = absolute[2] ?? (method === 'OPTIONS' ? '*' : '/')
      if (rest.startsWith('?')) rest = `/${rest}`
    }
  }
  return splitTarget(rest, authority)
}

export function splitTarget(target: string, authority: string | null): Target {
  const mark = target.indexOf('?')
  return {
    path: mark < 0 ? target : target.slice(0, mark),
    query: mark < 0 ? '' : target.slice(mark + 1),
    authority,
  }
}

/** True if a request announces a body. Bodies of GET and HEAD have no meaning, and are bounded like others. */
export function announcesBody(headers: HeaderFields): boolean {
  const length = headers.get('content-length')
  return length === undefined ? headers.has('transfer-encoding') : length !== '0'
}
