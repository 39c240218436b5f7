/** Refusals of a resource server (RFC 6750 section 3, RFC 9449 section 7.1, RFC 9728 section 5.1). */

export type ChallengeError =
  | 'invalid_token'
  | 'insufficient_scope'
  | 'invalid_dpop_proof'
  | 'use_dpop_nonce'
  | 'temporarily_unavailable'

/** An answer to send as it is. It never contains the token. */
export type Refusal = {
  readonly tag: 'refused'
  readonly status: 401 | 403 | 503
  /** Null when the request had no credentials. */
  readonly error: ChallengeError | null
  readonly description: string
  readonly headers: Readonly<Record<string, string>>
  /** JSON: `{"error", "error_description"}`. */
  readonly body: string
}

export type ChallengeOptions = {
  readonly error?: ChallengeError | undefined
  /** A sentence for the developer of the client. */
  readonly description?: string | undefined
  /** All scopes of the operation. Default: the scopes of the resource server. */
  readonly scopes?: readonly string[] | undefined
  /** The request used the scheme DPoP. */
  readonly dpop?: boolean | undefined
  readonly nonce?: string | undefined
}

export type ChallengeContext = {
  readonly metadataUrl: string
  readonly scopes: readonly string[]
  readonly dpopAlgorithms: readonly string[]
  readonly dpopRequired: boolean
  readonly cors: Readonly<Record<string, string>>
}

const RETRY_AFTER_SECS = 2
const DPOP_ERRORS: ReadonlySet<string | undefined> = new Set([
  'invalid_dpop_proof',
  'use_dpop_nonce',
])

export function refusal(context: ChallengeContext, options: ChallengeOptions): Refusal {
  const { error, nonce } = options
  const description = options.description ?? 'An access token is needed.'
  const unavailable = error === 'temporarily_unavailable'
  return {
    tag: 'refused',
    status: unavailable ? 503 : error === 'insufficient_scope' ? 403 : 401,
    error: error ?? null,
    description,
    headers: {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      ...context.cors,
      ...(unavailable
        ? { 'retry-after': String(RETRY_AFTER_SECS) }
        : { 'www-authenticate': challenges(context, options) }),
      ...(nonce === undefined ? {} : { 'dpop-nonce': nonce }),
    },
    body: JSON.stringify({ error: error ?? 'unauthorized', error_description: description }),
  }
}

/** Bearer first, because clients that know no other scheme read only the first challenge. */
function challenges(context: ChallengeContext, options: ChallengeOptions): string {
  const { error, description, dpop = false } = options
  const scopes = options.scopes ?? context.scopes
  const parameters = [
    ...(error === undefined ? [] : [`error="${error}"`]),
    ...(scopes.length === 0 ? [] : [`scope="${scopes.join(' ')}"`]),
    `resource_metadata="${context.metadataUrl}"`,
    ...(error === undefined || description === undefined
      ? []
      : [`error_description="${quotable(description)}"`]),
  ]
  const algorithms = `algs="${context.dpopAlgorithms.join(' ')}"`
  const ofDpop = `DPoP ${[...parameters, algorithms].join(', ')}`
  if (dpop || context.dpopRequired || DPOP_ERRORS.has(error)) return ofDpop
  return `Bearer ${parameters.join(', ')}, DPoP ${algorithms}`
}

/** The characters of `error_description` (RFC 6750 section 3). */
function quotable(text: string): string {
  return text.replaceAll(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, "'")
}
