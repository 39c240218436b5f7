/**
 * Phone numbers: proved with a code by text message on the account page, then a first factor of sign-in. Rules:
 * docs/reference/identity.md, "Phone numbers".
 */
import { address, type Ask } from '../../../../../runtime/kernel/protocol.js'
import type { PageTenant } from '../../../../domain/tenants/branding.js'
import type { OwnAccount, SignInFirst } from '../../account/protocol.js'
import type {
  Busy,
  FlowPage,
  FlowStep,
  FlowUnknown,
  Locked,
  MethodDisabled,
  SignedIn,
  StepRedirect,
} from '../../protocol.js'

export type PhoneProtocol = {
  /** The page of a flow that asks for the number. */
  showPhoneSignIn: Ask<
    FlowStep,
    ({ tag: 'page' } & PhoneShown) | StepRedirect | FlowUnknown | MethodDisabled
  >
  /** Sends a code. The response is the same whether or not the number has an account. */
  requestSignInText: Ask<
    FlowStep & RequestText,
    | { tag: 'sent'; location: string }
    | (PhoneShown & PhoneRefused)
    | (PhoneShown & Locked)
    | FlowUnknown
    | MethodDisabled
    | Busy
  >
  showTextCode: Ask<
    FlowStep,
    ({ tag: 'page' } & FlowPage) | StepRedirect | FlowUnknown | MethodDisabled
  >
  /** Signs in with the code. */
  signInWithTextCode: Ask<
    FlowStep & { code: string },
    | SignedIn
    | (FlowPage & { tag: 'wrong' })
    | (FlowPage & Locked)
    | FlowUnknown
    | MethodDisabled
    | Busy
  >
  /** The page that adds a number to the account. Needs a fresh authentication, otherwise `sign_in`. */
  showOwnPhone: Ask<OwnAccount, ({ tag: 'page' } & OwnPhoneShown) | SignInFirst>
  requestPhoneProof: Ask<
    OwnAccount & RequestText & { address: string },
    | ({ tag: 'sent' } & OwnPhoneShown)
    | (OwnPhoneShown & PhoneRefused)
    | (OwnPhoneShown & Locked)
    | SignInFirst
    | Busy
  >
  /** Proves the number with the code. A number of another account moves here. */
  proveOwnPhone: Ask<
    OwnAccount & { code: string; address: string },
    | { tag: 'proved' }
    | (OwnPhoneShown & { tag: 'wrong' })
    | (OwnPhoneShown & Locked)
    | SignInFirst
    | Busy
  >
  /** Removes the number of the account. The claim `phone_number` stays. */
  removeOwnPhone: Ask<
    OwnAccount & { address: string },
    { tag: 'removed' } | { tag: 'unknown_phone' } | { tag: 'last_way_in' } | SignInFirst
  >
}

export type RequestText = {
  /** As typed. */
  readonly phoneNumber: string
  /** The Host of the request. Browsers fill in the code on pages of this host only. */
  readonly host: string
  /** Accept-Language, as sent. */
  readonly languages: string
}
export type PhoneShown = FlowPage & { readonly typed: string }
export type OwnPhoneShown = { readonly tenant: PageTenant; readonly typed: string }
/** `country_refused`: the deployment sends no messages to this country. */
export type PhoneRefused = { readonly tag: 'invalid_number' | 'country_refused' }

export const phone = address<PhoneProtocol>('phone', {
  idempotent: ['showPhoneSignIn', 'showTextCode', 'showOwnPhone'],
})
