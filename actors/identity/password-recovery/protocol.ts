/**
 * How people come to a password and prove their address: an invitation, a letter to whoever forgot
 * theirs, a change on the account page. A link of a letter is used up by the form behind it, never
 * by being opened: scanners of mail open every link there is.
 */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { BrowserSession } from '../sessions/protocol.js'
import type {
  Busy,
  CaptchaAway,
  CaptchaWanted,
  CaptchaWidget,
  FlowPage,
  FlowUnknown,
  LinkGone,
  Locked,
  OtherBrowser,
  Visitor,
  WayAbsent,
} from '../sign-in/protocol.js'
import type { PageTenant } from '../../domain/tenants/branding.js'

export type CredentialsProtocol = {
  /** The page of whoever forgot their password. */
  forgot: Ask<{ flow: string; visitor: Visitor }, Page<ForgotShown> | FlowUnknown | WayAbsent>
  /** Sends a link; the answer does not say whether anybody got it. */
  requestReset: Ask<
    RequestReset,
    | ({ tag: 'requested' } & FlowPage)
    | ({ tag: 'invalid_email' } & ForgotShown)
    | (ForgotShown & CaptchaWanted)
    | CaptchaAway
    | (ForgotShown & Locked)
    | FlowUnknown
    | WayAbsent
    | Busy
  >
  readReset: Ask<{ token: string }, Page<NewPasswordShown> | LinkGone>
  /** Sets the password and ends every session of the account. */
  reset: Ask<
    { token: string; password: string; visitor: Visitor; languages: string },
    ({ tag: 'done' } & PasswordSet) | (NewPasswordShown & PasswordFault) | LinkGone | Busy
  >
  readInvitation: Ask<{ token: string }, Page<InvitationShown> | LinkGone>
  /** The tenant has a new user: signed in with a new password, or sent to sign in with theirs. */
  acceptInvitation: Ask<
    { token: string; displayName: string; password: string; visitor: Visitor },
    | { tag: 'accepted'; token: string; location: string }
    | { tag: 'sign_in'; location: string }
    | (InvitationShown & PasswordFault)
    | LinkGone
    | Busy
  >
  readChange: Ask<{ session: BrowserSession }, Page<ChangeShown>>
  /** Sets another password: the browser that asks gets a new cookie, all other sessions end. */
  change: Ask<
    {
      session: BrowserSession
      current: string
      password: string
      visitor: Visitor
      languages: string
    },
    | { tag: 'changed'; token: string }
    | (ChangeShown & ({ tag: 'wrong' } | PasswordFault | Locked))
    | Busy
  >
  /** Sends a link to the address of whoever is signed in. */
  requestVerification: Ask<
    {
      session: BrowserSession
      visitor: Visitor
      languages: string
      /** What only this browser knows: the link works in this browser alone. */
      browserId: string
      /** The Host of the request. */
      host: string
    },
    { tag: 'requested'; tenant: PageTenant } | { tag: 'verified' } | Locked | WayAbsent | Busy
  >
  readVerification: Ask<{ token: string }, Page<VerificationShown> | LinkGone>
  /** Confirms the address, in the browser that asked for the letter while it is signed in. */
  verify: Ask<
    { token: string; browserId: string; visitor: Visitor },
    ({ tag: 'done' } & VerificationShown) | OtherBrowser | LinkGone
  >
}

type Page<Shown> = { readonly tag: 'page' } & Shown

/** Something to correct in the form; nothing was used up. */
export type PasswordFault = {
  readonly tag: 'weak_password' | 'common_password' | 'breached_password'
}

export type ForgotShown = FlowPage & {
  readonly email: string
  /** Null: none is asked for. */
  readonly captcha: CaptchaWidget | null
}
export type RequestReset = {
  readonly flow: string
  readonly email: string
  /** What the widget put into the form; empty: nothing. */
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
  /** The person has an account whose address is confirmed, and signs in with what it has. */
  readonly isKnown: boolean
  readonly expiresAt: Date
}
export type ChangeShown = { readonly tenant: PageTenant; readonly email: string }
export type VerificationShown = { readonly tenant: PageTenant; readonly email: string }

export const credentials = address<CredentialsProtocol>('credentials', [
  'forgot',
  'readReset',
  'readInvitation',
  'readChange',
  'readVerification',
])
