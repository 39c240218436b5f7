/**
 * The sessions of people's browsers: who is signed in, how surely and since when.
 *
 * **Sending a browser to sign in and getting it back.** Whoever needs a person (an authorization
 * request, a delegation page, the account page) keeps its own state in its own table and asks
 * `demand` with the session token of the request (`request.browser.sessionToken` in a route). Either
 * the demand is met and the session comes back, or an interaction is written down here and
 * `location` is the address to answer 303 with: `/auth/login?flow=...`, `/auth/mfa?flow=...` or
 * `/auth/mfa/enroll?flow=...`. These pages lead through password, second factor and enrolment as
 * far as the demand needs them, and then send the browser with 303 to `returnTo`, an own path such
 * as `/oauth/authorize/resume/<id>`. There the same `demand` is asked again: it decides, the pages
 * only lead the way. Nothing is to be believed of the fact that the browser came back.
 *
 *     const verdict = await browserSessions.ask('demand', {
 *       token: message.sessionToken, tenantId, demand: { level: 2, maxAgeSecs: 300 },
 *       flow: { returnTo: `/oauth/authorize/resume/${id}`, reason: { tag: 'application', name } },
 *     }, turn)
 *     if (verdict.tag === 'sign_in') return { tag: 'interaction', location: verdict.location }
 *     verdict.session // met
 *
 * With `prompt=none` ask `read` and `unmetDemand` (actors/domain/assurance.ts) instead: no
 * interaction is begun. With `prompt=login` pass `demand.since` = the moment the request came.
 *
 * A session belongs to one tenant: a demand for another tenant is not met by it.
 */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { AssuranceLevel, SessionDemand } from '../../domain/assurance.js'
import type { AccountId, OrganizationId, SessionId, TenantId } from '../../domain/ids.js'
import type { OrganizationRole } from '../../domain/scopes.js'

export type BrowserSessionsProtocol = {
  /** The session behind a cookie. `none` also while a second factor is still owed. */
  read: Ask<{ token: string | null }, SessionOpen | SessionNone>
  /** Met, or where to send the browser. See above. */
  demand: Ask<DemandSession, DemandMet | SignInNeeded>
  /** Signs out: ends the session and tells `auth.logout`. */
  end: Ask<{ session: SessionName; reason: EndReason }, { tag: 'ended' } | { tag: 'not_open' }>
  /** The open sessions of a person in a tenant, the latest seen first. */
  list: Ask<
    { tenantId: TenantId; accountId: AccountId },
    { tag: 'listed'; sessions: SessionSeen[] }
  >
  /** Ends every session of the person in the tenant but this one. */
  revokeOthers: Ask<
    { tenantId: TenantId; accountId: AccountId; exceptId: SessionId },
    { tag: 'revoked_others' }
  >
  /** Ends one of the person's own sessions; another's is unknown. */
  revokeOne: Ask<
    { tenantId: TenantId; accountId: AccountId; sessionId: string },
    { tag: 'revoked' } | { tag: 'unknown_session' }
  >
}

export type SessionName = { readonly tenantId: TenantId; readonly id: SessionId }
export type EndReason = 'logout' | 'client_logout' | 'revoked'

/** A person, signed in with everything their account asks for. */
export type BrowserSession = {
  readonly id: SessionId
  readonly tenantId: TenantId
  readonly organizationId: OrganizationId | null
  readonly accountId: AccountId
  readonly tenantUserId: string
  /** Pairwise: the `sub` of this person in this tenant. */
  readonly sub: string
  readonly email: string
  readonly emailVerified: boolean
  readonly displayName: string
  /** The roles of the tenant user as stored. */
  readonly roles: readonly string[]
  /**
   * The highest of the tenant user's roles and the role in the tenant's organization; `member` when
   * there is none. `HUMAN_SCOPES[role]` is what the person may be given (decisions.md 21).
   */
  readonly role: OrganizationRole
  /**
   * Opened by a provider of the tenant, for an account that has other keys: it neither sees nor changes what
   * counts in other tenants.
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
  /** Whose cookie it was: there its person signs in again. Null when nobody knows. */
  readonly tenantId: TenantId | null
}

export type DemandSession = {
  /** The session cookie of the browser; null when it has none. */
  readonly token: string | null
  readonly tenantId: TenantId
  /** `highest`: the highest that the account can reach, at least 2 (decisions.md 3, highest AAL). */
  readonly demand: Omit<SessionDemand, 'level'> & { readonly level: AssuranceLevel | 'highest' }
  readonly flow: NewFlow
  /** When set, only this person will do (`id_token_hint`, `sub` of a claims request). */
  readonly sub?: string | undefined
}

/** What the pages need to know to lead the way and to find back. */
export type NewFlow = {
  /** An own path with its query: begins with one slash. Anything else is a defect and throws. */
  readonly returnTo: string
  readonly reason: FlowReason
  /** Fills in the e-mail field. */
  readonly loginHint?: string | undefined
  /** `ui_locales`, as sent. */
  readonly uiLocales?: string | undefined
  /**
   * Where forms of these pages may end up by redirects: an origin such as `https://app.example`, or a
   * scheme such as `com.example.app:`. Browsers apply `form-action` to every redirect that follows a
   * form, so an authorization request names its redirect URI's origin.
   */
  readonly formTargets?: readonly string[] | undefined
}

/** Why a person is asked to sign in, in words on the page. */
export type FlowReason =
  /** The person came by themselves. */
  | { readonly tag: 'account' }
  /** An application wants to know who they are. */
  | { readonly tag: 'application'; readonly name: string }
  /** A software agent asks to act for them. */
  | { readonly tag: 'agent'; readonly name: string }
  /** Something on the account page needs fresher or stronger evidence. */
  | { readonly tag: 'sensitive' }

export type DemandMet = { readonly tag: 'met'; readonly session: BrowserSession }
/** `location` is an own path, to be answered with 303. */
export type SignInNeeded = { readonly tag: 'sign_in'; readonly location: string }

export type SessionSeen = {
  readonly id: SessionId
  readonly createdAt: Date
  readonly lastSeenAt: Date
  readonly acr: string
  /** User-Agent as sent, cut to 256 characters. */
  readonly userAgent: string
  readonly address: string
}

export const browserSessions = address<BrowserSessionsProtocol>('browser-sessions', [
  'read',
  'list',
])
