/** CORS: the web origins that may read an answer (WHATWG Fetch, CORS protocol; docs/reference/http.md). */
import type { HeaderPair } from '../http-exchange.js'
import type { CorsPolicy } from '../route.js'

/** Looks up the allowed_origins of applications. */
export interface ApplicationOrigins {
  /** True if the application lists the origin. With `clientId` null or unknown: if any application does. */
  lists(origin: string, clientId: string | null): Promise<boolean>
}

interface CorsOptions {
  /** server.cors_allowed_origins. Empty means the issuer's origin. The origins of the two apps are added. */
  readonly allowedOrigins: readonly string[]
  readonly issuer: string
  /** Origins of the service and its own apps. */
  readonly appOrigins: ReadonlySet<string>
  readonly applications: ApplicationOrigins | undefined
}

export interface Cors {
  /**
   * CORS headers of an answer. `clientId` is null for a preflight, and before the client is known. A `cached` answer gets
   * Vary without an Origin too, because the cache may serve it to another origin (Fetch standard, CORS protocol and HTTP
   * caches).
   */
  headers(
    policy: CorsPolicy,
    origin: string | undefined,
    clientId: string | null | undefined,
    cached?: boolean,
  ): Promise<readonly HeaderPair[]> | readonly HeaderPair[]
}

const PREFLIGHT_MAX_AGE_SECS = '600'
const EXPOSED =
  'x-request-id, ratelimit, ratelimit-policy, retry-after, retry-interval, www-authenticate, ' +
  'dpop-nonce, ' +
  'location, link, etag, idempotency-replayed, deprecation, sunset, svc-warnings, ' +
  'payment-required, payment-response, x-payment-response'
/**
 * The names are listed because `*` does not include `authorization` and older browsers do not support it. `*`
 * admits headers of tracing, frameworks and SDKs. It is valid only without credentials, which no answer allows.
 */
const REQUEST_HEADERS =
  'authorization, content-type, dpop, idempotency-key, mcp-protocol-version, x-request-id, ' +
  'if-none-match, ' +
  'x-svc-fulfillment-secret, payment-signature, x-payment, *'

const PUBLIC: readonly HeaderPair[] = [
  ['access-control-allow-origin', '*'],
  ['access-control-expose-headers', EXPOSED],
]
const REFUSED: readonly HeaderPair[] = [['vary', 'origin']]
const NOTHING: readonly HeaderPair[] = []

export function corsOf({ allowedOrigins, issuer, appOrigins, applications }: CorsOptions): Cors {
  const own = new URL(issuer).origin
  const apps = [...appOrigins].filter((origin) => origin !== own)
  const origins = new Set([...(allowedOrigins.length === 0 ? [own] : allowedOrigins), ...apps])
  const allowed = (origin: string): readonly HeaderPair[] => [
    ['access-control-allow-origin', origin],
    ['access-control-expose-headers', EXPOSED],
    ['vary', 'origin'],
  ]
  return {
    headers(policy, origin, clientId, cached = false) {
      if (policy === 'public') return PUBLIC
      if (origin === undefined) return cached ? REFUSED : NOTHING
      if (policy === 'own-apps') return appOrigins.has(origin) ? allowed(origin) : REFUSED
      if (policy === 'configured' || applications === undefined) {
        return origins.has(origin) ? allowed(origin) : REFUSED
      }
      // No origin is allowed before the client is known. A preflight (null) checks all applications.
      if (clientId === undefined) return REFUSED
      return applications
        .lists(origin, clientId)
        .then((listed) => (listed ? allowed(origin) : REFUSED))
    },
  }
}

/** Further headers of a preflight: methods, request headers, lifetime. */
export function preflightHeaders(allow: string): readonly HeaderPair[] {
  return [
    ['access-control-allow-methods', allow],
    ['access-control-allow-headers', REQUEST_HEADERS],
    ['access-control-max-age', PREFLIGHT_MAX_AGE_SECS],
  ]
}
