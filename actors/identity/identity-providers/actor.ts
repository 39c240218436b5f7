/** A tenant's identity providers and verified domains. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import { domainSteps } from './domains.js'
import { federation, type FederationProtocol } from './protocol.js'
import { providerSteps } from './providers.js'
import type { FederationNeeds } from './needs.js'

export const federationActor = defineActor<FederationProtocol, FederationNeeds>({
  address: federation,
  asks: {},
  mailbox: { capacity: 512, inflightMax: 64 },
  lane: {
    updateProvider: ({ id }) => id,
    deleteProvider: ({ id }) => id,
    updateDomain: ({ id }) => id,
    verifyDomain: ({ id }) => id,
    deleteDomain: ({ id }) => id,
  },
  supervision: { onFailure: 'resume' },
  create: (needs) => ({ ...providerSteps(needs), ...domainSteps(needs) }),
})
