/**
 * Passkeys (WebAuthn Level 3): as the only factor, as the second factor after a password, and on the account page.
 * Rules: docs/reference/identity.md, "Passkeys".
 *
 * A ceremony takes two messages. The first returns the options, with a challenge bound to the browser and to its
 * session if there is one. The second carries the authenticator's response and uses up the challenge, whatever the
 * result.
 */
import { address, type Ask } from '../../../../../runtime/kernel/protocol.js'
import type { OwnAccount, SignInFirst } from '../../account/protocol.js'
import type {
  Busy,
  EnrolmentShown,
  FactorShown,
  FlowPage,
  FlowUnknown,
  Locked,
  LoginShown,
  PasskeySignals,
  StepRedirect,
  SignedIn,
  Visitor,
} from '../../protocol.js'
import type { PageTenant } from '../../../../domain/tenants/branding.js'

export type PasskeysProtocol = {
  /** The pages of `/.well-known/passkey-endpoints`, as paths. */
  getPasskeyEndpoints: Ask<object, { tag: 'endpoints'; enroll: string; manage: string }>
  /** The origins whose pages may use the passkeys, for `/.well-known/webauthn`. */
  getRelatedOrigins: Ask<object, { tag: 'origins'; origins: readonly string[] }>
  /** Options for signing in with a discoverable credential of any account. */
  getPasskeySignInOptions: Ask<Ceremony, RequestOptions | FlowUnknown>
  /** Signs in at the level of the response. `enrolled`: the passkey is the account's first factor from now on. */
  signInWithPasskey: Ask<
    Ceremony & Answer,
    | SignedIn
    | PasskeyEnrolled
    | (LoginShown & Signalling & { tag: 'wrong' })
    | (LoginShown & Signalling & Locked)
    | FlowUnknown
    | Busy
  >
  getPasskeySecondFactorOptions: Ask<Ceremony, RequestOptions | StepRedirect | FlowUnknown>
  givePasskeySecondFactor: Ask<
    Ceremony & Answer,
    | SignedIn
    | StepRedirect
    | (FactorShown & { tag: 'wrong' })
    | (FactorShown & Locked)
    | FlowUnknown
    | Busy
  >
  getPasskeyEnrolmentOptions: Ask<Ceremony, CreationOptions | StepRedirect | FlowUnknown>
  /** Registers a passkey in a flow and raises the session with it. */
  enrolPasskey: Ask<
    Ceremony & Answer & { name: string },
    PasskeyEnrolled | SignedIn | StepRedirect | PasskeyRefused | FlowUnknown | Busy
  >
  /** After a sign-in: what the browser tells its authenticators, and options for a passkey that it may create itself. */
  syncPasskeys: Ask<Ceremony, SyncPage | StepRedirect | FlowUnknown>
  /** Adds the passkey that the browser created. It is no second factor before it proved user verification. */
  createConditionalPasskey: Ask<
    Ceremony & Answer & { name: string },
    { tag: 'added' | 'refused'; location: string } | StepRedirect | FlowUnknown
  >
  /** The page that adds a passkey to an account. Needs a fresh authentication, otherwise `sign_in`. */
  showNewPasskey: Ask<OwnAccount, AddPage | SignInFirst>
  getNewPasskeyOptions: Ask<OwnAccount & { browser: string }, CreationOptions | SignInFirst>
  addOwnPasskey: Ask<
    OwnAccount & Answer & { browser: string; name: string },
    | { tag: 'added'; recoveryCodes: readonly string[]; tenant: PageTenant }
    | (Omit<AddPage, 'tag'> & { tag: 'wrong' })
    | SignInFirst
  >
  renameOwnPasskey: Ask<
    OwnAccount & { passkeyId: string; name: string },
    { tag: 'renamed' } | { tag: 'unknown_passkey' } | SignInFirst
  >
  /** Needs a fresh authentication at AAL2, so that an unattended browser cannot remove a factor. */
  removeOwnPasskey: Ask<
    OwnAccount & { passkeyId: string },
    { tag: 'removed' } | { tag: 'unknown_passkey' } | { tag: 'last_way_in' } | SignInFirst
  >
}

/** `signals` if the response is of a passkey that no account has. */
type Signalling = { readonly signals?: PasskeySignals | undefined }

/** A step of a ceremony on a page of a flow. */
export type Ceremony = {
  /** Token of the flow. */
  readonly flow: string
  /** Secret of the browser, the same in both steps. */
  readonly browser: string
  readonly visitor: Visitor
}
/** The authenticator's response: JSON of `PublicKeyCredential.toJSON`. */
export type Answer = { readonly credential: string }

/** WebAuthn, PublicKeyCredentialRequestOptionsJSON. */
export type RequestOptions = { readonly tag: 'options'; readonly options: object }
/** WebAuthn, PublicKeyCredentialCreationOptionsJSON. */
export type CreationOptions = { readonly tag: 'options'; readonly options: object }
export type AddPage = { readonly tag: 'page'; readonly tenant: PageTenant }

/** `options`: null where the browser is not asked to create a passkey. */
export type SyncPage = FlowPage & {
  readonly tag: 'page'
  readonly location: string
  readonly signals: PasskeySignals
  readonly options: object | null
}

/** A session raised by a new passkey, with the account's new recovery codes. */
export type PasskeyEnrolled = FlowPage & {
  readonly tag: 'enrolled'
  readonly token: string
  readonly recoveryCodes: readonly string[]
  readonly location: string
}
/** `copyable`: a syncable passkey where a device-bound one is required. */
export type PasskeyRefused = {
  readonly tag: 'refused'
  readonly why: 'invalid' | 'copyable'
  readonly shown: EnrolmentShown
}

export const passkeys = address<PasskeysProtocol>('passkeys', {
  idempotent: [
    'getPasskeyEndpoints',
    'getRelatedOrigins',
    'getPasskeySignInOptions',
    'getPasskeySecondFactorOptions',
    'getPasskeyEnrolmentOptions',
    'showNewPasskey',
    'getNewPasskeyOptions',
    'syncPasskeys',
  ],
})
