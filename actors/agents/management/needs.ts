/** The dependencies of agent management. */
import type { ActorRef } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import type { Database } from '../../../storage/platform/sql.js'
import type { PowProtocol } from '../proof-of-work/protocol.js'
import type { TokensProtocol } from '../../oauth/tokens/protocol.js'

export type AgentManagementNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly pow: ActorRef<PowProtocol>
  readonly tokens: ActorRef<TokensProtocol>
  readonly issuer: string
}
