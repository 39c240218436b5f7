/**
 * Messages of the tokens actor: issue, verify, introspect and revoke. See docs/reference/oauth.md. Outcomes of client
 * authentication are `Metered`.
 */
import { address, type Ask, type Send } from '../../../runtime/kernel/protocol.js'
import type { DelegationIntent } from '../../domain/agents/delegation-intent.js'
import type {
  AgentId,
  DelegationId,
  OrganizationId,
  SessionId,
  TenantId,
} from '../../domain/ids.js'
import type { OAuthReason, RefusedRequester } from '../../domain/oauth-reasons.js'
import {
  actClaim,
  type ActingParty,
  type Principal,
  type SubjectType,
} from '../../domain/principal.js'
import type { WindowState } from '../../operations/rate-limits/protocol.js'

export type TokensProtocol = {
  /** Verifies the access token of a request. */
  authenticate: Ask<Authenticate, Authenticated | Unauthenticated>
  /** Verifies a DPoP proof without an access token. A proof can be used once. */
  proveKey: Ask<DpopProof, KeyProven | ProofRefused>
  /** Creates an agent session and issues its first tokens. The caller has authenticated the agent. */
  grantAgent: Ask<GrantAgent, Granted | PolicyRefusal | ChallengeSpent>
  /** Downscopes a user token to one organization. The caller has checked membership and scopes. */
  grantOrganization: Ask<GrantOrganization, OrganizationGranted>
  /** Redeems an approved delegation once. The caller has authenticated the agent. */
  grantDelegated: Ask<GrantDelegated, DelegatedGranted | PolicyRefusal | { readonly tag: 'gone' }>
  /** Handles a token request of any grant type. */
  issueToken: Ask<TokenRequest, Issued | SecretIssued | ProofRefused | OAuthRefused>
  /** Authenticates the client of a request to another endpoint, such as PAR. */
  identifyClient: Ask<IdentifyClient, ClientIdentified | ProofRefused | OAuthRefused>
  introspectToken: Ask<
    IntrospectRequest,
    Introspected | SignedIntrospection | ProofRefused | OAuthRefused | Unauthenticated
  >
  /** Whether CORS allows a web origin to read responses of the token endpoint. */
  originListed: Ask<OriginListed, { readonly tag: 'listed' } | { readonly tag: 'not_listed' }>
  /** Revokes a token of the requesting client, and its refresh family (RFC 7009). */
  revokeToken: Ask<TokenRequest, Revoked | OAuthRefused>
  /** Drops cached token status and clients of these ids, after a revocation or suspension. */
  invalidate: Send<Invalidate>
}

/** Methods of client authentication. Discovery lists exactly these (RFC 8414 section 2). */
export const CLIENT_AUTH_METHODS = [
  'client_secret_basic',
  'client_secret_post',
  'private_key_jwt',
  'spiffe_jwt',
  'none',
] as const

/**
 * Algorithms of client assertions and DPoP proofs. `Ed25519` (RFC 9864) and `EdDSA` (RFC 8037) are two
 * names of the same algorithm, and clients use both.
 */
export const PROOF_ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519'] as const
export type ProofAlgorithm = (typeof PROOF_ALGORITHMS)[number]

export type Authenticate = {
  readonly token: string
  readonly scheme: 'Bearer' | 'DPoP'
  /** The DPoP header as sent. Null if absent. */
  readonly dpopProof: string | null
  readonly httpMethod: string
  /** Absolute public URL of the request. Query and fragment are ignored (RFC 9449 section 4.3). */
  readonly httpUrl: string
  /** Address of the client. Without it an API key that is limited to addresses is refused. */
  readonly address?: string | undefined
  /** Accepts any audience: for /userinfo, which applications call with tokens for their own API. */
  readonly anyAudience?: boolean | undefined
}
export type Authenticated = { readonly tag: 'authenticated'; readonly principal: Principal }
export type Unauthenticated = {
  readonly tag: 'refused'
  /** The header has no token. */
  readonly isMalformed?: true
  readonly error:
    | 'unauthorized'
    /** An API key that is limited to other addresses. */
    | 'policy_denied'
    | 'token_expired'
    | 'token_revoked'
    /** The token and its delegation have expired. */
    | 'delegation_expired'
    | 'invalid_dpop_proof'
    | 'use_dpop_nonce'
  readonly description: string
  /** The value of the DPoP-Nonce header, if the response needs one. */
  readonly dpopNonce?: string | undefined
}

export type DpopProof = {
  readonly proof: string
  readonly httpMethod: string
  readonly httpUrl: string
}
export type KeyProven = { readonly tag: 'proven'; readonly jkt: string }
export type ProofRefused = {
  readonly tag: 'proof_refused'
  readonly error: 'invalid_dpop_proof' | 'use_dpop_nonce'
  readonly description: string
  readonly reason: OAuthReason
  readonly dpopNonce?: string | undefined
  readonly requester?: RefusedRequester | undefined
}

/** An access policy of the tenant refuses the token. */
export type PolicyRefusal = { readonly tag: 'policy_denied' }

export type GrantAgent = {
  /** The address of the client. Null for the first tokens of a new workspace, to which no policy applies. */
  readonly address: string | null
  /** The tenant of the tokens. The agent's home tenant may be another one. */
  readonly tenantId: TenantId
  readonly organizationId: OrganizationId | null
  readonly agentId: AgentId
  /** Already limited to what the agent may have in the tenant. */
  readonly scopes: readonly string[]
  /** Fingerprint of the agent key, which signed the challenge. */
  readonly keyFingerprint: string
  /** From `proveKey` if the request has a DPoP proof: the tokens are bound to it. */
  readonly jkt: string | null
  /** The login challenge, which is spent with the commit of the session. Null: the agent has proved its key before. */
  readonly challengeId: string | null
}
/** The challenge was spent by another login, or has expired. */
export type ChallengeSpent = { readonly tag: 'challenge_spent' }
export type Granted = {
  readonly tag: 'granted'
  readonly accessToken: string
  readonly tokenType: 'Bearer' | 'DPoP'
  readonly expiresInSecs: number
  readonly refreshToken: string
  readonly scopes: readonly string[]
  readonly sessionId: SessionId
}

export type GrantOrganization = {
  /** The presented direct token. The new token is revoked with it. */
  readonly principal: Principal
  readonly organizationId: OrganizationId
  readonly scopes: readonly string[]
}
export type OrganizationGranted = {
  readonly tag: 'granted'
  readonly accessToken: string
  readonly tokenType: 'Bearer' | 'DPoP'
  readonly expiresInSecs: number
}

export type GrantDelegated = {
  /** The address of the client. */
  readonly address: string
  readonly tenantId: TenantId
  readonly delegationId: DelegationId
  /** The agent's session. Revoking its key revokes the delegation. */
  readonly agentSessionId: SessionId | null
  /** The key of the agent's token. The delegated tokens are bound to it. */
  readonly jkt: string | null
  /** Lifetime of the delegation, from its approval. */
  readonly lifetimeSecs: number
}
export type DelegatedGranted = {
  readonly tag: 'granted'
  readonly accessToken: string
  readonly tokenType: 'Bearer' | 'DPoP'
  readonly expiresInSecs: number
  /** Null if it would not outlast the access token. */
  readonly refreshToken: string | null
  readonly scopes: readonly string[]
}

/** Form fields as sent. Repeated names are kept, so that they can be refused. */
export type FormFields = readonly (readonly [name: string, value: string])[]

export type TokenRequest = {
  readonly form: FormFields
  /** The Authorization header as sent. Null if absent. */
  readonly authorization: string | null
  readonly dpopProof: string | null
  readonly httpMethod: string
  readonly httpUrl: string
  /** Client address, with trusted proxies resolved. */
  readonly address: string
}
/** The quota that a request of an authenticated client counts against. */
export type ClientQuota = 'token' | 'device' | 'ciba'
/** The state of the quotas that the request counted against. Absent without rate limits. */
export type Metered = { readonly windows?: readonly WindowState[] | undefined }
export type Issued = {
  readonly tag: 'issued'
  readonly accessToken: string
  readonly tokenType: 'Bearer' | 'DPoP'
  readonly expiresInSecs: number
  readonly scopes: readonly string[]
  readonly refreshToken: string | null
  readonly idToken: string | null
  /** The granted details (RFC 9396 section 7). */
  readonly authorizationDetails: readonly Readonly<Record<string, unknown>>[] | null
  /** Set by a token exchange (RFC 8693 section 2.2.1). */
  readonly issuedTokenType?: string | undefined
}
/** A credential that the vault exports by token exchange (RFC 8693 section 2.2.1). */
export type SecretIssued = {
  readonly tag: 'secret_issued'
  /** The secret, or the access token of an upstream. */
  readonly accessToken: string
  readonly issuedTokenType: string
  readonly tokenType: 'N_A' | 'Bearer'
  /** Null if unknown. */
  readonly expiresInSecs: number | null
  readonly scope: string | null
}
/** An error of RFC 6749 section 5.2. docs/concepts/tokens.md lists the HTTP statuses. */
export type OAuthRefused = {
  readonly tag: 'oauth_refused'
  readonly error: OAuthError
  readonly description: string
  readonly reason: OAuthReason
  /** The current poll interval, for a poll that may be repeated. */
  readonly retryIntervalSecs?: number | undefined
  /** Set if a dependency is temporarily unavailable, or a rate limit is exceeded. */
  readonly retryAfterSecs?: number | undefined
  /** The exceeded rate limits. */
  readonly violated?: readonly string[] | undefined
  /** The missing scopes of `insufficient_scope`. */
  readonly scopes?: readonly string[] | undefined
  /** Set by the token endpoint, for the log. */
  readonly requester?: RefusedRequester | undefined
} & Metered
/** The scope with which an access token can introspect (RFC 7662 section 2.1). */
export const INTROSPECTION_SCOPE = 'tokens:introspect'

export type OAuthError =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'invalid_scope'
  | 'invalid_target'
  | 'invalid_authorization_details'
  | 'insufficient_scope'
  | 'insufficient_user_authentication'
  | 'authorization_pending'
  | 'slow_down'
  | 'access_denied'
  | 'expired_token'
  | 'consent_required'
  | 'policy_denied'
  | 'rate_limited'
  | 'server_error'
  | 'temporarily_unavailable'

export type IdentifyClient = TokenRequest & {
  readonly quota: ClientQuota
  /** Whether the form may have a request object. Default: it is not read. */
  readonly takesRequestObject?: boolean | undefined
}
export type ClientIdentified = {
  readonly tag: 'identified'
  /** An application, or an agent with its own id. */
  readonly kind: 'application' | 'agent'
  readonly clientId: string
  /** True if it used a secret or assertion. False if it only sent its client_id. */
  readonly confidential: boolean
  /** Key thumbprint of the DPoP proof. Null without one. */
  readonly jkt: string | null
  /** The metadata document that identifies the client. Absent for a registered one. */
  readonly documentSha256?: string | undefined
  /** The verified request object of the form, or its fault. Absent without one. */
  readonly requestObject?: RequestObject | undefined
} & Metered
export type RequestObject =
  | { readonly alg: ProofAlgorithm; readonly parameters: FormFields }
  | { readonly fault: string }

export type IntrospectRequest = TokenRequest & {
  /** Whether the response is a signed JWT (RFC 9701). Default: JSON. */
  readonly signed?: boolean | undefined
}
export type SignedIntrospection = { readonly tag: 'introspected_signed'; readonly jwt: string }
export type Introspected = { readonly tag: 'introspected'; readonly answer: Introspection }
export type Introspection = InactiveToken | ActiveToken
export type InactiveToken = { readonly active: false }
export type ActiveToken = {
  readonly active: true
  readonly tokenType: 'Bearer' | 'DPoP' | 'refresh_token'
  readonly scope: string
  readonly clientId: string
  readonly subject: string
  readonly subjectType: SubjectType
  readonly tenantId: TenantId
  readonly issuer: string
  readonly audience: readonly string[]
  readonly expiresAtSecs: number
  readonly issuedAtSecs: number
  readonly notBeforeSecs: number
  readonly tokenId: string
  readonly organizationId: OrganizationId | null
  /** Whether the token is valid for that organization only. */
  readonly organizationBound: boolean
  readonly sessionId: SessionId | null
  /** The refresh family of the same grant. Null without one. */
  readonly grantId: string | null
  readonly jkt: string | null
  readonly amr: readonly string[]
  readonly authTimeSecs: number | null
  readonly acr: string | null
  /** Outermost actor first. Empty for a direct token. */
  readonly actors: readonly ActingParty[]
  readonly delegationId: DelegationId | null
  readonly delegation: DelegationIntent | undefined
  /** The agent that may act next. Null if no agent may. */
  readonly mayAct: string | null
  readonly authorizationDetails: readonly Readonly<Record<string, unknown>>[] | null
}

export type OriginListed = {
  readonly origin: string
  /** The requesting client. Null in a preflight request, which allows every application's origins. */
  readonly clientId: string | null
}

/** Also returned for an unknown token (RFC 7009 section 2.2). */
export type Revoked = { readonly tag: 'revoked' }

export type Invalidate = {
  /** Ids of sessions, agents, applications or tenants. `all` after lost notifications. */
  readonly ids: readonly string[] | 'all'
}

/** RFC 7662 section 2.2: an inactive token has no other member. */
export function introspectionBody(answer: Introspection) {
  if (!answer.active) return { active: false as const }
  return {
    active: true as const,
    scope: answer.scope,
    client_id: answer.clientId,
    token_type: answer.tokenType,
    exp: answer.expiresAtSecs,
    iat: answer.issuedAtSecs,
    nbf: answer.notBeforeSecs,
    sub: answer.subject,
    aud: answer.audience.length === 1 ? answer.audience[0]! : [...answer.audience],
    iss: answer.issuer,
    jti: answer.tokenId,
    tenant_id: answer.tenantId,
    subject_type: answer.subjectType,
    ...(answer.organizationId === null ? {} : { organization_id: answer.organizationId }),
    ...(answer.organizationBound ? { organization_bound: true as const } : {}),
    ...(answer.sessionId === null ? {} : { sid: answer.sessionId }),
    ...(answer.grantId === null ? {} : { grant_id: answer.grantId }),
    ...(answer.acr === null ? {} : { acr: answer.acr, aal: Number(answer.acr.slice(-1)) }),
    ...(answer.amr.length === 0 ? {} : { amr: [...answer.amr] }),
    ...(answer.authTimeSecs === null ? {} : { auth_time: answer.authTimeSecs }),
    ...(answer.jkt === null ? {} : { cnf: { jkt: answer.jkt } }),
    ...actClaim(answer.actors),
    ...(answer.delegationId === null ? {} : { delegation_id: answer.delegationId }),
    ...(answer.delegation && { delegation: answer.delegation }),
    ...(answer.mayAct === null ? {} : { may_act: { sub: answer.mayAct } }),
    ...(answer.authorizationDetails === null
      ? {}
      : { authorization_details: answer.authorizationDetails.map((one) => ({ ...one })) }),
  }
}

export const tokens = address<TokensProtocol>('tokens', {
  idempotent: ['authenticate', 'introspectToken', 'originListed'],
})
