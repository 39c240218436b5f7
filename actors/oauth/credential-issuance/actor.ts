/** Offers and issues verifiable credentials. See docs/guides/oauth/verifiable-credentials.md. */
import { boundHandlers, defineActor } from '../../../runtime/kernel/actor.js'
import { tenants } from '../../identity/users/tenants/protocol.js'
import { signingKeys } from '../signing-keys/protocol.js'
import { tokens } from '../tokens/protocol.js'
import { listIssuedCredentials, revokeIssuedCredential } from './issued.js'
import {
  createCredentialOffer,
  deleteCredentialOffer,
  getCredentialOffer,
  listCredentialOffers,
  showCredentialOffer,
} from './offers.js'
import { type CredentialIssuanceProtocol, credentialIssuance } from './protocol.js'
import { type CredentialIssuanceNeeds, type IssuanceTools, issuanceTools } from './tools.js'
import {
  createCredentialNonce,
  getCredentialTypeMetadata,
  notifyRootCredentialIssuer,
  requestCredential,
} from './wallet-requests.js'

export const credentialIssuanceActor = defineActor<
  CredentialIssuanceProtocol,
  CredentialIssuanceNeeds
>({
  address: credentialIssuance,
  asks: { keys: signingKeys, tenants, tokens },
  mailbox: { capacity: 2048, inflightMax: 128 },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: (needs) =>
    boundHandlers<CredentialIssuanceProtocol, IssuanceTools>(
      {
        createCredentialOffer,
        listCredentialOffers,
        getCredentialOffer,
        deleteCredentialOffer,
        showCredentialOffer,
        listIssuedCredentials,
        revokeIssuedCredential,
        createCredentialNonce,
        requestCredential,
        notifyRootCredentialIssuer,
        getCredentialTypeMetadata,
      },
      issuanceTools(needs),
    ),
})
