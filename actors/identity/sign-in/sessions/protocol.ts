/**
 * Browser sessions: who is signed in, at which assurance level, since when.
 *
 * **Requiring a sign-in.** A caller that needs an authenticated user (an authorization request, a delegation page,
 * the account page) keeps its own state in its own table and asks `demand` with the session token of the request
 * (`request.browser.sessionToken` in a route). If the session meets the demand, it is returned. Otherwise a sign-in
 * flow is stored and `location` is the redirect target for a 303: `/auth/login?flow=...`, `/auth/mfa?flow=...` or
 * `/auth/mfa/enroll?flow=...`. These pages ask for password, second factor and enrolment as far as the demand
 * requires, and then redirect to `returnTo`, a same-origin path such as `/oauth/authorize/resume/<id>`. The caller
 * asks the same `demand` again there. Only this check authorizes: that the browser came back proves nothing.
 *
 * ```
 * const verdict = await browserSessions.demand({
 *   token: message.sessionToken, tenantId, demand: { level: 2, maxAgeSecs: 300 },
 *   flow: { returnTo: `/oauth/authorize/resume/${id}`, reason: { tag: 'application', name } },
 * }, context)
 * if (verdict.tag === 'sign_in') return { tag: 'interaction', location: verdict.location }
 * verdict.session // the demand is met
 * ```
 *
 * For `prompt=none` use `read` and `unmetDemand` (actors/domain/assurance.ts) instead: no flow is started. For
 * `prompt=login` set `demand.since` to the time of the request.
 *
 * A session belongs to one tenant and never meets a demand of another tenant.
 */
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import type { Email } from '../../../domain/email.js'
import type { AssuranceLevel, SessionDemand } from '../../../domain/assurance.js'
import type { AccountId, OrganizationId, SessionId, TenantId } from '../../../domain/ids.js'
import type { OrganizationRole } from '../../../domain/scopes.js'

export type BrowserSessionsProtocol = {
  /** The session of a cookie. `none` also while a second factor is pending. */
  read: Ask<{ token: string | null }, SessionOpen | SessionNone>
  /** Returns the session, or a redirect to sign in. See above. */
  demand: Ask<DemandSession, DemandMet | SignInNeeded>
  /** Signs out: ends the session and emits `auth.logout`. */
  end: Ask<{ session: SessionName; reason: EndReason }, { tag: 'ended' } | { tag: 'not_open' }>
  /** The user's open sessions in a tenant, most recently used first. */
  list: Ask<
    { tenantId: TenantId; accountId: AccountId },
    { tag: 'listed'; sessions: SessionSeen[] }
  >
  /** Ends every session of the user in the tenant except this one. */
  revokeOthers: Ask<
    { tenantId: TenantId; accountId: AccountId; exceptId: SessionId },
    { tag: 'revoked_others' }
  >
  /** Ends one of the user's own sessions. The session of another user is reported as unknown. */
  revokeOne: Ask<
    { tenantId: TenantId; accountId: AccountId; sessionId: string },
    { tag: 'revoked' } | { tag: 'unknown_session' }
  >
  /** Options for an assertion over a statement. `no_passkey`: the account has none that proved user verification. */
  getStatementOptions: Ask<
    { accountId: AccountId; statement: string },
    { tag: 'options'; options: object } | { tag: 'no_passkey' }
  >
  /** Verifies an assertion over a statement, with user presence and user verification. */
  signStatement: Ask<
    { tenantId: TenantId; accountId: AccountId; statement: string; credential: string },
    { tag: 'signed'; signed: SignedStatement } | { tag: 'wrong' } | { tag: 'no_passkey' }
  >
}

export type SessionName = { readonly tenantId: TenantId; readonly id: SessionId }
export type EndReason = 'logout' | 'client_logout' | 'revoked'

/** A signed-in user, with every factor the account requires. */
export type BrowserSession = {
  readonly id: SessionId
  readonly tenantId: TenantId
  readonly organizationId: OrganizationId | null
  readonly accountId: AccountId
  readonly tenantUserId: string
  /** Pairwise: the user's `sub` in this tenant. */
  readonly sub: string
  /** Empty: a guest. */
  readonly email: Email | ''
  readonly emailVerified: boolean
  readonly displayName: string
  /** Roles of the tenant user, as stored. */
  readonly roles: readonly string[]
  /**
   * The highest of the tenant user's roles and the role in the tenant's organization; `member` without a role.
   * `HUMAN_SCOPES[role]` is the upper limit of the user's scopes.
   */
  readonly role: OrganizationRole
  /**
   * Opened by a provider of the tenant, for an account that has other keys. It neither sees nor changes anything that
   * affects other tenants.
   */
  readonly confined: boolean
  readonly level: AssuranceLevel
  /** `aal1`, `aal2`, `aal3`. */
  readonly acr: string
  /** RFC 8176: `pwd`; with a second factor `pwd otp mfa`; a passkey alone `hwk user mfa`. */
  readonly amr: readonly string[]
  readonly authTime: Date
  readonly createdAt: Date
  readonly expiresAt: Date
}

export type SessionOpen = { readonly tag: 'open'; readonly session: BrowserSession }

export type SessionNone = {
  readonly tag: 'none'
  /** Tenant of the ended session, for a new sign-in there. Null when unknown. */
  readonly tenantId: TenantId | null
}

export type DemandSession = {
  /** Session cookie of the browser, or null. */
  readonly token: string | null
  readonly tenantId: TenantId
  /** `highest`: the highest level the account can reach, at least 2. */
  readonly demand: Omit<SessionDemand, 'level'> & { readonly level: AssuranceLevel | 'highest' }
  readonly flow: NewFlow
  /** If set, only this user is accepted (`id_token_hint`, `sub` of a claims request). */
  readonly sub?: string | undefined
}

/** Input of a new sign-in flow. */
export type NewFlow = {
  /** Same-origin path with query, starting with one slash. Anything else is a defect and throws. */
  readonly returnTo: string
  readonly reason: FlowReason
  /** Prefills the email field. */
  readonly loginHint?: string | undefined
  /** `ui_locales`, as sent. */
  readonly uiLocales?: string | undefined
  /**
   * Targets for the `form-action` policy: an origin such as `https://app.example`, or a scheme such as
   * `com.example.app:`. Browsers apply `form-action` to every redirect after a form, so an authorization request names
   * the origin of its redirect URI.
   */
  readonly formTargets?: readonly string[] | undefined
}

/** Why the user must sign in, for the text on the page. */
export type FlowReason =
  /** The user opened the account page directly. */
  | { readonly tag: 'account' }
  /** An application requests authentication. */
  | {
      readonly tag: 'application'
      readonly name: string
      /** The user asked for another account, so the page shows no address. Default: no. */
      readonly anyone?: boolean
    }
  /** An agent requests a delegation. */
  | { readonly tag: 'agent'; readonly name: string }
  /** A change on the account page needs fresher or stronger authentication. */
  | { readonly tag: 'sensitive' }

export type DemandMet = { readonly tag: 'met'; readonly session: BrowserSession }
/** `location` is a same-origin path, for a 303 response. */
export type SignInNeeded = { readonly tag: 'sign_in'; readonly location: string }

/** Everything that verifies an assertion later (WebAuthn section 7.2). */
export type SignedStatement = {
  /** Its SHA-256 is the challenge. */
  readonly statement: string
  readonly credentialId: Uint8Array
  /** COSE (RFC 9052 section 7). */
  readonly publicKey: Uint8Array
  readonly authenticatorData: Uint8Array
  readonly clientDataJson: Uint8Array
  readonly signature: Uint8Array
}

export type SessionSeen = {
  readonly id: SessionId
  readonly createdAt: Date
  readonly lastSeenAt: Date
  /** `aal1`, `aal2`, `aal3`. */
  readonly acr: string
  /** User-Agent as sent, cut to 256 characters. */
  readonly userAgent: string
  readonly address: string
}

export const browserSessions = address<BrowserSessionsProtocol>('browser-sessions', {
  idempotent: ['read', 'list', 'getStatementOptions'],
})
