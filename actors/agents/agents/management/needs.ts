/** The dependencies of agent management. */
import type { Handler, ActorRef } from '../../../../runtime/kernel/actor.js'
import type { PowProtocol } from '../../proof-of-work/protocol.js'
import type { AgentManagementProtocol } from './protocol.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

export type AgentManagementNeeds = WriteNeeds & {
  readonly pow: ActorRef<PowProtocol>
  readonly issuer: string
}

export type ManagementHandler<K extends keyof AgentManagementProtocol> = Handler<
  AgentManagementNeeds,
  AgentManagementProtocol,
  K
>
