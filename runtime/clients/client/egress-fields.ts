/** A request to an upstream in the form of POST /v1/proxy/body (docs/guides/vault/egress-proxy.md). */
import type { AuthScheme } from '../../../actors/domain/vault/egress.js'

export type HeaderPairs = readonly (readonly [name: string, value: string])[]

/** Hop-by-hop fields and fields that a relayed call sets. */
const NOT_SENT = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/**
 * The fields of a request in the form of the service, without the field that the service injects. A signature of the
 * program stays: the service replaces it, and reads from it what is signed.
 */
export function relayedFields(
  headers: HeaderPairs,
  scheme: AuthScheme | null,
): Record<string, string> {
  const own = scheme === null || !('prefix' in scheme) ? null : scheme.name
  const fields: Record<string, string> = {}
  const others: [string, string][] = []
  for (const [name, value] of headers) {
    const lower = name.toLowerCase()
    // CGI servers do not distinguish `_` and `-`.
    const isOwn = own !== null && lower.replaceAll('_', '-') === own.replaceAll('_', '-')
    if (NOT_SENT.has(lower) || isOwn) continue
    if (!PLAIN_NAME.test(lower) || !PLAIN_VALUE.test(value)) {
      others.push([lower, value])
      continue
    }
    const as = lower === 'content-type' ? lower : `x-svc-header-${lower}`
    fields[as] = fields[as] === undefined ? value : `${fields[as]}, ${value}`
  }
  if (others.length > 0) fields['x-svc-headers'] = asciiJson(others)
  return fields
}

/** Names and values that every HTTP server supports: uWebSockets ignores others and truncates values. */
const PLAIN_NAME = /^[a-z0-9-]+$/
const PLAIN_VALUE = /^[\t -~]*$/

/** ASCII-only JSON, which a field value can hold. */
function asciiJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[^ -~]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Removes every parameter of a name from a URL and leaves the rest unchanged. */
export function withoutParameter(url: string, key: string): string {
  const start = url.indexOf('?')
  if (start < 0) return url
  const wanted = key.toLowerCase()
  const kept = url
    .slice(start + 1)
    .split('&')
    .filter(
      (part) =>
        ![...new URLSearchParams(part).keys()].some((name) => name.toLowerCase() === wanted),
    )
  return url.slice(0, start) + (kept.length === 0 ? '' : `?${kept.join('&')}`)
}
