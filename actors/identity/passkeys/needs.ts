/** Dependencies of the passkey handlers. */
import type { Registry } from 'prom-client'
import type { ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import type { BrowserSessionsProtocol } from '../sessions/protocol.js'
import type { SignInNeeds, SignInTools } from '../sign-in/flow.js'
import type { SignInProtocol, SignInOffers } from '../sign-in/protocol.js'
import type { Ceremonies } from './ceremonies.js'
import type { RelyingParty } from './settings.js'

export type PasskeysNeeds = Omit<SignInNeeds, 'passwords' | 'tenants' | 'sealer' | 'alwaysTwo'> & {
  readonly registry: Registry
  readonly login: ActorRef<SignInProtocol>
  readonly browserSessions: ActorRef<BrowserSessionsProtocol>
  readonly relyingParty: RelyingParty
  /** For the sign-in page, where a passkey does not apply. */
  readonly offers: SignInOffers
}

export type PasskeyTools = PasskeysNeeds &
  Pick<SignInTools, 'lockout'> & {
    readonly ceremonies: Ceremonies
    readonly hasFactor: (accountId: string, context: MessageContext) => Promise<boolean>
  }
