/** Agents: registration and login by key. */
import { boundHandlers, defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import { findAgent } from '../../../storage/agents/agents.js'
import { isUuid } from '../../domain/ids.js'
import { pow } from '../proof-of-work/protocol.js'
import { tenants } from '../../identity/users/tenants/protocol.js'
import { tokens } from '../../oauth/tokens/protocol.js'
import { FETCHING_MAX } from './anchors.js'
import {
  challengeAgent,
  type LoginNeeds,
  type LoginTools,
  loginTools,
  verifyAgent,
} from './login.js'
import { type AgentsProtocol, agents } from './protocol.js'
import { agentRecord } from './records.js'
import {
  checkCompletion,
  completeAgentRegistration,
  registerAgent,
  type RegistrationNeeds,
  type RegistrationTools,
  registrationTools,
  startAgentRegistration,
} from './registration.js'

type AgentsNeeds = RegistrationNeeds & LoginNeeds

export const agentsActor = defineActor<AgentsProtocol, AgentsNeeds>({
  address: agents,
  asks: { tenants, pow, tokens },
  mailbox: { capacity: 2048, inflightMax: 2 * FETCHING_MAX },
  // Serialised per challenge: a second completion or verify finds the challenge spent and does not
  // repeat the work. Across processes the conditional SQL statements decide.
  lane: {
    completeAgentRegistration: ({ challengeId }) => challengeId,
    checkCompletion: ({ challengeId }) => challengeId,
    verifyAgent: ({ challengeId }) => challengeId,
  },
  create: (needs) =>
    boundHandlers<AgentsProtocol, RegistrationTools & LoginTools>(
      {
        startAgentRegistration,
        completeAgentRegistration,
        checkCompletion,
        registerAgent,
        challengeAgent,
        verifyAgent,
        readOwnAgent,
      },
      { ...registrationTools(needs), ...loginTools(needs), ...needs },
    ),
})

async function readOwnAgent(
  { database }: AgentsNeeds,
  { agentId }: AgentsProtocol['readOwnAgent']['message'],
  context: MessageContext,
): Promise<AgentsProtocol['readOwnAgent']['reply']> {
  // The agent's home tenant may differ from the tenant of its token.
  const row = isUuid(agentId)
    ? await database.system((tx) => findAgent(tx, agentId), context)
    : undefined
  return row === undefined ? { tag: 'unknown_agent' } : { tag: 'found', agent: agentRecord(row) }
}
