/**
 * What a signed-in person sees of their account and may end: sessions, second factors, and what they
 * allowed applications and agents.
 */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { ConsentSeen } from '../../oauth/authorization/protocol.js'
import type { BrowserSession, SessionSeen } from '../sessions/protocol.js'
import type { DelegationRecord } from '../../agents/delegation/protocol.js'
import type { Upstream } from '../../domain/upstream.js'
import type { SecretShown } from '../sign-in/protocol.js'
import type { PageTenant } from '../../domain/tenants/branding.js'
import type { IdentitySeen } from '../federated-login/protocol.js'

export type AccountProtocol = {
  read: Ask<{ session: BrowserSession }, AccountSeen>
  /** Ends another session of the person, or this one. */
  revokeSession: Ask<
    { session: BrowserSession; sessionId: string },
    { tag: 'revoked'; own: boolean } | { tag: 'unknown_session' }
  >
  /** Removes a second factor with its recovery codes. Needs AAL2, fresh; else `sign_in`. */
  removeFactor: Ask<
    { session: BrowserSession; token: string; factorId: string },
    { tag: 'removed' } | { tag: 'unknown_factor' } | { tag: 'sign_in'; location: string }
  >
  /** Takes back what the person allowed an application; its tokens end at once. */
  withdrawConsent: Ask<
    { session: BrowserSession; clientId: string },
    { tag: 'withdrawn' } | { tag: 'unknown_consent' }
  >
  /** Sends the person to enrol a second factor, by way of whatever sign-in that needs. */
  addFactor: Ask<OwnAccount, SignInFirst | Present>
  /** The page that adds an authenticator app beside a passkey. Needs the highest level, fresh. */
  totpPage: Ask<OwnAccount, ({ tag: 'page' } & TotpShown) | SignInFirst | Present>
  /** With the first code. Recovery codes come with it where none are left. */
  addTotp: Ask<
    OwnAccount & { code: string },
    ({ tag: 'added' } & CodesShown) | ({ tag: 'wrong' } & TotpShown) | SignInFirst | Present
  >
  /** Ten new recovery codes; those before are void. Needs the highest level, fresh. */
  renewCodes: Ask<OwnAccount & { address: string }, ({ tag: 'renewed' } & CodesShown) | SignInFirst>
  /** Signs out everywhere but here. */
  revokeOthers: Ask<{ session: BrowserSession }, { tag: 'revoked_others' }>
}

export type OwnAccount = { readonly session: BrowserSession; readonly token: string }
export type SignInFirst = { readonly tag: 'sign_in'; readonly location: string }
/** There is one already. */
export type Present = { readonly tag: 'present' }
export type TotpShown = SecretShown & { readonly tenant: PageTenant }
export type CodesShown = { readonly tenant: PageTenant; readonly recoveryCodes: readonly string[] }

export type AccountSeen = {
  readonly tag: 'seen'
  /** The session that looks. A confined one sees no keys of the account, and identities of its tenant alone. */
  readonly session: BrowserSession
  readonly tenant: PageTenant
  readonly sessions: readonly SessionSeen[]
  readonly factors: readonly FactorSeen[]
  /** Null where the deployment has no passkeys, and in a confined session. */
  readonly passkeys: readonly PasskeySeen[] | null
  readonly consents: readonly ConsentSeen[]
  /** Those in force. */
  readonly delegations: readonly DelegationRecord[]
  /** People may have their address confirmed by mail. */
  readonly selfService: boolean
  /** Whether there is a password to change: who comes from another provider may have none. */
  readonly hasPassword: boolean
  /** Recovery codes that are left; null without a second factor. */
  readonly recoveryCodesLeft: number | null
  /** Who the person is at other providers. */
  readonly identities: readonly IdentitySeen[]
  /** Providers that can be linked. */
  readonly upstreams: readonly Upstream[]
}

export type PasskeySeen = {
  readonly id: string
  readonly name: string
  /** It cannot leave its device. */
  readonly deviceBound: boolean
  readonly backedUp: boolean
  readonly createdAt: Date
  readonly lastUsedAt: Date | null
}

export type FactorSeen = {
  readonly id: string
  readonly kind: 'totp'
  readonly enrolledAt: Date
  readonly lastUsedAt: Date | null
}

export const account = address<AccountProtocol>('account', ['read', 'totpPage'])
