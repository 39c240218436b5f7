/** Agents: the handlers, put together from registration and login. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import { findAgent } from '../../../storage/agents/agents.js'
import { isUuid } from '../../domain/ids.js'
import { pow } from '../proof-of-work/protocol.js'
import { tenants } from '../../identity/tenants/protocol.js'
import { tokens } from '../../oauth/tokens/protocol.js'
import { type LoginNeeds, login } from './login.js'
import { type AgentsProtocol, agents } from './protocol.js'
import { agentRecord } from './records.js'
import { type RegistrationNeeds, registration } from './registration.js'

export type AgentsNeeds = RegistrationNeeds & LoginNeeds

export const agentsActor = defineActor<AgentsProtocol, AgentsNeeds>({
  address: agents,
  asks: { tenants, pow, tokens },
  mailbox: { capacity: 2048, inflightMax: 128 },
  // Completions and verifies of one challenge run in turn: the second finds it spent instead of
  // repeating the work. Across processes the conditional statements decide.
  lane: {
    completeRegistration: ({ challengeId }) => challengeId,
    checkCompletion: ({ challengeId }) => challengeId,
    verify: ({ challengeId }) => challengeId,
  },
  create: (needs) => {
    const registering = registration(needs)
    const loggingIn = login(needs)
    return {
      startRegistration: registering.start,
      completeRegistration: registering.complete,
      checkCompletion: registering.check,
      registerDirectly: registering.registerDirectly,
      challenge: loggingIn.challenge,
      verify: loggingIn.verify,
      async read({ agentId }, { signal }) {
        // An agent's home may be another tenant than that of the token it reads itself with.
        const row = isUuid(agentId)
          ? await needs.database.system((tx) => findAgent(tx, agentId), { signal })
          : undefined
        return row === undefined
          ? { tag: 'unknown_agent' }
          : { tag: 'found', agent: agentRecord(row) }
      },
    }
  },
})
