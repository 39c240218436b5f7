/** Dependencies of the handlers of passkeys. */
import type { ActorRef, Handler } from '../../../../../runtime/kernel/actor.js'
import type { BrowserSessionsProtocol } from '../../sessions/protocol.js'
import type { SignInNeeds } from '../../flow/progress.js'
import type { WayNeeds, WayTools } from '../../limits/limits-of.js'
import type { SignInProtocol, SignInOffers } from '../../protocol.js'
import type { Ceremonies } from './ceremonies.js'
import type { PasskeysProtocol } from './protocol.js'
import type { RelyingParty } from './settings.js'

export type PasskeysNeeds = WayNeeds &
  Pick<SignInNeeds, 'federatedLogin' | 'passkeys'> & {
    readonly login: ActorRef<SignInProtocol>
    readonly browserSessions: ActorRef<BrowserSessionsProtocol>
    readonly relyingParty: RelyingParty
    /** For the sign-in page, where a passkey does not apply. */
    readonly offers: SignInOffers
  }

export type PasskeyTools = PasskeysNeeds & WayTools & { readonly ceremonies: Ceremonies }

export type PasskeyHandler<K extends keyof PasskeysProtocol> = Handler<
  PasskeyTools,
  PasskeysProtocol,
  K
>
