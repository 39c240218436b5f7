/** How a secret goes into a request, by the auth_scheme of its credential (decisions.md section 4). */
import type { HeaderPair } from '../protocol.js'

/** Where a scheme puts the secret: the one place that the caller may not fill. */
export type InjectionPoint =
  | { readonly in: 'header'; readonly name: string }
  | { readonly in: 'query'; readonly key: string }

export type Injection = {
  readonly header: HeaderPair | null
  /** What is appended to the query, encoded; null where the secret goes into a header. */
  readonly query: string | null
}

/** Null for a scheme that nothing is injected by (`none`). */
export function injectionPoint(authScheme: string): InjectionPoint | null {
  if (authScheme === 'bearer' || authScheme === 'basic')
    return { in: 'header', name: 'authorization' }
  if (authScheme.startsWith('header:')) return { in: 'header', name: authScheme.slice(7) }
  if (authScheme.startsWith('query:')) return { in: 'query', key: authScheme.slice(6) }
  return null
}

/**
 * The field or parameter that carries the secret. It is text from here on, as the HTTP client wants
 * it: text cannot be wiped, so it lives no longer than the request does.
 */
export function inject(authScheme: string, secret: Uint8Array): Injection {
  const bytes = Buffer.from(secret.buffer, secret.byteOffset, secret.byteLength)
  const point = injectionPoint(authScheme)
  if (point?.in === 'query') {
    return { header: null, query: `${escaped(point.key)}=${escaped(bytes.toString('utf8'))}` }
  }
  if (authScheme === 'bearer') return header('authorization', `Bearer ${fieldText(bytes)}`)
  if (authScheme === 'basic') return header('authorization', `Basic ${bytes.toString('base64')}`)
  return header(point?.name ?? 'authorization', fieldText(bytes))
}

const LINE_BREAKS = [0x0a, 0x0d]

/** As it is; in base64 where it has lines, as an OpenSSH key does: no field value may have any. */
function fieldText(bytes: Buffer): string {
  return bytes.toString(LINE_BREAKS.some((each) => bytes.includes(each)) ? 'base64' : 'latin1')
}

/** Whether a query has a parameter of that name, however it is spelled. */
export function hasParameter(search: string, key: string): boolean {
  const wanted = key.toLowerCase()
  for (const name of new URLSearchParams(search).keys()) {
    if (name.toLowerCase() === wanted) return true
  }
  return false
}

/** Appends to a path and query as it is sent. */
export function withQuery(path: string, parameter: string): string {
  return `${path}${path.includes('?') ? '&' : '?'}${parameter}`
}

/** RFC 3986 section 2.3: everything but the unreserved characters. */
export function escaped(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

function header(name: string, value: string): Injection {
  return { header: [name, value], query: null }
}
