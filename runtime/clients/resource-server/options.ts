/** Options of a resource server, checked when it is created. */
import type { Clock } from '../../kernel/clock.js'
import type { FetchLike } from './documents.js'
import type { ReplayStore } from './dpop.js'
import { isSecureUrl } from './issuer-keys.js'

export type ResourceServerOptions = {
  /** The issuer identifier of the authorization server, exactly as in its metadata and in `iss`. */
  readonly issuer: string
  /** The URL of this resource, as registered and as clients know it. Access tokens must name it in `aud`. */
  readonly resource: string
  /**
   * The scopes that a client needs for a start. The metadata and a challenge without an operation list them. Do not list
   * `offline_access`: it is a scope of the authorization server.
   */
  readonly scopes: readonly string[]
  /** The narrower scopes that a broader one includes: `{'files:write': ['files:read']}`. Applied transitively. */
  readonly implied?: Readonly<Record<string, readonly string[]>> | undefined
  /** Only tokens of this tenant (`tenant_id`) are accepted. */
  readonly tenantId?: string | undefined
  /** The value of `aud`, if it is not the URL of the resource. */
  readonly audience?: string | undefined
  /** `resource_name` of the metadata. */
  readonly name?: string | undefined
  /** `resource_documentation` of the metadata. */
  readonly documentation?: string | undefined
  readonly dpop?: DpopOptions | undefined
  /** Signature algorithms of access tokens. Default: ES256, EdDSA. */
  readonly algorithms?: readonly string[] | undefined
  /** Default: `jwks_uri` of the issuer's metadata (RFC 8414). */
  readonly jwksUri?: string | undefined
  /** Origins from which status lists are fetched. Default: the origin of the issuer. */
  readonly statusListOrigins?: readonly string[] | undefined
  /** Tolerance for differences between clocks, in seconds. Default 10, at most 60. */
  readonly clockToleranceSecs?: number | undefined
  /** Origins of browsers that may call the resource itself. The metadata is open to all. Default: none. */
  readonly corsOrigins?: '*' | readonly string[] | undefined
  /** Serves the metadata also at the root of the host, for clients that look only there. Default true. */
  readonly metadataAtRoot?: boolean | undefined
  readonly fetch?: FetchLike | undefined
  readonly clock?: Clock | undefined
}

export type DpopOptions = {
  /** Refuses tokens that are not bound to a key. Bound tokens always need a proof. Default false. */
  readonly required?: boolean | undefined
  /** Age of a proof in seconds. Default 60, at most 300. */
  readonly maxAgeSecs?: number | undefined
  /** Demands a nonce of this server in each proof (RFC 9449 section 9). Default false. */
  readonly nonces?: boolean | undefined
  /** The secret of the nonces, at least 32 bytes, the same in all processes. Default: random. */
  readonly nonceSecret?: Uint8Array | undefined
  /** Remembers the ids of proofs. Default: the memory of this process. */
  readonly replayStore?: ReplayStore | undefined
}

/** Signature algorithms of access tokens that svc uses. */
export const ACCESS_TOKEN_ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519'] as const

/** RFC 6749 section 3.3. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/
/** Symmetric algorithms and `none` are never accepted (RFC 8725 section 3.1). */
const ALGORITHMS: ReadonlySet<string> = new Set(
  'ES256 ES384 ES512 EdDSA Ed25519 PS256 PS384 PS512 RS256 RS384 RS512'.split(' '),
)
const CLOCK_TOLERANCE_SECS_MAX = 60
const PROOF_AGE_SECS_MAX = 300
const NONCE_SECRET_BYTES_MIN = 32

/** @throws TypeError that names the option. */
export function checkOptions(options: ResourceServerOptions): void {
  const { issuer, resource, jwksUri, scopes, implied = {}, algorithms = [], dpop = {} } = options
  demand('issuer', 'must be an https URL', isSecureUrl(issuer))
  demand('resource', 'must be an https URL', isSecureUrl(resource))
  // RFC 8707 section 2, RFC 9728 section 1.2.
  demand('resource', 'must have no fragment', !resource.includes('#'))
  demand('resource', 'must have no query', !resource.includes('?'))
  demand('jwksUri', 'must be an https URL', jwksUri === undefined || isSecureUrl(jwksUri))
  const all = [
    ...scopes,
    ...Object.entries(implied).flatMap(([broad, narrow]) => [broad, ...narrow]),
  ]
  demand(
    'scopes',
    'must be scopes without spaces',
    all.every((scope) => SCOPE.test(scope)),
  )
  demand('scopes', 'must not contain offline_access', !scopes.includes('offline_access'))
  demand(
    'algorithms',
    'must be asymmetric signature algorithms',
    algorithms.every((name) => ALGORITHMS.has(name)),
  )
  const inRange = (value: number, min: number, max: number) => value >= min && value <= max
  demand(
    'clockToleranceSecs',
    `must be 0 to ${CLOCK_TOLERANCE_SECS_MAX}`,
    inRange(options.clockToleranceSecs ?? 0, 0, CLOCK_TOLERANCE_SECS_MAX),
  )
  demand(
    'dpop.maxAgeSecs',
    `must be 1 to ${PROOF_AGE_SECS_MAX}`,
    inRange(dpop.maxAgeSecs ?? 1, 1, PROOF_AGE_SECS_MAX),
  )
  demand(
    'dpop.nonceSecret',
    `must have at least ${NONCE_SECRET_BYTES_MIN} bytes`,
    (dpop.nonceSecret?.byteLength ?? NONCE_SECRET_BYTES_MIN) >= NONCE_SECRET_BYTES_MIN,
  )
}

function demand(option: string, rule: string, holds: boolean): void {
  if (!holds) throw new TypeError(`createResourceServer: ${option} ${rule}`)
}
