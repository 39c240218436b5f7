/** Credentials to a `Principal`, by asking the tokens actor; then what the route demands of it. */
import { isDirect, type Principal } from '../../actors/domain/principal.js'
import {
  type Authenticate,
  PROOF_ALGORITHMS,
  type TokensProtocol,
  type Unauthenticated,
} from '../../actors/oauth/tokens/protocol.js'
import type { ActorRef, AskOptions } from '../../runtime/kernel/actor.js'
import { type Problem, type ProblemName, quotable } from '../response/problems.js'
import type { Credentials, Security } from '../route.js'
import type { TokenHostCheck } from './tenant-hosts.js'

export type AuthenticationResult =
  | { readonly tag: 'principal'; readonly principal: Principal }
  | { readonly tag: 'problem'; readonly problem: Problem }

const PROBLEM_OF: Readonly<Record<Unauthenticated['error'], ProblemName>> = {
  unauthorized: 'unauthorized',
  token_expired: 'token-expired',
  token_revoked: 'token-revoked',
  delegation_expired: 'delegation-expired',
  invalid_dpop_proof: 'unauthorized',
  use_dpop_nonce: 'unauthorized',
}

export interface Authenticator {
  /**
   * Judges the access token of a request.
   * @param host the Host of the request: a token is good only where its tenant is meant.
   * @param scopes those that the operation needs; a challenge names them.
   */
  authenticate(
    credentials: Credentials,
    host: string,
    scopes: readonly string[],
    options: AskOptions,
  ): Promise<AuthenticationResult>
}

/** The scheme and token of an Authorization header; null when it is another scheme or malformed. */
export function presentedToken(
  authorization: string,
): { readonly scheme: Authenticate['scheme']; readonly token: string } | null {
  const space = authorization.indexOf(' ')
  const scheme = authorization.slice(0, space).toLowerCase()
  const token = authorization.slice(space + 1).trim()
  if (space < 0 || !/^[A-Za-z0-9._~+/-]+=*$/.test(token)) return null
  if (scheme === 'bearer') return { scheme: 'Bearer', token }
  return scheme === 'dpop' ? { scheme: 'DPoP', token } : null
}

/**
 * The part of a Bearer challenge that tells a client what to ask for, and where: the address of the
 * metadata (RFC 9728 section 5.1) and the scopes that the operation needs (RFC 6750 section 3).
 */
export function challengeHints(baseUrl: string, scopes: readonly string[]): string {
  const metadata = metadataHint(baseUrl)
  return scopes.length === 0 ? metadata : `${metadata}, scope="${scopes.join(' ')}"`
}

/** The challenge of a valid token that lacks a scope (RFC 6750 section 3.1). */
export function scopeChallenge(
  baseUrl: string,
  scopes: readonly string[],
): { readonly 'www-authenticate': string } {
  const named = scopes.length === 0 ? '' : `scope="${scopes.join(' ')}", `
  return {
    'www-authenticate': `Bearer error="insufficient_scope", ${named}${metadataHint(baseUrl)}`,
  }
}

function metadataHint(baseUrl: string): string {
  return `resource_metadata="${baseUrl}/.well-known/oauth-protected-resource"`
}

export function authenticator(
  tokens: ActorRef<TokensProtocol> | undefined,
  baseUrl: string,
  checkTokenHost: TokenHostCheck,
): Authenticator {
  const refuse = (problem: Problem): AuthenticationResult => ({ tag: 'problem', problem })
  return {
    async authenticate(credentials, host, scopes, options) {
      const { authorization, dpopProof, httpMethod, httpUrl } = credentials
      const hints = () => challengeHints(baseUrl, scopes)
      if (authorization === null) return refuse({ name: 'unauthorized', ...missingToken(hints()) })
      const presented = presentedToken(authorization)
      if (presented === null) return refuse({ name: 'unauthorized', ...malformedToken(hints()) })
      if (tokens === undefined) {
        return { tag: 'problem', problem: { name: 'service-unavailable', retryAfterSecs: 1 } }
      }
      const verdict = await tokens.ask(
        'authenticate',
        { scheme: presented.scheme, token: presented.token, dpopProof, httpMethod, httpUrl },
        options,
      )
      if (verdict.tag !== 'authenticated') {
        return {
          tag: 'problem',
          problem: { name: PROBLEM_OF[verdict.error], ...refusedToken(verdict, hints()) },
        }
      }
      const { principal } = verdict
      const judged = checkTokenHost(host, principal, options)
      const misplaced = judged === null ? null : await judged
      return misplaced === null
        ? { tag: 'principal', principal }
        : { tag: 'problem', problem: misplaced }
    },
  }
}

/** The challenge to a request without credentials names no error code (RFC 6750 section 3.1). */
export function missingToken(hints: string) {
  return {
    detail: 'This operation needs an access token in the Authorization header.',
    headers: { 'www-authenticate': `Bearer ${hints}` },
  }
}

/** `invalid_request` belongs to status 400, so a malformed token is invalid (RFC 6750 section 3.1). */
function malformedToken(hints: string) {
  return {
    detail: 'The Authorization header holds no bearer token.',
    headers: {
      'www-authenticate': `Bearer error="invalid_token", error_description="not a bearer token", ${hints}`,
    },
  }
}

/** RFC 6750 section 3, RFC 9449 section 7.1 and 9. */
export function refusedToken(verdict: Unauthenticated, hints: string) {
  const { error, description, dpopNonce } = verdict
  const proof = error === 'invalid_dpop_proof' || error === 'use_dpop_nonce'
  const words = quotable(description)
  const challenge = proof
    ? `DPoP error="${error}", error_description="${words}", algs="${PROOF_ALGORITHMS.join(' ')}"`
    : `Bearer error="invalid_token", error_description="${words}", ${hints}`
  return {
    detail: description,
    error,
    errorDescription: description,
    headers: {
      'www-authenticate': challenge,
      ...(dpopNonce === undefined ? {} : { 'dpop-nonce': dpopNonce }),
    },
  }
}

type TokenDemands = Omit<Extract<Security, { scheme: 'bearer' }>, 'scheme'>

/** What a route asks of the tokens that it is called with; null when nothing. */
export function demandsOf(security: Security): TokenDemands | null {
  switch (security.scheme) {
    case 'bearer':
      return security
    case 'person':
      return { scopes: security.scopes, subjects: ['human'], direct: 'required' }
    default:
      return null
  }
}

/** The demands on the metrics endpoint's caller without the configured token. */
const METRICS_DEMANDS = { scopes: ['metrics:read'], subjects: ['service'] } as const

/** The scopes that a token needs for a route: any one of them suffices. */
export function scopesOf(security: Security): readonly string[] {
  if (security.scheme === 'metrics') return METRICS_DEMANDS.scopes
  return demandsOf(security)?.scopes ?? []
}

/** What the route demands of a valid token; null when it is met. */
export function refuseAuthority(
  security: Security,
  principal: Principal,
  baseUrl: string,
): Problem | null {
  if (security.scheme === 'page_call') {
    return {
      name: 'insufficient-scope',
      detail: 'No scope allows this: the user does it on a page of this service.',
      headers: scopeChallenge(baseUrl, []),
    }
  }
  const demanded = security.scheme === 'metrics' ? METRICS_DEMANDS : demandsOf(security)
  if (demanded === null) return null
  const {
    subjects,
    direct = 'either',
    directScopes = [],
    organizationBound,
  }: TokenDemands = demanded
  const excepted = isDirect(principal) && holdsOne(principal, directScopes)
  const scopes = excepted ? directScopes : (demanded.scopes ?? [])
  if (principal.organizationBound === true && organizationBound !== 'accepted') {
    return {
      name: 'forbidden',
      detail: 'The token is bound to an organization: it is for the control plane alone.',
    }
  }
  if (scopes.length > 0 && !holdsOne(principal, scopes)) {
    const needed = scopes.join(' ')
    return {
      name: 'insufficient-scope',
      detail: `The token needs ${scopes.length > 1 ? 'one of the scopes' : 'the scope'} ${needed}.`,
      headers: scopeChallenge(baseUrl, scopes),
    }
  }
  // First, as what a delegated token says of its subject is the person, not who uses it.
  if (direct === 'required' && !isDirect(principal)) {
    return {
      name: 'forbidden',
      detail: 'This operation needs a direct token, not a delegated one.',
    }
  }
  if (subjects !== undefined && !subjects.includes(principal.subjectType)) {
    return {
      name: 'forbidden',
      detail: `This operation is for tokens of kind ${subjects.join(' or ')}.`,
    }
  }
  if (direct === 'forbidden' && isDirect(principal) && !excepted) {
    const other = directScopes.length === 0 ? '' : `, or one with ${directScopes.join(' or ')}`
    return {
      name: 'forbidden',
      detail: `This operation needs a delegated token, not a direct one${other}.`,
    }
  }
  return null
}

function holdsOne({ scopes }: Principal, wanted: readonly string[]): boolean {
  return wanted.some((scope) => scopes.includes(scope))
}
