/** The account page: what a signed-in user sees and may end. Sessions, second factors, consents and delegations. */
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import type { ConsentSeen } from '../../../oauth/tokens/authorization/protocol.js'
import type { BrowserSession, SessionSeen } from '../sessions/protocol.js'
import type { CallApprovalRecord } from '../../../domain/vault/approvals.js'
import type { SeenConnection } from '../../../vault/vault/connections/protocol.js'
import type { DelegationRecord } from '../../../agents/delegation/protocol.js'
import type { ProfileText } from '../../../domain/people/profile-claims.js'
import type { Upstream } from '../../../domain/upstream.js'
import type { PasskeySignals, SecretShown } from '../protocol.js'
import type { PageTenant } from '../../../domain/tenants/branding.js'
import type { IdentitySeen } from '../ways/federated/protocol.js'

export type AccountProtocol = {
  showAccount: Ask<{ session: BrowserSession }, AccountSeen>
  /** Sets name and profile claims. Claims that the tenant decides stay. A confined session signs in first. */
  saveOwnProfile: Ask<OwnAccount & SaveProfile, { tag: 'saved' } | ProfileRefused | SignInFirst>
  /** Ends another session of the user, or this one. */
  revokeOwnSession: Ask<
    { session: BrowserSession; sessionId: string },
    { tag: 'revoked'; own: boolean } | { tag: 'unknown_session' }
  >
  /** Removes a second factor with its recovery codes. Needs a fresh authentication at AAL2, otherwise `sign_in`. */
  removeOwnFactor: Ask<
    { session: BrowserSession; token: string; factorId: string },
    { tag: 'removed' } | { tag: 'unknown_factor' } | { tag: 'sign_in'; location: string }
  >
  /** Withdraws a consent. The application's tokens end immediately. */
  withdrawConsent: Ask<
    { session: BrowserSession; clientId: string },
    { tag: 'withdrawn' } | { tag: 'unknown_consent' }
  >
  /** Sends the user to enrol a second factor, with whatever sign-in that requires. */
  addOwnFactor: Ask<OwnAccount, SignInFirst | Present>
  /**
   * The page that adds an authenticator app to an account with a passkey. Needs a fresh authentication at the highest
   * level.
   */
  showNewAuthenticatorApp: Ask<OwnAccount, ({ tag: 'page' } & TotpShown) | SignInFirst | Present>
  /** Confirms the app with its first code. Returns recovery codes if the account has none left. */
  addOwnAuthenticatorApp: Ask<
    OwnAccount & { code: string },
    ({ tag: 'added' } & CodesShown) | ({ tag: 'wrong' } & TotpShown) | SignInFirst | Present
  >
  /** Issues ten new recovery codes and invalidates the old ones. Needs a fresh authentication at the highest level. */
  replaceOwnRecoveryCodes: Ask<
    OwnAccount & { address: string },
    ({ tag: 'renewed' } & CodesShown) | SignInFirst
  >
  /** Signs out all other sessions. */
  revokeOtherOwnSessions: Ask<{ session: BrowserSession }, { tag: 'revoked_others' }>
}

export type OwnAccount = { readonly session: BrowserSession; readonly token: string }
export type SignInFirst = { readonly tag: 'sign_in'; readonly location: string }
/** The account already has an authenticator app. */
export type Present = { readonly tag: 'present' }
export type TotpShown = SecretShown & { readonly tenant: PageTenant }
export type CodesShown = { readonly tenant: PageTenant; readonly recoveryCodes: readonly string[] }

/** The fields of the form as typed. An empty one removes the claim. */
export type ProfileTyped = Readonly<Record<'name' | ProfileText, string>>
export type SaveProfile = { readonly typed: ProfileTyped; readonly address: string }
/** The first field that is not valid. Nothing was changed. */
export type ProfileRefused = {
  readonly tag: 'profile_refused'
  readonly field: keyof ProfileTyped
  readonly typed: ProfileTyped
  readonly seen: AccountSeen
}
/** The user's claims as this tenant sees them. */
export type ProfileSeen = {
  readonly values: ProfileTyped
  readonly phoneNumberVerified: boolean
  /** The claims for which the tenant has its own value. The user cannot change them. */
  readonly ofTenant: readonly string[]
}

export type AccountSeen = {
  readonly tag: 'seen'
  /** When the page was made, for relative times. */
  readonly seenAt: Date
  /**
   * The session that views the page. A confined session sees no keys of the account, and only identities of its tenant.
   */
  readonly session: BrowserSession
  readonly tenant: PageTenant
  readonly profile: ProfileSeen
  readonly sessions: readonly SessionSeen[]
  readonly factors: readonly FactorSeen[]
  /** Null when the deployment has no passkeys, and in a confined session. */
  readonly passkeys: readonly PasskeySeen[] | null
  /** What the page tells the authenticators. Null where `passkeys` is null. */
  readonly signals: PasskeySignals | null
  readonly consents: readonly ConsentSeen[]
  /** Calls that wait for the user. */
  readonly approvals: readonly CallApprovalRecord[]
  /** Delegations in force. */
  readonly delegations: readonly DelegationRecord[]
  readonly connections: readonly SeenConnection[]
  /** Whether users can confirm their address by mail. */
  readonly selfService: boolean
  /** Whether there is a password to change. Accounts created by federated sign-in may have none. */
  readonly hasPassword: boolean
  /** The number that the user signs in with. Undefined where phones are off, and in a confined session. */
  readonly phone: PhoneSeen | null | undefined
  /** Linked Ethereum accounts. Null where they are off, and in a confined session. */
  readonly wallets: readonly WalletSeen[] | null
  /** Number of unused recovery codes; null without a second factor. */
  readonly recoveryCodesLeft: number | null
  /** Linked identities at other providers. */
  readonly identities: readonly IdentitySeen[]
  /** Providers that can be linked. */
  readonly upstreams: readonly Upstream[]
}

export type PhoneSeen = {
  /** E.164. */
  readonly phoneNumber: string
  readonly provedAt: Date
  readonly lastUsedAt: Date | null
}

export type WalletSeen = {
  readonly id: string
  /** Lower case. */
  readonly address: string
  readonly createdAt: Date
  readonly lastUsedAt: Date | null
}

export type PasskeySeen = {
  readonly id: string
  readonly name: string
  /** The key cannot leave its device. */
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

export const account = address<AccountProtocol>('account', {
  idempotent: ['showAccount', 'showNewAuthenticatorApp'],
})
