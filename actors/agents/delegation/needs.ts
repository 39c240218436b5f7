/** The dependencies of the delegation handlers. */
import type { Handler, ActorRef } from '../../../runtime/kernel/actor.js'
import type { BrowserSessionsProtocol } from '../../identity/sign-in/sessions/protocol.js'
import type { TokensProtocol } from '../../oauth/tokens/protocol.js'
import type { DelegationMetrics } from './metrics.js'
import type { DeviceAuthorizationSettings } from './settings.js'
import type { DelegationProtocol } from './protocol.js'
import type { AttemptCounts } from '../../platform/attempts.js'
import type { GuessSettings } from '../../platform/user-code-guesses.js'
import type { WriteNeeds } from '../../platform/write-needs.js'

export type DelegationNeeds = WriteNeeds & {
  readonly tokens: ActorRef<TokensProtocol>
  readonly browserSessions: ActorRef<BrowserSessionsProtocol>
  readonly metrics: DelegationMetrics
  readonly issuer: string
  readonly settings: DeviceAuthorizationSettings
  readonly coordination: AttemptCounts
  readonly guessing: GuessSettings
}

export type DelegationHandler<K extends keyof DelegationProtocol> = Handler<
  DelegationNeeds,
  DelegationProtocol,
  K
>
