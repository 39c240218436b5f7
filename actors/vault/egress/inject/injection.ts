/** Injection of a secret into a request, by the `auth_scheme` of its credential. */
import type { SentScheme } from '../../../domain/vault/egress.js'
import type { HeaderPair } from '../protocol.js'

export type Injection = {
  readonly header: HeaderPair | null
  /** The encoded query parameter to append; null when the secret is in a header. */
  readonly query: string | null
}

/**
 * The header or query parameter with the secret. The HTTP client needs strings, which cannot be wiped,
 * so the result must not outlive the request.
 */
export function inject(scheme: SentScheme, secret: Uint8Array): Injection {
  const bytes = Buffer.from(secret.buffer, secret.byteOffset, secret.byteLength)
  const { name } = scheme
  switch (scheme.kind) {
    case 'field':
    case 'token':
      return { header: [name, scheme.prefix + fieldText(bytes)], query: null }
    case 'basic':
      return { header: [name, scheme.prefix + bytes.toString('base64')], query: null }
    case 'query':
      return { header: null, query: `${escaped(name)}=${escaped(bytes.toString('utf8'))}` }
  }
}

const LINE_BREAKS = [0x0a, 0x0d]

/** Unchanged, or base64 for a secret with line breaks (an OpenSSH key), which a field cannot hold. */
function fieldText(bytes: Buffer): string {
  return bytes.toString(LINE_BREAKS.some((byte) => bytes.includes(byte)) ? 'base64' : 'latin1')
}

/** True if a query has the parameter, ignoring case and encoding. */
export function hasParameter(search: string, key: string): boolean {
  const wanted = key.toLowerCase()
  for (const name of new URLSearchParams(search).keys()) {
    if (name.toLowerCase() === wanted) return true
  }
  return false
}

/** Removes the parameters of these names from a request target, and leaves the rest unchanged. */
export function withoutParameters(path: string, keys: readonly string[]): string {
  const start = path.indexOf('?')
  if (start < 0 || keys.length === 0) return path
  const parts = path.slice(start + 1).split('&')
  const kept = parts.filter((part) => !keys.some((key) => hasParameter(part, key)))
  return path.slice(0, start) + (kept.length === 0 ? '' : `?${kept.join('&')}`)
}

/** Appends a parameter to a request target. */
export function withQuery(path: string, parameter: string): string {
  return `${path}${path.includes('?') ? '&' : '?'}${parameter}`
}

/** Percent-encodes everything but unreserved characters (RFC 3986 section 2.3). */
export function escaped(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
