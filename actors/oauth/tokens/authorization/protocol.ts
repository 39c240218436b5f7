/** Messages of the authorization actor. See docs/reference/oauth.md. */
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import type { Acr } from '../../../domain/assurance.js'
import type { SessionId, TenantId } from '../../../domain/ids.js'
import type { VerifiedClient } from '../../../domain/oauth-reasons.js'
import type { PageTenant } from '../../../domain/tenants/branding.js'
import type {
  Authenticate,
  FormFields,
  OAuthRefused,
  ProofRefused,
  TokenRequest,
  Unauthenticated,
} from '../protocol.js'

export type AuthorizationProtocol = {
  /** A request at the authorization endpoint, by parameters or by request_uri. */
  authorize: Ask<
    BeginAuthorization,
    Answered | AccountsShown | Interaction | ConsentAsked | Refused
  >
  /** The browser returns from sign-in, or reloads the consent page. */
  resumeAuthorization: Ask<ResumeAuthorization, StoredOutcome>
  /** The user chose an account, or another sign-in. */
  chooseAccount: Ask<ChooseAccount, StoredOutcome>
  /** The user allowed or denied the request. */
  decideAuthorization: Ask<DecideAuthorization, StoredOutcome>
  /** Pushed authorization request (RFC 9126). */
  pushAuthorizationRequest: Ask<TokenRequest, Pushed | PushRefused | OAuthRefused | ProofRefused>
  /** The consents of a user, the newest first. */
  listConsents: Ask<PersonOfTenant, ConsentsListed>
  /** Withdraws a consent and revokes the tokens that depend on it. */
  withdrawConsent: Ask<
    PersonOfTenant & { readonly clientId: string },
    { readonly tag: 'withdrawn' } | { readonly tag: 'unknown_consent' }
  >
  /** UserInfo for an access token with the scope openid (OpenID Connect Core section 5.3). */
  getUserinfo: Ask<
    UserinfoRequest,
    Userinfo | SignedUserinfo | NoToken | TokenMisplaced | UserinfoRefused | Unauthenticated
  >
  /** OpenID Connect RP-Initiated Logout 1.0. */
  endSession: Ask<EndSessionRequest, SessionEnded | Refused>
}

/** The outcome of a stored request. */
export type StoredOutcome =
  | Answered
  | AccountsShown
  | Interaction
  | ConsentAsked
  | Refused
  | AnsweredBefore

/** What the endpoint supports. Discovery publishes exactly these. */
export const RESPONSE_TYPES = ['code'] as const
export const RESPONSE_MODES = ['query', 'form_post', 'jwt', 'query.jwt', 'form_post.jwt'] as const
export type ResponseMode = (typeof RESPONSE_MODES)[number]
export const CODE_CHALLENGE_METHODS = ['S256'] as const
export const PROMPTS = ['none', 'login', 'consent', 'select_account'] as const
/** The levels that a sign-in can reach. `aal3` needs passkeys. */
export const acrValues = (passkeys: boolean): readonly Acr[] =>
  passkeys ? ['aal1', 'aal2', 'aal3'] : ['aal1', 'aal2']
/** Prefix of the request_uri of pushed requests (RFC 9126 section 2.2). */
export const REQUEST_URI_PREFIX = 'urn:ietf:params:oauth:request_uri:'

export type BeginAuthorization = {
  readonly parameters: FormFields
  /** The Host header. A tenant's host serves only the tenant's applications. */
  readonly host: string
  /** The session cookie. Null without one. */
  readonly sessionToken: string | null
  /** Identifies one browser (gateway/request/browser.ts). */
  readonly browserId: string
  /** It is a form of another site. A browser adds no cookie to it (SameSite=Lax). */
  readonly isForeignForm: boolean
  /** The address of the browser. */
  readonly address: string
}
export type ResumeAuthorization = {
  /** The path parameter. */
  readonly handle: string
  readonly sessionToken: string | null
  readonly browserId: string
  /** The address of the browser. */
  readonly address: string
}
export type ChooseAccount = ResumeAuthorization & {
  /** The id of a session of the page, or `another`. */
  readonly account: string
}
export type DecideAuthorization = ResumeAuthorization & {
  readonly action: 'allow' | 'deny'
  /** The session of the consent page. With another session the user is asked again. */
  readonly sessionId: string
  /** The scopes of the consent page. If the request needs more, the user is asked again. */
  readonly scopes: readonly string[]
}

/** Returns to the client with a code or an error: redirects (302), or a form that the browser posts. */
export type Answered = { readonly tag: 'answered'; readonly location: string } | Posted
/** OAuth 2.0 Form Post Response Mode section 2. */
export type Posted = {
  readonly tag: 'posted'
  /** The redirect URI. */
  readonly action: string
  readonly fields: Readonly<Record<string, string>>
  readonly tenant: PageTenant
  readonly clientName: string
  readonly uiLocales: string | null
  /** CSP sources of the form and its redirects. */
  readonly formTargets: readonly string[]
}
/** This browser decided before, and the application has the answer. */
export type AnsweredBefore = {
  readonly tag: 'answered_before'
  readonly decided: 'approved' | 'denied'
  readonly clientName: string
  readonly tenant: PageTenant
  readonly uiLocales: string | null
  /** A link to start again. Null if the application has no address for it. */
  readonly back: { readonly clientName: string; readonly url: string } | null
}
/** Redirects to a page of the service (303). */
export type Interaction = { readonly tag: 'interaction'; readonly location: string }
/** Shows the accounts of the browser, for `prompt=select_account`. */
export type AccountsShown = {
  readonly tag: 'accounts'
  readonly handle: string
  readonly tenant: PageTenant
  readonly clientName: string
  readonly accounts: readonly {
    readonly sessionId: SessionId
    readonly name: string
    /** Empty: a guest. */
    readonly email: string
  }[]
  readonly uiLocales: string | null
  /** CSP sources of redirects after the form. */
  readonly formTargets: readonly string[]
}
/** Shows the consent page. */
export type ConsentAsked = {
  readonly tag: 'consent'
  readonly handle: string
  readonly sessionId: SessionId
  readonly tenant: PageTenant
  readonly clientName: string
  /** The host of the redirect URI, or the scheme of an installed application. */
  readonly clientHost: string
  /** Facts about a client that its metadata document identifies. Null for a registered client. */
  readonly documented: DocumentedClient | null
  readonly email: string
  readonly scopes: readonly string[]
  /** The API resources of the request. Empty for other audiences. */
  readonly resources: readonly { readonly name: string; readonly resource: string }[]
  /** The scopes of these resources among `scopes`, in their words. */
  readonly resourceScopes: readonly {
    readonly name: string
    readonly description: string
    readonly kind: 'read' | 'write' | 'money'
  }[]
  /** The scopes that an earlier consent of the user does not contain. Empty without one. */
  readonly newScopes: readonly string[]
  /** Every redirect URI of the client is one of the user's own computer. */
  readonly loopbackOnly: boolean
  /** When the client registered itself. Null for a client of the tenant's administrators. */
  readonly firstSeenAt: Date | null
  /** The authorization details as indented JSON. */
  readonly details: readonly string[]
  readonly uiLocales: string | null
  /** CSP sources of redirects after the form. */
  readonly formTargets: readonly string[]
}
/** What the consent page shows of a client that is not registered. */
export type DocumentedClient = {
  /** The host of the client_id: the name of the party. */
  readonly host: string
  /** What the client calls itself. Not verified. */
  readonly claimedName: string | null
  /** ISO 8601. */
  readonly firstSeen: string
  /** A data URL. Not verified. */
  readonly logo: string | null
}
/** Shown here and never redirected, since the redirect URI is not verified (RFC 6749 section 4.1.2.1). */
export type Refused = {
  readonly tag: 'refused'
  readonly error: RefusedError
  readonly description: string
  /** Set with `rate_limited`. */
  readonly retryAfterSecs?: number | undefined
  /** Language of the error page, from the request. */
  readonly uiLocales?: string | null | undefined
  /** A link to start again, if the application is known. */
  readonly back?: { readonly clientName: string; readonly url: string } | undefined
}
export type RefusedError =
  | 'invalid_target'
  | 'rate_limited'
  | 'invalid_request'
  | 'invalid_request_uri'
  | 'invalid_client'
  | 'invalid_redirect_uri'
  | 'pkce_required'

/** Redirected to the client (RFC 6749 section 4.1.2.1, OpenID Connect Core section 3.1.2.6). */
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
  readonly error: RefusedError | ReturnedError | 'invalid_request_object'
  readonly description: string
}

/** A user, by their subject in the tenant. */
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
  /** The Authorization header. Null if absent. */
  readonly authorization: string | null
  /** `access_token` of a form body (RFC 6750 section 2.2). Empty for GET. */
  readonly form: FormFields
  /** The Host header: a token is valid only at its own tenant's host. */
  readonly host: string
}
export type Userinfo = {
  readonly tag: 'userinfo'
  /** `sub`, `tenant_id` and the claims that the token permits, with their wire names. */
  readonly claims: Readonly<Record<string, unknown>>
}
/** The request has no token, neither in the header nor in the form. */
/** OpenID Connect Core section 5.3.2. */
export type SignedUserinfo = { readonly tag: 'userinfo_signed'; readonly jwt: string }
export type NoToken = { readonly tag: 'no_token' }
/** The host belongs to another tenant. */
export type TokenMisplaced = { readonly tag: 'misplaced'; readonly client: VerifiedClient }
export type UserinfoRefused = {
  readonly tag: 'userinfo_refused'
  /** The client of the valid token. */
  readonly client?: VerifiedClient
  readonly error: 'invalid_request' | 'insufficient_scope'
  readonly description: string
}

export type EndSessionRequest = {
  readonly parameters: FormFields
  readonly sessionToken: string | null
}
export type SessionEnded = {
  readonly tag: 'ended'
  /** A registered post_logout_redirect_uri with its state. Null: a page confirms the sign-out. */
  readonly location: string | null
  /** What the frames of the page load, each to sign out at an application. With frames, the page leads on to `location`. */
  readonly frames: readonly string[]
  /** The branding of that page. Null if the application was deleted. */
  readonly tenant: PageTenant | null
  readonly uiLocales: string | null
  /** True if the browser's own session ended: its cookie is deleted. */
  readonly ownSession: boolean
}

export const authorization = address<AuthorizationProtocol>('authorization', {
  idempotent: ['listConsents', 'getUserinfo'],
})
