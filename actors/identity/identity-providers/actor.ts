/** A tenant's identity providers and verified domains. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import { domainSteps } from './domains.js'
import { identityProviders, type IdentityProvidersProtocol } from './protocol.js'
import { providerSteps } from './providers.js'
import type { IdentityProvidersNeeds } from './needs.js'

export const identityProvidersActor = defineActor<
  IdentityProvidersProtocol,
  IdentityProvidersNeeds
>({
  address: identityProviders,
  asks: {},
  mailbox: { capacity: 512, inflightMax: 64 },
  lane: {
    updateSsoProvider: ({ id }) => id,
    deleteSsoProvider: ({ id }) => id,
    updateDomain: ({ id }) => id,
    verifyDomain: ({ id }) => id,
    deleteDomain: ({ id }) => id,
  },
  supervision: { onFailure: 'resume' },
  create: (needs) => ({ ...providerSteps(needs), ...domainSteps(needs) }),
})
