/** Agent management by tenant administrators. */
import { defineActor } from '../../../../runtime/kernel/actor.js'
import { pow } from '../../proof-of-work/protocol.js'
import {
  activateAgent,
  deleteAgent,
  listAgents,
  readAgent,
  suspendAgent,
  updateAgent,
} from './agents.js'
import { revokeAgentAnchor } from './anchors.js'
import { addAgentKey, deprecateAgentKey, revokeAgentKey } from './keys.js'
import type { AgentManagementNeeds } from './needs.js'
import { type AgentManagementProtocol, agentManagement } from './protocol.js'

export const agentManagementActor = defineActor<AgentManagementProtocol, AgentManagementNeeds>({
  address: agentManagement,
  asks: { pow },
  mailbox: { capacity: 1024, inflightMax: 64 },
  lane: {
    suspendAgent: ({ agentId }) => agentId,
    activateAgent: ({ agentId }) => agentId,
    deleteAgent: ({ agentId }) => agentId,
    updateAgent: ({ agentId }) => agentId,
    addAgentKey: ({ agentId }) => agentId,
    deprecateAgentKey: ({ agentId }) => agentId,
    revokeAgentKey: ({ agentId }) => agentId,
    revokeAgentAnchor: ({ agentId }) => agentId,
  },
  supervision: { onFailure: 'resume' },
  handlers: {
    listAgents,
    readAgent,
    updateAgent,
    deleteAgent,
    suspendAgent,
    activateAgent,
    addAgentKey,
    deprecateAgentKey,
    revokeAgentKey,
    revokeAgentAnchor,
  },
})
