/**
 * Guests: a person without an address gets an account, and keeps it by proving an email address. Rules:
 * docs/reference/identity.md, "Guests".
 */
import { address, type Ask } from '../../../../../runtime/kernel/protocol.js'
import type { PageTenant } from '../../../../domain/tenants/branding.js'
import type { OwnAccount } from '../../account/protocol.js'
import type { Busy, FlowStep, FlowUnknown, SignedIn } from '../../protocol.js'

export type GuestsProtocol = {
  /** Creates a guest and signs it in. `absent`: the tenant has no guests, or the sign-in needs more than a guest. */
  continueAsGuest: Ask<
    FlowStep,
    SignedIn | { tag: 'absent' } | { tag: 'throttled'; retryAfterSecs: number } | FlowUnknown | Busy
  >
  /** The page that asks a guest for an address. */
  showNewEmail: Ask<OwnAccount, ({ tag: 'page' } & AddressShown) | NotGuest>
  /** Sends a code. The response is the same whether or not the address has an account. */
  requestEmailProof: Ask<
    OwnAccount & { email: string; languages: string; address: string },
    | ({ tag: 'sent' } & AddressShown)
    | ({ tag: 'invalid_email' } & AddressShown)
    | (AddressShown & { tag: 'locked'; retryAfterSecs: number })
    | NotGuest
    | Busy
  >
  /** Proves the address with the code. `taken`: the person has an account with this address, and signs in there. */
  proveOwnEmail: Ask<
    OwnAccount & { code: string; address: string },
    | { tag: 'proved' }
    | ({ tag: 'wrong' | 'taken' } & AddressShown)
    | (AddressShown & { tag: 'locked'; retryAfterSecs: number })
    | NotGuest
    | Busy
  >
}

export type AddressShown = { readonly tenant: PageTenant; readonly email: string }
/** The account has an address already. */
export type NotGuest = { readonly tag: 'not_guest' }

export const guests = address<GuestsProtocol>('guests', { idempotent: ['showNewEmail'] })
