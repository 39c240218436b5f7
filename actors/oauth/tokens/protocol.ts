/** Access and refresh tokens: granted, refreshed, presented, introspected. decisions.md 7.2, 7.3. */
import { address, type Ask, type Send } from '../../../runtime/kernel/protocol.js'
import type {
  AgentId,
  DelegationId,
  OrganizationId,
  SessionId,
  TenantId,
} from '../../domain/ids.js'
import type { ActingParty, Principal, SubjectType } from '../../domain/principal.js'

export type TokensProtocol = {
  /** Judges the credentials of a request on a bearer route. */
  authenticate: Ask<Authenticate, Authenticated | Unauthenticated>
  /** Checks a DPoP proof that comes without an access token, and uses it up. */
  proveKey: Ask<PresentedProof, KeyProven | ProofRefused>
  /** Opens an agent session and issues its first tokens. Whoever asks has authenticated the agent. */
  grantAgent: Ask<GrantAgent, Granted>
  /** A person's token narrowed to one organization. Whoever asks has judged membership and scopes. */
  grantOrganization: Ask<GrantOrganization, OrganizationGranted>
  /** Redeems an approved delegation, once. Whoever asks has authenticated the agent. */
  grantDelegated: Ask<GrantDelegated, DelegatedGranted | { readonly tag: 'gone' }>
  /** Runs one request of the token endpoint, whatever its grant. */
  exchange: Ask<TokenRequest, Issued | SecretIssued | ProofRefused | OAuthRefused>
  /** Authenticates a client for another endpoint that takes client authentication. */
  identifyClient: Ask<TokenRequest, ClientIdentified | ProofRefused | OAuthRefused>
  introspect: Ask<IntrospectRequest, Introspected | ProofRefused | OAuthRefused | Unauthenticated>
  /** Whether a web page of this origin may read the answers of the token endpoint (CORS). */
  originListed: Ask<OriginListed, { readonly tag: 'listed' } | { readonly tag: 'not_listed' }>
  /** Ends a token of the client that asks, and what hangs on it (RFC 7009). */
  revoke: Ask<TokenRequest, Revoked | OAuthRefused>
  /** Something revoked or suspended: what is remembered about these ids is dropped. */
  standingChanged: Send<StandingChanged>
}

export const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
/** The grants that the token endpoint answers in this build; discovery lists exactly these. */
export const GRANT_TYPES = [
  'authorization_code',
  'client_credentials',
  'refresh_token',
  TOKEN_EXCHANGE,
  'urn:ietf:params:oauth:grant-type:device_code',
  'urn:openid:params:grant-type:ciba',
] as const
export type GrantType = (typeof GRANT_TYPES)[number]

/** How a client may authenticate; discovery lists exactly these (RFC 8414 section 2). */
export const CLIENT_AUTH_METHODS = [
  'client_secret_basic',
  'client_secret_post',
  'private_key_jwt',
  'none',
] as const
export type ClientAuthMethod = (typeof CLIENT_AUTH_METHODS)[number]

/**
 * Algorithms of client assertions and of DPoP proofs. `Ed25519` is what RFC 9864 calls the one that
 * RFC 8037 left open as `EdDSA`: the same signatures, and clients send either.
 */
export const PROOF_ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519'] as const
export type ProofAlgorithm = (typeof PROOF_ALGORITHMS)[number]

export type Authenticate = {
  readonly token: string
  readonly scheme: 'Bearer' | 'DPoP'
  /** The DPoP header as sent; null when absent. */
  readonly dpopProof: string | null
  readonly httpMethod: string
  /** Absolute public URL of the request; its query and fragment do not count (RFC 9449 section 4.3). */
  readonly httpUrl: string
  /** A token for any audience will do: for /userinfo, which every application asks with its own. */
  readonly anyAudience?: boolean | undefined
}
export type Authenticated = { readonly tag: 'authenticated'; readonly principal: Principal }
export type Unauthenticated = {
  readonly tag: 'refused'
  readonly error:
    | 'unauthorized'
    | 'token_expired'
    | 'token_revoked'
    /** The token has expired, and so has the delegation that it rests on. */
    | 'delegation_expired'
    | 'invalid_dpop_proof'
    | 'use_dpop_nonce'
  readonly description: string
  /** For the DPoP-Nonce header, where the refusal carries one. */
  readonly dpopNonce?: string | undefined
}

export type PresentedProof = {
  readonly proof: string
  readonly httpMethod: string
  readonly httpUrl: string
}
export type KeyProven = { readonly tag: 'proven'; readonly jkt: string }
export type ProofRefused = {
  readonly tag: 'proof_refused'
  readonly error: 'invalid_dpop_proof' | 'use_dpop_nonce'
  readonly description: string
  readonly dpopNonce?: string | undefined
}

export type GrantAgent = {
  /** The tenant the tokens are for; an agent may be at home in another one. */
  readonly tenantId: TenantId
  readonly organizationId: OrganizationId | null
  readonly agentId: AgentId
  /** Already checked against what the agent may have in the tenant. */
  readonly scopes: readonly string[]
  /** Fingerprint of the key that signed the challenge. */
  readonly keyFingerprint: string
  /** From `proveKey` when the request came with a DPoP proof: the tokens are bound to it. */
  readonly jkt: string | null
}
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
  /** The direct token it is asked with: the new one ends when that one ends, whatever ends it. */
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
  readonly tenantId: TenantId
  readonly delegationId: DelegationId
  /** The login in which the agent fetches it: its key, once revoked, ends the delegation. */
  readonly agentSessionId: SessionId | null
  /** Of the token the agent asks with: the delegated ones are bound to the same key. */
  readonly jkt: string | null
  /** Of the delegation, from its approval on. */
  readonly lifetimeSecs: number
}
export type DelegatedGranted = {
  readonly tag: 'granted'
  readonly accessToken: string
  readonly tokenType: 'Bearer' | 'DPoP'
  readonly expiresInSecs: number
  /** Null where it would not outlast the access token. */
  readonly refreshToken: string | null
  readonly scopes: readonly string[]
}

/** A form as it came: names may repeat, and a repeated one is judged, not merged. */
export type FormFields = readonly (readonly [name: string, value: string])[]

export type TokenRequest = {
  readonly form: FormFields
  /** The Authorization header as sent; null when absent. */
  readonly authorization: string | null
  readonly dpopProof: string | null
  readonly httpMethod: string
  readonly httpUrl: string
  /** Of the client, for the audit log. */
  readonly address?: string | undefined
}
export type Issued = {
  readonly tag: 'issued'
  readonly accessToken: string
  readonly tokenType: 'Bearer' | 'DPoP'
  readonly expiresInSecs: number
  readonly scopes: readonly string[]
  readonly refreshToken: string | null
  readonly idToken: string | null
  /** As granted (RFC 9396 section 7). */
  readonly authorizationDetails: readonly Readonly<Record<string, unknown>>[] | null
  /** Of a token exchange (RFC 8693 section 2.2.1). */
  readonly issuedTokenType?: string | undefined
}
/** What the vault gives for a token (decisions.md 4, export; RFC 8693 section 2.2.1). */
export type SecretIssued = {
  readonly tag: 'secret_issued'
  /** The secret, or the access token of an upstream. */
  readonly accessToken: string
  readonly issuedTokenType: string
  readonly tokenType: 'N_A' | 'Bearer'
  /** Null: not known. */
  readonly expiresInSecs: number | null
  readonly scope: string | null
}
/** A refusal in the words of RFC 6749 section 5.2; the status is in the error map of decisions.md 7.3. */
export type OAuthRefused = {
  readonly tag: 'oauth_refused'
  readonly error: OAuthError
  readonly description: string
  /** The client tried HTTP Basic: the answer names that scheme (RFC 6749 section 5.2). */
  readonly basicTried: boolean
  /** Of a poll that is to be repeated: the interval now in force. */
  readonly retryIntervalSecs?: number | undefined
  /** Of something that is away for now. */
  readonly retryAfterSecs?: number | undefined
  /** Of `insufficient_scope`: the scopes that the token needs. */
  readonly scopes?: readonly string[] | undefined
}
/** The scope that lets a bearer token introspect (RFC 7662 section 2.1). */
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
  | 'authorization_pending'
  | 'slow_down'
  | 'access_denied'
  | 'expired_token'
  | 'consent_required'
  | 'policy_denied'
  | 'server_error'
  | 'temporarily_unavailable'

export type ClientIdentified = {
  readonly tag: 'identified'
  /** An application, or an agent with its own id. */
  readonly kind: 'application' | 'agent'
  readonly clientId: string
  /** It showed a secret or signed; otherwise it only said who it is. */
  readonly confidential: boolean
  /** Of the DPoP proof that came along; null without one. */
  readonly jkt: string | null
}

export type IntrospectRequest = TokenRequest
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
  /** For that organization alone. */
  readonly organizationBound: boolean
  readonly sessionId: SessionId | null
  /** The refresh family of the same authorization; null for a token without one. */
  readonly grantId: string | null
  readonly jkt: string | null
  readonly amr: readonly string[]
  readonly authTimeSecs: number | null
  readonly acr: string | null
  /** Outermost first; empty for a direct token. */
  readonly actors: readonly ActingParty[]
  readonly delegationId: DelegationId | null
  /** The agent that may act next; null when nobody may. */
  readonly mayAct: string | null
  readonly authorizationDetails: readonly Readonly<Record<string, unknown>>[] | null
}

export type OriginListed = {
  readonly origin: string
  /** The client that asks; null in a preflight, where any application will do. */
  readonly clientId: string | null
}

/** Said also where there was nothing to revoke (RFC 7009 section 2.2). */
export type Revoked = { readonly tag: 'revoked' }

export type StandingChanged = {
  /** Ids of sessions, agents, applications or tenants; `all` when notifications may have been lost. */
  readonly ids: readonly string[] | 'all'
}

export const tokens = address<TokensProtocol>('tokens', [
  'authenticate',
  'introspect',
  'originListed',
])
