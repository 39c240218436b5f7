/**
 * Authorization requests: judged, carried through sign-in and consent, answered with a code.
 * interface.md, OAuth and OIDC; decisions.md 7.3, 7.6 and 20 (consent).
 */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { Acr } from '../../domain/assurance.js'
import type { SessionId, TenantId } from '../../domain/ids.js'
import type { PageTenant } from '../../domain/tenants/branding.js'
import type {
  Authenticate,
  FormFields,
  OAuthRefused,
  ProofRefused,
  TokenRequest,
  Unauthenticated,
} from '../tokens/protocol.js'

export type AuthorizationProtocol = {
  /** A request at the authorization endpoint, pushed before or not. */
  begin: Ask<BeginAuthorization, Answered | Interaction | ConsentAsked | Refused>
  /** The browser comes back from signing in, or reloads the question. */
  resume: Ask<ResumeAuthorization, Answered | Interaction | ConsentAsked | Refused>
  /** The person said yes or no. */
  decide: Ask<DecideAuthorization, Answered | Interaction | ConsentAsked | Refused>
  /** RFC 9126. */
  push: Ask<TokenRequest, Pushed | PushRefused | OAuthRefused | ProofRefused>
  /** What people allowed applications, the latest first. */
  listConsents: Ask<PersonOfTenant, ConsentsListed>
  /** Takes a consent back; the tokens that rest on it end at once. */
  withdrawConsent: Ask<
    PersonOfTenant & { readonly clientId: string },
    { readonly tag: 'withdrawn' } | { readonly tag: 'unknown_consent' }
  >
  /** What the bearer of a token with openid may know of the person (OpenID Connect Core section 5.3). */
  userinfo: Ask<
    UserinfoRequest,
    Userinfo | NoToken | TokenMisplaced | UserinfoRefused | Unauthenticated
  >
  /** OpenID Connect RP-Initiated Logout 1.0. */
  endSession: Ask<EndSessionRequest, SessionEnded | Refused>
}

/** What the discovery documents say of this endpoint; it does exactly these. */
export const RESPONSE_TYPES = ['code'] as const
export const RESPONSE_MODES = ['query'] as const
export const CODE_CHALLENGE_METHODS = ['S256'] as const
export const PROMPTS = ['none', 'login', 'consent'] as const
/** The levels that a sign-in can reach: the last one needs passkeys. */
export const acrValues = (passkeys: boolean): readonly Acr[] =>
  passkeys ? ['aal1', 'aal2', 'aal3'] : ['aal1', 'aal2']
/** What comes before the handle of a pushed request (RFC 9126 section 2.2). */
export const REQUEST_URI_PREFIX = 'urn:ietf:params:oauth:request_uri:'

export type BeginAuthorization = {
  readonly parameters: FormFields
  /** The Host of the request: the one of a tenant is for its applications alone. */
  readonly host: string
  /** The session cookie; null when there is none. */
  readonly sessionToken: string | null
}
export type ResumeAuthorization = {
  /** From the address. */
  readonly handle: string
  readonly sessionToken: string | null
}
export type DecideAuthorization = ResumeAuthorization & {
  readonly action: 'allow' | 'deny'
  /** The session that the question was shown to: another one is asked anew. */
  readonly sessionId: string
  /** The scopes that the question named: more than these are asked for anew. */
  readonly scopes: readonly string[]
}

/** To the client, with a code or with an error (302). */
export type Answered = { readonly tag: 'answered'; readonly location: string }
/** To a page of our own (303). */
export type Interaction = { readonly tag: 'interaction'; readonly location: string }
/** The question to the person. */
export type ConsentAsked = {
  readonly tag: 'consent'
  readonly handle: string
  readonly sessionId: SessionId
  readonly tenant: PageTenant
  readonly clientName: string
  /** Where the answer goes: a host, or the scheme of an installed application. */
  readonly clientHost: string
  readonly email: string
  readonly scopes: readonly string[]
  /** Each of them as JSON for people to read. */
  readonly details: readonly string[]
  readonly uiLocales: string | null
  /** CSP sources that the form may lead to. */
  readonly formTargets: readonly string[]
}
/** Told here and never by a redirect: who would be told is not proven (decisions.md 7.6). */
export type Refused = {
  readonly tag: 'refused'
  readonly error: RefusedError
  readonly description: string
  /** For the page, where the request said so. */
  readonly uiLocales?: string | null | undefined
  /** Where a person can begin anew, for a browser that was on its way to that application. */
  readonly back?: { readonly clientName: string; readonly url: string } | undefined
}
export type RefusedError =
  | 'invalid_request'
  | 'invalid_request_uri'
  | 'invalid_client'
  | 'invalid_redirect_uri'
  | 'pkce_required'

/** Told to the client by a redirect. RFC 6749 section 4.1.2.1, OpenID Connect Core section 3.1.2.6. */
export type ReturnedError =
  | 'invalid_request'
  | 'unauthorized_client'
  | 'unsupported_response_type'
  | 'invalid_scope'
  | 'invalid_target'
  | 'invalid_authorization_details'
  | 'access_denied'
  | 'login_required'
  | 'consent_required'
  | 'unmet_authentication_requirements'
  | 'request_not_supported'
  | 'request_uri_not_supported'
  | 'registration_not_supported'

export type Pushed = {
  readonly tag: 'pushed'
  readonly requestUri: string
  readonly expiresInSecs: number
}
export type PushRefused = {
  readonly tag: 'push_refused'
  readonly error: RefusedError | ReturnedError
  readonly description: string
}

/** A person, by their subject in the tenant. */
export type PersonOfTenant = { readonly tenantId: TenantId; readonly subject: string }
export type ConsentsListed = { readonly tag: 'listed'; readonly consents: readonly ConsentSeen[] }
export type ConsentSeen = {
  readonly clientId: string
  readonly clientName: string
  readonly scopes: readonly string[]
  readonly createdAt: Date
  readonly updatedAt: Date
}

export type UserinfoRequest = Omit<Authenticate, 'token' | 'scheme' | 'anyAudience'> & {
  /** The Authorization header; null when absent. */
  readonly authorization: string | null
  /** `access_token` of a form body (RFC 6750 section 2.2); empty for GET. */
  readonly form: FormFields
  /** Host of the request: a token is good only where its tenant is meant. */
  readonly host: string
}
export type Userinfo = {
  readonly tag: 'userinfo'
  /** `sub`, `tenant_id` and whatever the token opens, in the spelling of the wire. */
  readonly claims: Readonly<Record<string, unknown>>
}
/** Nothing was presented, neither in the header nor in the form. */
export type NoToken = { readonly tag: 'no_token' }
/** The host names another tenant. */
export type TokenMisplaced = { readonly tag: 'misplaced' }
export type UserinfoRefused = {
  readonly tag: 'userinfo_refused'
  readonly error: 'invalid_request' | 'insufficient_scope'
  readonly description: string
}

export type EndSessionRequest = {
  readonly parameters: FormFields
  readonly sessionToken: string | null
}
export type SessionEnded = {
  readonly tag: 'ended'
  /** A registered address with its state; null: a page says so. */
  readonly location: string | null
  /** For that page; null when the application is gone. */
  readonly tenant: PageTenant | null
  readonly uiLocales: string | null
  /** The browser that asked held the session: its cookie goes. */
  readonly ownSession: boolean
}

export const authorization = address<AuthorizationProtocol>('authorization', [
  'listConsents',
  'userinfo',
])
