/** Which web origins may read an answer. WHATWG Fetch, CORS protocol; decisions.md 14 and 23. */
import type { HeaderPair } from '../http-exchange.js'
import type { CorsPolicy } from '../route.js'

/** Knows the allowed_origins of applications. */
export interface ApplicationOrigins {
  /** Whether the application lists the origin; with `clientId` null, whether any application does. */
  lists(origin: string, clientId: string | null): Promise<boolean>
}

export interface CorsOptions {
  /** server.cors_allowed_origins; empty means the issuer's origin. */
  readonly allowedOrigins: readonly string[]
  readonly issuer: string
  readonly applications: ApplicationOrigins | undefined
}

export interface Cors {
  /**
   * Headers for an answer to a request with this Origin, or without one; `clientId` null is a
   * preflight. Where the answer is `cached`, the next to be given it may be a page of another origin
   * (Fetch standard, CORS protocol and HTTP caches).
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
 * Named, because `*` does not stand for `authorization` and older browsers do not know it; `*` for what
 * tracing, frameworks and SDKs add by themselves. It is one only without credentials, which no answer here allows.
 */
const REQUEST_HEADERS =
  'authorization, content-type, dpop, idempotency-key, x-request-id, if-none-match, ' +
  'x-svc-fulfillment-secret, payment-signature, x-payment, *'

const PUBLIC: readonly HeaderPair[] = [
  ['access-control-allow-origin', '*'],
  ['access-control-expose-headers', EXPOSED],
]
const REFUSED: readonly HeaderPair[] = [['vary', 'origin']]
const NOTHING: readonly HeaderPair[] = []

export function corsOf({ allowedOrigins, issuer, applications }: CorsOptions): Cors {
  const origins = new Set(allowedOrigins.length === 0 ? [new URL(issuer).origin] : allowedOrigins)
  const allowed = (origin: string): readonly HeaderPair[] => [
    ['access-control-allow-origin', origin],
    ['access-control-expose-headers', EXPOSED],
    ['vary', 'origin'],
  ]
  return {
    headers(policy, origin, clientId, cached = false) {
      if (policy === 'public') return PUBLIC
      if (origin === undefined) return cached ? REFUSED : NOTHING
      if (policy === 'configured' || applications === undefined) {
        return origins.has(origin) ? allowed(origin) : REFUSED
      }
      // Before the client is known nothing may be read; a preflight (null) asks for any application.
      if (clientId === undefined) return REFUSED
      return applications
        .lists(origin, clientId)
        .then((listed) => (listed ? allowed(origin) : REFUSED))
    },
  }
}

/** What a preflight is told besides: methods, headers, how long to remember. */
export function preflightHeaders(allow: string): readonly HeaderPair[] {
  return [
    ['access-control-allow-methods', allow],
    ['access-control-allow-headers', REQUEST_HEADERS],
    ['access-control-max-age', PREFLIGHT_MAX_AGE_SECS],
  ]
}
