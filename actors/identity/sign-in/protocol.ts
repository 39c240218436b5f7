/**
 * Sign-in: password, second factor and its enrolment. Rules: docs/reference/identity.md. Each step returns where the
 * browser goes next. The flow holds the final destination.
 */
import type { PageTenant } from '../../domain/tenants/branding.js'
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { TenantSelector } from '../../domain/tenants/tenancy.js'
import type { Upstream } from '../../domain/upstream.js'
import type { FlowReason } from './sessions/protocol.js'

export type SignInProtocol = {
  /** The sign-in page. Without a flow, one is started that ends at `returnTo`. */
  showSignIn: Ask<StartLogin, LoginPage | StepRedirect | FlowUnknown | TenantNotFound>
  /** Submits email and password. */
  signIn: Ask<
    PasswordLogin,
    | SignedIn
    | (LoginShown & { tag: 'wrong' })
    | (LoginShown & CaptchaWanted)
    | (LoginShown & Locked)
    | CaptchaAway
    | FlowUnknown
    | Busy
  >
  /** Sends a message with a code, a link or both. The response is the same whether or not the account exists. */
  requestSignInMail: Ask<
    RequestMail,
    | { tag: 'sent'; location: string }
    | (LoginShown & { tag: 'invalid_email' })
    | (LoginShown & Locked)
    | FlowUnknown
    | MethodDisabled
    | Busy
  >
  /** The page shown after `requestMail`. */
  showSignInMail: Ask<
    FlowStep,
    ({ tag: 'page' } & MailShown) | StepRedirect | FlowUnknown | MethodDisabled
  >
  /** Submits the code of the message. */
  signInWithMailCode: Ask<
    FlowStep & { code: string },
    | SignedIn
    | (MailShown & { tag: 'wrong' })
    | (MailShown & Locked)
    | FlowUnknown
    | MethodDisabled
    | Busy
  >
  /** The page behind a link. It does not use the link up. */
  showMagicLink: Ask<{ token: string; flow: string }, ({ tag: 'page' } & LinkPage) | ExpiredLink>
  /** Signs in with the link, in the browser that requested it. */
  signInWithMagicLink: Ask<UseLink, SignedIn | ExpiredLink | OtherBrowser>
  showSecondFactor: Ask<FlowStep, FactorPage | StepRedirect | FlowUnknown>
  /** Submits a TOTP code or a recovery code. */
  giveSecondFactor: Ask<
    FlowStep & { code: string },
    | SignedIn
    | StepRedirect
    | (FactorShown & { tag: 'wrong' })
    | (FactorShown & Locked)
    | FlowUnknown
    | Busy
  >
  /** Sends another code for a sign-in that a code by mail confirms. */
  requestConfirmationMail: Ask<
    FlowStep,
    { tag: 'sent'; location: string } | StepRedirect | (FactorShown & Locked) | FlowUnknown
  >
  /** The enrolment page: a secret that stays the same for a while on reload. */
  showEnrolment: Ask<FlowStep, EnrolmentPage | StepRedirect | FlowUnknown>
  /** Submits the first code of the new secret. */
  enrolSecondFactor: Ask<
    FlowStep & { code: string },
    | Enrolled
    | StepRedirect
    | (EnrolmentShown & { tag: 'wrong' })
    | (EnrolmentShown & Locked)
    | FlowUnknown
    | Busy
  >
  /** Accepts an operator invite: creates the account and signs it in. An invite works once. */
  acceptOperatorInvite: Ask<
    AcceptInvite,
    InviteAccepted | InviteSent | InviteRefused | InviteFault | Locked | Busy
  >
  /** The page of the message for an operator invite. */
  readOperatorInviteLetter: Ask<
    { token: string; browserId: string },
    ({ tag: 'page' } & InviteMessageShown) | { tag: 'spent' }
  >
  /** Accepts the invite. The message proves the mailbox. */
  acceptOperatorInviteLetter: Ask<
    { token: string; password: string; browserId: string; visitor: Visitor },
    | InviteAccepted
    | { tag: 'sign_in'; location: string }
    | (InviteMessageShown & { tag: 'weak_password' | 'common_password' | 'breached_password' })
    | { tag: 'spent' }
    | Busy
  >
  /** Signs out the session of the cookie, and names its tenant for the page that follows. */
  signOut: Ask<{ token: string | null }, SignedOut>
}

/** Origin of the request, for the session list, the lockout and the events. */
export type Visitor = {
  /** The session cookie, or null. It ends when another session replaces it. */
  readonly token: string | null
  readonly address: string
  readonly userAgent: string
  /** Identifies one browser (gateway/request/browser.ts). */
  readonly browserId: string
  /** Accept-Language, as sent. */
  readonly languages: string
  /** The script of the page syncs passkeys when the sign-in is complete. Default: false. */
  readonly syncsPasskeys?: boolean | undefined
}

/** `flow` is the flow token from the URL or a hidden field; null: none. */
export type StartLogin = {
  readonly flow: string | null
  readonly tenant: TenantSelector
  /** Same-origin path to return to. Anything else means the account page. */
  readonly returnTo: string | null
  /** `ui_locales`, for a flow that starts here. */
  readonly uiLocales?: string | undefined
  readonly visitor: Visitor
}
export type PasswordLogin = {
  readonly flow: string
  readonly email: string
  readonly password: string
  /** The CAPTCHA response; empty: none. */
  readonly captcha: string
  readonly visitor: Visitor
}
export type FlowStep = { readonly flow: string; readonly visitor: Visitor }

/** Sign-in methods that the page offers in addition to a password. */
export type SignInOffers = {
  readonly passkey: boolean
  /** A code by mail. */
  readonly code: boolean
  /** A link by mail. */
  readonly link: boolean
  /** A password reset by mail. */
  readonly reset: boolean
  /** Sign-up, in tenants that do not decide. */
  readonly signUp: boolean
  /** A code by text message. */
  readonly phone: boolean
  /** A linked Ethereum account. */
  readonly ethereum: boolean
  readonly guest: boolean
}
export type MailShown = FlowPage & { readonly offers: SignInOffers }
export type LinkPage = { readonly tenant: PageTenant; readonly flow: string }
export type RequestMail = {
  readonly flow: string
  readonly email: string
  /** The Host of the request. The link leads to the same host. */
  readonly host: string
  /** Identifies one browser (gateway/request/browser.ts). */
  readonly browserId: string
  /** Accept-Language, as sent. */
  readonly languages: string
  readonly visitor: Visitor
}
export type UseLink = {
  readonly token: string
  readonly flow: string
  readonly browserId: string
  readonly visitor: Visitor
}
/** `tenant`: of the ended session; null without a session. */
export type SignedOut = { readonly tag: 'signed_out'; readonly tenant: PageTenant | null }
/** A link of a message, opened in another browser than the one that requested it. */
export type OtherBrowser = { readonly tag: 'other_browser'; readonly tenant: PageTenant }
/** An invalid, used or expired link. `tenant` is null when unknown. */
export type ExpiredLink = { readonly tag: 'gone'; readonly tenant: PageTenant | null }
/** The deployment does not offer this method. */
export type MethodDisabled = { readonly tag: 'absent' }

/** The CAPTCHA of a page: the widget of a provider, or the challenge of the built-in proof of work. */
export type CaptchaWidget =
  | {
      readonly provider: 'turnstile' | 'hcaptcha' | 'recaptcha'
      readonly siteKey: string | null
      /** URL of its script. */
      readonly script: string
    }
  | { readonly provider: 'pow'; readonly challenge: string }
/** The form must be submitted again with a CAPTCHA response; or the CAPTCHA provider is unavailable. */
export type CaptchaWanted = { readonly tag: 'captcha' }
export type CaptchaAway =
  | { readonly tag: 'captcha_unavailable' }
  | { readonly tag: 'captcha_throttled'; readonly retryAfterSecs: number }

/** Common members of every page of a flow. */
export type FlowPage = {
  readonly flow: string
  readonly tenant: PageTenant
  readonly reason: FlowReason
  /** `ui_locales` of the request; null: none. */
  readonly uiLocales: string | null
  /** CSP sources for `form-action` in addition to 'self'. */
  readonly formTargets: readonly string[]
  /** Whether the tenant offers sign-up. Null: as the deployment. */
  readonly signUp: boolean | null
}

/** The arguments of each signal method of WebAuthn, in base64url (WebAuthn Level 3 section 5.1.10). */
export type PasskeySignals = {
  readonly signalUnknownCredential?: { readonly rpId: string; readonly credentialId: string }
  readonly signalAllAcceptedCredentials?: {
    readonly rpId: string
    readonly userId: string
    readonly allAcceptedCredentialIds: readonly string[]
  }
  readonly signalCurrentUserDetails?: {
    readonly rpId: string
    readonly userId: string
    readonly name: string
    readonly displayName: string
  }
}

export type LoginPage = { readonly tag: 'page' } & LoginShown
export type LoginShown = FlowPage & {
  readonly email: string
  /** The user is signed in and must re-authenticate or reach a higher level. */
  readonly again: boolean
  readonly offers: SignInOffers
  /** Federated providers that the user may sign in with. */
  readonly upstreams: readonly Upstream[]
  /** Null: no CAPTCHA. */
  readonly captcha: CaptchaWidget | null
}
export type FactorPage = { readonly tag: 'page' } & FactorShown
export type FactorShown = FlowPage & {
  readonly methods: FactorMethods
  /** `passkey.enabled`: the script of the page may ask for the page that syncs passkeys. */
  readonly passkeys: boolean
}
/** The available second factors. A recovery code replaces either. `mail`: a code by mail confirms a risky sign-in. */
export type FactorMethods = {
  /** Null: no code is accepted. */
  readonly code: 'totp' | 'recovery' | 'mail' | null
  readonly passkey: boolean
  /** Only a device-bound key is accepted. */
  readonly deviceBound: boolean
}
export type EnrolmentPage = { readonly tag: 'page' } & EnrolmentShown
export type EnrolmentShown = FlowPage & SecretShown & { readonly methods: FactorMethods }
/** A TOTP secret for an authenticator app. */
export type SecretShown = {
  /** Base32 without padding (RFC 4648 section 6). */
  readonly secret: string
  readonly otpauthUri: string
}

/** The step is done: the session has this new token, and the browser goes to `location`. */
export type SignedIn = {
  readonly tag: 'signed_in'
  readonly token: string
  /** Same-origin path. */
  readonly location: string
}
/** The step is not needed: the browser goes to `location` with its session unchanged. */
export type StepRedirect = { readonly tag: 'onward'; readonly location: string }
/** The second factor is enrolled. The recovery codes are shown once. */
export type Enrolled = FlowPage & {
  readonly tag: 'enrolled'
  readonly token: string
  readonly recoveryCodes: readonly string[]
  readonly location: string
}
export type Locked = { readonly tag: 'locked'; readonly retryAfterSecs: number }
/** The flow is unknown or has expired. */
export type FlowUnknown = {
  readonly tag: 'unknown_flow'
  /** The request named no flow. */
  readonly isAbsent: boolean
  /** The flow's tenant; null when unknown. */
  readonly tenant: PageTenant | null
  readonly uiLocales: string | null
}
export type TenantNotFound = { readonly tag: 'unknown_tenant' }
export type AcceptInvite = {
  readonly token: string
  readonly email: string
  readonly displayName: string
  readonly password: string
  readonly browserId: string
  /** Accept-Language, as sent. */
  readonly languages: string
  readonly visitor: Visitor
}
/** A message was sent, whether or not the address has an account. */
export type InviteSent = {
  readonly tag: 'sent'
  readonly email: string
  readonly organizationName: string
}
export type InviteMessageShown = {
  readonly organizationName: string
  readonly expiresAt: Date
  readonly email: string
  /** The user has an account and signs in with an existing method. */
  readonly isKnown: boolean
  /** The link was opened in another browser than the one where the password was chosen. */
  readonly needsPassword: boolean
}
export type InviteAccepted = Omit<SignedIn, 'tag'> & { readonly tag: 'accepted' }
export type InviteRefused = { readonly tag: 'unknown_invite' } | { readonly tag: 'spent' }
/** A form error. The invite is unchanged. */
export type InviteFault = {
  readonly tag: 'invalid_email' | 'weak_password' | 'common_password' | 'breached_password'
  readonly organizationName: string
  readonly expiresAt: Date
  readonly email: string
  readonly displayName: string
}

/** The password workers are busy, or failures cannot be counted at the moment. */
export type Busy = { readonly tag: 'busy' }

export const login = address<SignInProtocol>('login', {
  idempotent: ['showSignIn', 'showSecondFactor'],
})
