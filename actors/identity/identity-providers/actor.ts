/** A tenant's identity providers and verified domains. */
import { boundHandlers, defineActor } from '../../../runtime/kernel/actor.js'
import {
  createDomain,
  deleteDomain,
  getDomain,
  listDomains,
  updateDomain,
  verifyDomain,
} from './domains.js'
import {
  type IdentityProvidersNeeds,
  type IdentityProvidersTools,
  identityProvidersTools,
} from './needs.js'
import { identityProviders, type IdentityProvidersProtocol } from './protocol.js'
import {
  createSsoProvider,
  deleteSsoProvider,
  getSsoProvider,
  listSsoProviders,
  updateSsoProvider,
} from './providers.js'

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
  create: (needs) =>
    boundHandlers<IdentityProvidersProtocol, IdentityProvidersTools>(
      {
        listSsoProviders,
        createSsoProvider,
        getSsoProvider,
        updateSsoProvider,
        deleteSsoProvider,
        listDomains,
        createDomain,
        getDomain,
        updateDomain,
        verifyDomain,
        deleteDomain,
      },
      identityProvidersTools(needs),
    ),
})
