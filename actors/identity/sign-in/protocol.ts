/**
 * Signing in: password, second factor, enrolment of one. decisions.md 20 (pages), 7.6 (lockout).
 * Each step answers with where the browser goes next; the flow says where it ends.
 */
import type { PageTenant } from '../../domain/tenants/branding.js'
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { TenantSelector } from '../../domain/tenants/tenancy.js'
import type { Upstream } from '../../domain/upstream.js'
import type { FlowReason } from '../sessions/protocol.js'

export type LoginProtocol = {
  /** What the sign-in page shows. Without a flow one is begun that ends at `returnTo`. */
  start: Ask<StartLogin, LoginPage | Onward | FlowUnknown | TenantNotFound>
  /** Email and password. */
  password: Ask<
    PasswordLogin,
    | SignedIn
    | (LoginShown & { tag: 'wrong' })
    | (LoginShown & CaptchaWanted)
    | (LoginShown & Locked)
    | CaptchaAway
    | FlowUnknown
    | Busy
  >
  /** Sends a letter with a code, a link or both; the answer does not say whether anybody got it. */
  requestMail: Ask<
    RequestMail,
    | { tag: 'sent'; location: string }
    | (LoginShown & { tag: 'invalid_email' })
    | (LoginShown & Locked)
    | FlowUnknown
    | WayAbsent
    | Busy
  >
  /** The page after that. */
  mailPage: Ask<FlowStep, ({ tag: 'page' } & MailShown) | Onward | FlowUnknown | WayAbsent>
  /** The code of the letter. */
  mailCode: Ask<
    FlowStep & { code: string },
    | SignedIn
    | (MailShown & { tag: 'wrong' })
    | (MailShown & Locked)
    | FlowUnknown
    | WayAbsent
    | Busy
  >
  /** What the page behind a link shows; looking uses nothing up. */
  readLink: Ask<{ token: string; flow: string }, ({ tag: 'page' } & LinkPage) | LinkGone>
  /** Signs in with the link, in the browser that asked for it. */
  useLink: Ask<UseLink, SignedIn | LinkGone | OtherBrowser>
  /** What the second-factor page shows. */
  challenge: Ask<FlowStep, FactorPage | Onward | FlowUnknown>
  /** A TOTP code or a recovery code. */
  secondFactor: Ask<
    FlowStep & { code: string },
    | SignedIn
    | Onward
    | (FactorShown & { tag: 'wrong' })
    | (FactorShown & Locked)
    | FlowUnknown
    | Busy
  >
  /** What the enrolment page shows: a secret that holds for a while, the same on reload. */
  enrolment: Ask<FlowStep, EnrolmentPage | Onward | FlowUnknown>
  /** The first code of the new secret. */
  enrol: Ask<
    FlowStep & { code: string },
    | Enrolled
    | Onward
    | (EnrolmentShown & { tag: 'wrong' })
    | (EnrolmentShown & Locked)
    | FlowUnknown
    | Busy
  >
  /** Uses an operator invite: creates the account and signs it in. The invite serves once. */
  acceptInvite: Ask<
    AcceptInvite,
    InviteAccepted | InviteSent | InviteRefused | InviteFault | Locked | Busy
  >
  /** The page of the letter that an operator invite was sent on to. */
  readInviteLetter: Ask<
    { token: string; browserId: string },
    ({ tag: 'page' } & InviteLetterShown) | { tag: 'spent' }
  >
  /** Accepts the invite: the letter proves the mailbox. */
  acceptInviteLetter: Ask<
    { token: string; password: string; browserId: string; visitor: Visitor },
    | InviteAccepted
    | { tag: 'sign_in'; location: string }
    | (InviteLetterShown & { tag: 'weak_password' | 'common_password' | 'breached_password' })
    | { tag: 'spent' }
    | Busy
  >
  /** Signs out whoever holds the cookie; whom it belonged to is for the page that follows. */
  signOut: Ask<{ token: string | null }, SignedOut>
}

/** Where the request comes from, for the session list, the lockout and the events. */
export type Visitor = {
  /** The session cookie it sent; null when none. It dies when another session takes its place. */
  readonly token: string | null
  readonly address: string
  readonly userAgent: string
}

/** `flow` is the secret of a flow, from the address or a hidden field; null: none. */
export type StartLogin = {
  readonly flow: string | null
  readonly tenant: TenantSelector
  /** An own path to go to afterwards; anything else counts as the account page. */
  readonly returnTo: string | null
  /** `ui_locales`, for a flow that begins here. */
  readonly uiLocales?: string | undefined
  readonly visitor: Visitor
}
export type PasswordLogin = {
  readonly flow: string
  readonly email: string
  readonly password: string
  /** What the widget put into the form; empty: nothing. */
  readonly captcha: string
  readonly visitor: Visitor
}
export type FlowStep = { readonly flow: string; readonly visitor: Visitor }

/** What the sign-in page offers besides a password. */
export type SignInOffers = {
  /** A passkey will do instead. */
  readonly passkey: boolean
  /** A code by mail. */
  readonly code: boolean
  /** A link by mail. */
  readonly link: boolean
  /** A new password by mail. */
  readonly reset: boolean
}
export type MailShown = FlowPage & { readonly offers: SignInOffers }
export type LinkPage = { readonly tenant: PageTenant; readonly flow: string }
export type RequestMail = {
  readonly flow: string
  readonly email: string
  /** The Host of the request: the link leads back to where its browser is. */
  readonly host: string
  /** Tells one browser from another (gateway/request/browser.ts). */
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
/** Used, run out, or never was. */
/** `tenant`: where the session was; null when there was none. */
export type SignedOut = { readonly tag: 'signed_out'; readonly tenant: PageTenant | null }
/** A link of a letter, opened in another browser than the one that asked for it. */
export type OtherBrowser = { readonly tag: 'other_browser'; readonly tenant: PageTenant }
/** Null: nothing tells whose link it was. */
export type LinkGone = { readonly tag: 'gone'; readonly tenant: PageTenant | null }
/** The deployment does not offer this way. */
export type WayAbsent = { readonly tag: 'absent' }

/** What a page shows of the CAPTCHA: the widget of a provider, or the challenge of the built-in one. */
export type CaptchaWidget =
  | {
      readonly provider: 'turnstile' | 'hcaptcha' | 'recaptcha'
      readonly siteKey: string | null
      /** Address of its script. */
      readonly script: string
    }
  | { readonly provider: 'pow'; readonly challenge: string }
/** The form has to be sent again with an answer to the CAPTCHA; or none can be had right now. */
export type CaptchaWanted = { readonly tag: 'captcha' }
export type CaptchaAway =
  | { readonly tag: 'captcha_unavailable' }
  | { readonly tag: 'captcha_throttled'; readonly retryAfterSecs: number }

/** What every page of a flow knows. */
export type FlowPage = {
  readonly flow: string
  readonly tenant: PageTenant
  readonly reason: FlowReason
  /** `ui_locales` of the request that led here; null: none. */
  readonly uiLocales: string | null
  /** CSP sources that forms of the page may lead to, besides ourselves. */
  readonly formTargets: readonly string[]
}

export type LoginPage = { readonly tag: 'page' } & LoginShown
export type LoginShown = FlowPage & {
  readonly email: string
  /** The person is signed in and is asked again: more assurance, or fresher. */
  readonly again: boolean
  readonly offers: SignInOffers
  /** Other providers that the person may sign in through. */
  readonly upstreams: readonly Upstream[]
  /** Null: none is asked for. */
  readonly captcha: CaptchaWidget | null
}
export type FactorPage = { readonly tag: 'page' } & FactorShown
export type FactorShown = FlowPage & { readonly methods: FactorMethods }
/** What the person may prove themselves with; a recovery code stands in for either. */
export type FactorMethods = {
  /** Null: no code will do. */
  readonly code: 'totp' | 'recovery' | null
  readonly passkey: boolean
  /** Only a key that cannot leave its device will do. */
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

/** The step is done: the session has this new token, and the browser goes on to `location`. */
export type SignedIn = {
  readonly tag: 'signed_in'
  readonly token: string
  /** Own path. */
  readonly location: string
}
/** Nothing to do here: the browser goes on to `location`, its session as it was. */
export type Onward = { readonly tag: 'onward'; readonly location: string }
/** The second factor is enrolled; the codes are shown this once. */
export type Enrolled = FlowPage & {
  readonly tag: 'enrolled'
  readonly token: string
  readonly recoveryCodes: readonly string[]
  readonly location: string
}
export type Locked = { readonly tag: 'locked'; readonly retryAfterSecs: number }
/** Never was, or ran out. */
export type FlowUnknown = {
  readonly tag: 'unknown_flow'
  /** Whose it was; null: nobody knows any more. */
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
/** A letter is on its way, whether or not the address has an account. */
export type InviteSent = {
  readonly tag: 'sent'
  readonly email: string
  readonly organizationName: string
}
export type InviteLetterShown = {
  readonly organizationName: string
  readonly expiresAt: Date
  readonly email: string
  /** The person has an account and signs in with what it has. */
  readonly isKnown: boolean
  /** Another browser than the one where the password was chosen. */
  readonly needsPassword: boolean
}
export type InviteAccepted = Omit<SignedIn, 'tag'> & { readonly tag: 'accepted' }
export type InviteRefused = { readonly tag: 'unknown_invite' } | { readonly tag: 'spent' }
/** Something to correct in the form; the invite is as it was. */
export type InviteFault = {
  readonly tag: 'invalid_email' | 'weak_password' | 'common_password' | 'breached_password'
  readonly organizationName: string
  readonly expiresAt: Date
  readonly email: string
  readonly displayName: string
}

/** The password workers are busy, or failures cannot be counted at the moment. */
export type Busy = { readonly tag: 'busy' }

export const login = address<LoginProtocol>('login', ['start', 'challenge'])
