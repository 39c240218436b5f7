/**
 * Passwords and address verification: accepting an invitation, forgot password, change of password on the account page.
 * A link in a mail is used up by submitting its form, not by opening it, because mail scanners open every link.
 */
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import type { OwnAccount, SignInFirst } from '../account/protocol.js'
import type { BrowserSession } from '../sessions/protocol.js'
import type {
  Busy,
  CaptchaAway,
  CaptchaWanted,
  CaptchaWidget,
  FlowPage,
  FlowUnknown,
  ExpiredLink,
  Locked,
  OtherBrowser,
  Visitor,
  MethodDisabled,
  StartLogin,
  TenantNotFound,
} from '../protocol.js'
import type { PageTenant } from '../../../domain/tenants/branding.js'

export type PasswordRecoveryProtocol = {
  /** The sign-up page. Without a flow, one is started that ends at `returnTo`. */
  showSignUp: Ask<
    StartLogin,
    Page<SignUpShown> | SignUpClosed | FlowUnknown | TenantNotFound | MethodDisabled
  >
  /** Sends the link of a sign-up. The response is the same whether or not the account exists. */
  requestSignUp: Ask<
    RequestReset & {
      /** Identifies one browser (gateway/request/browser.ts). */
      readonly browserId: string
      /** The Host of the request. The link leads to the same host. */
      readonly host: string
    },
    | ({ tag: 'requested'; email: string } & FlowPage)
    | ({ tag: 'invalid_email' } & SignUpShown)
    | (SignUpShown & CaptchaWanted)
    | CaptchaAway
    | (SignUpShown & Locked)
    | SignUpClosed
    | FlowUnknown
    | MethodDisabled
    | Busy
  >
  /** The page behind the link. */
  showSignUpLink: Ask<{ token: string; flow: string }, Page<SignUpLinkShown> | ExpiredLink>
  /** Creates the account and signs it in. An existing account joins the tenant and signs in as before. */
  finishSignUp: Ask<
    {
      token: string
      flow: string
      displayName: string
      password: string
      browserId: string
      visitor: Visitor
    },
    | { tag: 'accepted'; token: string; location: string }
    | { tag: 'sign_in'; location: string }
    | (SignUpLinkShown & PasswordFault)
    | ExpiredLink
    | Busy
  >
  /** The forgot-password page. Opened without a flow, it begins one in the tenant of the request or its host. */
  showForgottenPassword: Ask<StartLogin, Page<ForgotShown> | FlowUnknown | MethodDisabled>
  /** Sends a reset link. The response is the same whether or not the account exists. */
  requestPasswordReset: Ask<
    RequestReset,
    | ({ tag: 'requested' } & FlowPage)
    | ({ tag: 'invalid_email' } & ForgotShown)
    | (ForgotShown & CaptchaWanted)
    | CaptchaAway
    | (ForgotShown & Locked)
    | FlowUnknown
    | MethodDisabled
    | Busy
  >
  showPasswordReset: Ask<{ token: string }, Page<NewPasswordShown> | ExpiredLink>
  /** Sets the password and ends every session of the account. */
  resetPassword: Ask<
    { token: string; password: string; visitor: Visitor; languages: string },
    ({ tag: 'done' } & PasswordSet) | (NewPasswordShown & PasswordFault) | ExpiredLink | Busy
  >
  showInvitation: Ask<{ token: string }, Page<InvitationShown> | ExpiredLink>
  /** The user joins the tenant: signed in with a new password, or redirected to sign in with the existing one. */
  acceptInvitation: Ask<
    { token: string; displayName: string; password: string; visitor: Visitor },
    | { tag: 'accepted'; token: string; location: string }
    | { tag: 'sign_in'; location: string }
    | (InvitationShown & PasswordFault)
    | ExpiredLink
    | Busy
  >
  /** The page to change the password. A confined session signs in first. */
  showPasswordChange: Ask<OwnAccount, Page<ChangeShown> | SignInFirst>
  /**
   * Changes the password. This browser gets a new cookie, all other sessions end. A confined session signs in first, and
   * learns nothing about the password.
   */
  changePassword: Ask<
    {
      session: BrowserSession
      current: string
      password: string
      visitor: Visitor
      languages: string
    },
    | { tag: 'changed'; token: string }
    | (ChangeShown & ({ tag: 'wrong' } | PasswordFault | Locked))
    | SignInFirst
    | Busy
  >
  /** Sends a verification link to the address of the signed-in user. */
  requestEmailVerification: Ask<
    {
      session: BrowserSession
      visitor: Visitor
      languages: string
      /** Secret known only to this browser. The link works in this browser only. */
      browserId: string
      /** The Host of the request. */
      host: string
    },
    { tag: 'requested'; tenant: PageTenant } | { tag: 'verified' } | Locked | MethodDisabled | Busy
  >
  showEmailVerification: Ask<{ token: string }, Page<VerificationShown> | ExpiredLink>
  /** Verifies the address, in the browser that requested the mail, while it is signed in. */
  verifyEmail: Ask<
    { token: string; browserId: string; visitor: Visitor },
    ({ tag: 'done' } & VerificationShown) | OtherBrowser | ExpiredLink
  >
}

type Page<Shown> = { readonly tag: 'page' } & Shown

/** A form error. Nothing was used up. */
export type PasswordFault = {
  readonly tag: 'weak_password' | 'common_password' | 'breached_password'
}

/** The tenant does not offer sign-up. */
export type SignUpClosed = {
  readonly tag: 'closed'
  readonly tenant: PageTenant
  readonly uiLocales: string | null
}
export type SignUpShown = ForgotShown
export type SignUpLinkShown = {
  readonly tenant: PageTenant
  readonly email: string
  readonly displayName: string
  /** The address has an account with a sign-in method, which stays. */
  readonly isKnown: boolean
  /** The flow that continues afterwards; empty: none. */
  readonly flow: string
}
export type ForgotShown = FlowPage & {
  readonly email: string
  /** Null: no CAPTCHA. */
  readonly captcha: CaptchaWidget | null
}
export type RequestReset = {
  readonly flow: string
  readonly email: string
  /** The CAPTCHA response; empty: none. */
  readonly captcha: string
  /** Accept-Language, as sent. */
  readonly languages: string
  readonly visitor: Visitor
}
export type NewPasswordShown = { readonly tenant: PageTenant; readonly email: string }
export type PasswordSet = { readonly tenant: PageTenant }
export type InvitationShown = {
  readonly tenant: PageTenant
  readonly email: string
  readonly displayName: string
  /** The account's address is verified. The user signs in with an existing method. */
  readonly isKnown: boolean
  readonly expiresAt: Date
}
export type ChangeShown = { readonly tenant: PageTenant; readonly email: string }
export type VerificationShown = { readonly tenant: PageTenant; readonly email: string }

export const passwordRecovery = address<PasswordRecoveryProtocol>('password-recovery', {
  idempotent: [
    'showSignUp',
    'showSignUpLink',
    'showForgottenPassword',
    'showPasswordReset',
    'showInvitation',
    'showPasswordChange',
    'showEmailVerification',
  ],
})
