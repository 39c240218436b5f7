/** The dependencies of agent management. */
import type { Handler, ActorRef } from '../../../../runtime/kernel/actor.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import type { Database } from '../../../../storage/platform/sql.js'
import type { PowProtocol } from '../../proof-of-work/protocol.js'
import type { TokensProtocol } from '../../../oauth/tokens/protocol.js'
import type { AgentManagementProtocol } from './protocol.js'

export type AgentManagementNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly pow: ActorRef<PowProtocol>
  readonly tokens: ActorRef<TokensProtocol>
  readonly issuer: string
}

export type ManagementHandler<K extends keyof AgentManagementProtocol> = Handler<
  AgentManagementNeeds,
  AgentManagementProtocol,
  K
>
