/** Dependencies of the handlers of passkeys. */
import type { Registry } from 'prom-client'
import type { ActorRef, Handler } from '../../../../../runtime/kernel/actor.js'
import type { MailQueue } from '../../../../platform/mail/mail-queue.js'
import type { CountsOutcomes } from '../../../../platform/metrics.js'
import type { AdaptiveMfaSettings } from '../../second-factors/settings.js'
import type { BrowserSessionsProtocol } from '../../sessions/protocol.js'
import type { SignInNeeds, SignInTools } from '../../flow/progress.js'
import type { MailQuotaSettings } from '../../limits/mail-quota.js'
import type { SignInProtocol, SignInOffers } from '../../protocol.js'
import type { Ceremonies } from './ceremonies.js'
import type { PasskeysProtocol } from './protocol.js'
import type { RelyingParty } from './settings.js'

export type PasskeysNeeds = Omit<SignInNeeds, 'passwords' | 'tenants' | 'sealer' | 'alwaysTwo'> & {
  readonly registry: Registry
  readonly login: ActorRef<SignInProtocol>
  readonly browserSessions: ActorRef<BrowserSessionsProtocol>
  readonly relyingParty: RelyingParty
  readonly mail: MailQueue
  readonly email: MailQuotaSettings
  readonly adaptiveMfa: AdaptiveMfaSettings
  /** For the sign-in page, where a passkey does not apply. */
  readonly offers: SignInOffers
}

export type PasskeyTools = PasskeysNeeds &
  Pick<SignInTools, 'lockout' | 'adaptive'> &
  CountsOutcomes & { readonly ceremonies: Ceremonies }

export type PasskeyHandler<K extends keyof PasskeysProtocol> = Handler<
  PasskeyTools,
  PasskeysProtocol,
  K
>
