/** Authenticates a request with the tokens actor, and checks the principal against the route. */
import { CONSOLE_CLIENT_ID } from '../../actors/domain/people/console-client.js'
import { isDirect, type Principal } from '../../actors/domain/principal.js'
import {
  type Authenticate,
  PROOF_ALGORITHMS,
  type TokensProtocol,
  type Unauthenticated,
} from '../../actors/oauth/tokens/protocol.js'
import type { ScimProtocol } from '../../actors/identity/scim/protocol.js'
import type { ActorRef, AskOptions } from '../../runtime/kernel/actor.js'
import { type Problem, type ProblemName, quotable } from '../response/problems.js'
import type { Credentials, Security } from '../route.js'
import type { TokenHostCheck } from './tenant-hosts.js'

type AuthenticationResult =
  | { readonly tag: 'principal'; readonly principal: Principal }
  | { readonly tag: 'problem'; readonly problem: Problem }

const PROBLEM_OF: Readonly<Record<Unauthenticated['error'], ProblemName>> = {
  unauthorized: 'unauthorized',
  policy_denied: 'policy-denied',
  token_expired: 'token-expired',
  token_revoked: 'token-revoked',
  delegation_expired: 'delegation-expired',
  invalid_dpop_proof: 'unauthorized',
  use_dpop_nonce: 'unauthorized',
}

export interface Authenticator {
  /**
   * Verifies the access token of a request.
   * @param host the Host of the request. On a tenant's host only tokens of that tenant are valid.
   * @param addressOf the address of the client, which costs a system call. API keys may be limited to addresses.
   * @param scopes of the operation, for the challenge.
   */
  authenticate(
    credentials: Credentials,
    host: string,
    addressOf: () => string,
    scopes: readonly string[],
    options: AskOptions,
  ): Promise<AuthenticationResult>
}

/** The scheme and token of an Authorization header. Null for another scheme or malformed credentials. */
function presentedToken(
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
 * Parameters of a Bearer challenge: the URL of the resource metadata (RFC 9728 section 5.1) and the scopes of the
 * operation (RFC 6750 section 3).
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
    async authenticate(credentials, host, addressOf, scopes, options) {
      const { authorization, dpopProof, httpMethod, httpUrl } = credentials
      const hints = () => challengeHints(baseUrl, scopes)
      if (authorization === null)
        return refuse({ name: 'unauthorized', reason: 'token_missing', ...missingToken(hints()) })
      const presented = presentedToken(authorization)
      if (presented === null)
        return refuse({
          name: 'unauthorized',
          reason: 'token_malformed',
          ...malformedToken(hints()),
        })
      if (tokens === undefined) {
        return { tag: 'problem', problem: { name: 'service-unavailable', retryAfterSecs: 1 } }
      }
      const verdict = await tokens.authenticate(
        {
          scheme: presented.scheme,
          token: presented.token,
          dpopProof,
          httpMethod,
          httpUrl,
          // A JWT has dots, an API key has none.
          address: presented.token.includes('.') ? undefined : addressOf(),
        },
        options,
      )
      if (verdict.tag !== 'authenticated') {
        if (verdict.error === 'policy_denied')
          return refuse({
            name: 'policy-denied',
            reason: reasonOfToken(verdict),
            detail: `${verdict.description}.`,
          })
        return {
          tag: 'problem',
          problem: {
            name: PROBLEM_OF[verdict.error],
            error: verdict.error,
            ...refusedToken(verdict, hints()),
          },
        }
      }
      const { principal } = verdict
      const checking = checkTokenHost(host, principal, options)
      const hostProblem = checking === null ? null : await checking
      return hostProblem === null
        ? { tag: 'principal', principal }
        : { tag: 'problem', problem: { ...hostProblem, client: principal } }
    },
  }
}

/** Verifies the bearer tokens of directories. Access tokens are unknown to the actor. */
export function scimAuthenticator(
  scim: ActorRef<ScimProtocol> | undefined,
  checkTokenHost: TokenHostCheck,
): Authenticator {
  const refuse = (reason: string, detail: string, fault: string): AuthenticationResult => ({
    tag: 'problem',
    problem: {
      name: 'unauthorized',
      reason,
      detail,
      headers: { 'www-authenticate': `Bearer realm="scim"${fault}` },
    },
  })
  return {
    async authenticate({ authorization }, host, _addressOf, _scopes, options) {
      if (authorization === null)
        return refuse(
          'token_missing',
          'This operation needs a SCIM token in the Authorization header.',
          '',
        )
      const presented = presentedToken(authorization)
      const verdict =
        scim === undefined || presented?.scheme !== 'Bearer'
          ? ({ tag: 'unknown' } as const)
          : await scim.authenticate({ token: presented.token }, options)
      if (verdict.tag !== 'authenticated')
        return refuse(
          presented?.scheme === 'Bearer' ? 'token_invalid' : 'token_malformed',
          'The SCIM token is unknown or has expired.',
          ', error="invalid_token", error_description="unknown or expired"',
        )
      const { principal } = verdict
      const checking = checkTokenHost(host, principal, options)
      const problem = checking === null ? null : await checking
      return problem === null
        ? { tag: 'principal', principal }
        : { tag: 'problem', problem: { ...problem, client: principal } }
    },
  }
}

/** The challenge to a request without credentials has no error code (RFC 6750 section 3.1). */
export function missingToken(hints: string) {
  return {
    detail: 'This operation needs an access token in the Authorization header.',
    headers: { 'www-authenticate': `Bearer ${hints}` },
  }
}

/** `invalid_request` has status 400, so a malformed token is reported as `invalid_token` (RFC 6750 section 3.1). */
function malformedToken(hints: string) {
  return {
    detail: 'The Authorization header does not contain a bearer token.',
    headers: {
      'www-authenticate': `Bearer error="invalid_token", error_description="not a bearer token", ${hints}`,
    },
  }
}

/** The word of a refused token for the log. */
export function reasonOfToken({ error, isMalformed }: Unauthenticated): string {
  if (error === 'unauthorized') return isMalformed ? 'token_malformed' : 'token_invalid'
  return error === 'policy_denied' ? 'api_key_address_not_allowed' : error
}

/** The challenge to a refused token (RFC 6750 section 3, RFC 9449 sections 7.1 and 9). */
export function refusedToken(verdict: Unauthenticated, hints: string) {
  const { error, description, dpopNonce } = verdict
  const proof = error === 'invalid_dpop_proof' || error === 'use_dpop_nonce'
  const words = quotable(description)
  const challenge = proof
    ? `DPoP error="${error}", error_description="${words}", algs="${PROOF_ALGORITHMS.join(' ')}"`
    : `Bearer error="invalid_token", error_description="${words}", ${hints}`
  return {
    reason: reasonOfToken(verdict),
    detail: description,
    errorDescription: description,
    headers: {
      'www-authenticate': challenge,
      ...(dpopNonce === undefined ? {} : { 'dpop-nonce': dpopNonce }),
    },
  }
}

type TokenDemands = Omit<Extract<Security, { scheme: 'bearer' }>, 'scheme'>

/** The requirements of a route on access tokens, or null. */
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

/** Requirements of the metrics endpoint on access tokens. */
const METRICS_DEMANDS = { scopes: ['metrics:read'], subjects: ['service'] } as const

/** The scopes of a route. One of them is enough. */
export function scopesOf(security: Security): readonly string[] {
  if (security.scheme === 'metrics') return METRICS_DEMANDS.scopes
  return demandsOf(security)?.scopes ?? []
}

/** Checks the principal of a valid token against the route. @returns undefined if it is accepted. */
export function refuseAuthority(
  security: Security,
  principal: Principal,
  baseUrl: string,
): Problem | undefined {
  if (security.scheme === 'page_call') {
    return {
      name: 'insufficient-scope',
      reason: 'page_only',
      detail:
        'No scope permits this operation: the user must perform it on a page of this service.',
      headers: scopeChallenge(baseUrl, []),
    }
  }
  const demanded = security.scheme === 'metrics' ? METRICS_DEMANDS : demandsOf(security)
  if (demanded === null) return undefined
  const {
    subjects,
    direct = 'either',
    directScopes = [],
    organizationBound,
    console,
  }: TokenDemands = demanded
  const excepted = isDirect(principal) && holdsOne(principal, directScopes)
  const scopes = excepted ? directScopes : (demanded.scopes ?? [])
  if (principal.organizationBound === true && organizationBound !== 'accepted') {
    return {
      name: 'forbidden',
      reason: 'token_bound_to_organization',
      detail: 'The token is bound to an organization and is valid only for the control plane.',
    }
  }
  if (scopes.length > 0 && !holdsOne(principal, scopes)) {
    const needed = scopes.join(' ')
    return {
      name: 'insufficient-scope',
      reason: 'scope_missing',
      detail: `The token needs ${scopes.length > 1 ? 'one of the scopes' : 'the scope'} ${needed}.`,
      headers: scopeChallenge(baseUrl, scopes),
    }
  }
  // Before the subject check: the subject of a delegated token is the user, not the agent.
  if (direct === 'required' && !isDirect(principal)) {
    return {
      name: 'forbidden',
      reason: 'token_delegated',
      detail: 'This operation needs a direct token, not a delegated one.',
    }
  }
  const isOfConsole = console === 'accepted' && principal.clientId === CONSOLE_CLIENT_ID
  if (subjects !== undefined && !subjects.includes(principal.subjectType) && !isOfConsole) {
    return {
      name: 'forbidden',
      reason: 'subject_not_allowed',
      detail: `This operation is for tokens of kind ${subjects.join(' or ')}.`,
    }
  }
  if (direct === 'forbidden' && isDirect(principal) && !excepted) {
    const other = directScopes.length === 0 ? '' : `, or one with ${directScopes.join(' or ')}`
    return {
      name: 'forbidden',
      reason: 'token_direct',
      detail: `This operation needs a delegated token, not a direct one${other}.`,
    }
  }
  return undefined
}

function holdsOne({ scopes }: Principal, wanted: readonly string[]): boolean {
  return wanted.some((scope) => scopes.includes(scope))
}
