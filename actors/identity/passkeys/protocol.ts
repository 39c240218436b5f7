/**
 * Passkeys (WebAuthn Level 3): a first factor by itself, a second one beside a password, and what the
 * account page does with them. decisions.md 7.2 (`acr`), 20.
 *
 * A ceremony takes two messages: the options, with a challenge that is bound to the browser (and to
 * its session, where there is one), and the answer of the authenticator, which uses the challenge up
 * whatever comes of it.
 */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { BrowserSession } from '../sessions/protocol.js'
import type {
  Busy,
  EnrolmentShown,
  FactorShown,
  FlowPage,
  FlowUnknown,
  Locked,
  LoginShown,
  Onward,
  SignedIn,
  Visitor,
} from '../sign-in/protocol.js'
import type { PageTenant } from '../../domain/tenants/branding.js'

export type PasskeysProtocol = {
  /** The challenge for whoever signs in at this page, whichever account they have a passkey of. */
  signInOptions: Ask<Ceremony, RequestOptions | FlowUnknown>
  /** Signs in, at the level that the passkey proves. */
  signIn: Ask<
    Ceremony & Answer,
    SignedIn | (LoginShown & { tag: 'wrong' }) | (LoginShown & Locked) | FlowUnknown | Busy
  >
  secondFactorOptions: Ask<Ceremony, RequestOptions | Onward | FlowUnknown>
  secondFactor: Ask<
    Ceremony & Answer,
    | SignedIn
    | Onward
    | (FactorShown & { tag: 'wrong' })
    | (FactorShown & Locked)
    | FlowUnknown
    | Busy
  >
  enrolmentOptions: Ask<Ceremony, CreationOptions | Onward | FlowUnknown>
  /** Registers a passkey in a flow and raises the session with it. */
  enrol: Ask<
    Ceremony & Answer & { name: string },
    PasskeyEnrolled | SignedIn | Onward | PasskeyRefused | FlowUnknown | Busy
  >
  /** The page that adds a passkey to an account. Needs fresh evidence; else `sign_in`. */
  addPage: Ask<OwnAccount, AddPage | SignInFirst>
  addOptions: Ask<OwnAccount & { browser: string }, CreationOptions | SignInFirst>
  add: Ask<
    OwnAccount & Answer & { browser: string; name: string },
    | { tag: 'added'; recoveryCodes: readonly string[]; tenant: PageTenant }
    | (Omit<AddPage, 'tag'> & { tag: 'wrong' })
    | SignInFirst
  >
  rename: Ask<
    OwnAccount & { passkeyId: string; name: string },
    { tag: 'renamed' } | { tag: 'unknown_passkey' } | SignInFirst
  >
  /** Needs AAL2, fresh: nobody takes a factor away from a browser left open. */
  remove: Ask<
    OwnAccount & { passkeyId: string },
    { tag: 'removed' } | { tag: 'unknown_passkey' } | { tag: 'last_way_in' } | SignInFirst
  >
}

/** A step of a ceremony on a page of a flow. */
export type Ceremony = {
  /** The secret of the flow. */
  readonly flow: string
  /** A secret of the browser, the same for both halves. */
  readonly browser: string
  readonly visitor: Visitor
}
/** What the authenticator answered: JSON as `PublicKeyCredential.toJSON` makes it. */
export type Answer = { readonly credential: string }
export type OwnAccount = { readonly session: BrowserSession; readonly token: string }

/** WebAuthn, PublicKeyCredentialRequestOptionsJSON. */
export type RequestOptions = { readonly tag: 'options'; readonly options: object }
/** WebAuthn, PublicKeyCredentialCreationOptionsJSON. */
export type CreationOptions = { readonly tag: 'options'; readonly options: object }
export type SignInFirst = { readonly tag: 'sign_in'; readonly location: string }
export type AddPage = { readonly tag: 'page'; readonly tenant: PageTenant }

/** A session raised by a new passkey, with the recovery codes that the account got for it. */
export type PasskeyEnrolled = FlowPage & {
  readonly tag: 'enrolled'
  readonly token: string
  readonly recoveryCodes: readonly string[]
  readonly location: string
}
/** `copyable`: a passkey that can leave its device where only one that cannot will do. */
export type PasskeyRefused = {
  readonly tag: 'refused'
  readonly why: 'invalid' | 'copyable'
  readonly shown: EnrolmentShown
}

export const passkeys = address<PasskeysProtocol>('passkeys', [
  'signInOptions',
  'secondFactorOptions',
  'enrolmentOptions',
  'addPage',
  'addOptions',
])
