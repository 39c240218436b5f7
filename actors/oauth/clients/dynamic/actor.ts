/**
 * Dynamic client registration (RFC 7591) and its management (RFC 7592).
 *
 * A client never gets more scopes than its initial access token permits. Without such a token it gets
 * what the token permits by default. The token determines the tenant. Without a token the host determines it, never
 * the metadata.
 */
import { boundHandlers, defineActor } from '../../../../runtime/kernel/actor.js'
import { tenants } from '../../../identity/users/tenants/protocol.js'
import {
  fairDocuments,
  type FairDocumentsNeeds,
} from '../../../platform/outbound-http/fair-documents.js'
import { createRegistrationToken } from './initial-tokens.js'
import { deleteRegistration, readRegistration, replaceRegistration } from './management.js'
import { clientRegistration, type ClientRegistrationProtocol } from './protocol.js'
import { registerClient, type RegistrationNeeds } from './register.js'

/** Sector identifier documents that are waited for at the same time. */
const FETCHING_MAX = 64
const FETCHING_PER_TENANT_MAX = 2

type ClientRegistrationNeeds = Omit<RegistrationNeeds, 'documentsOf'> & FairDocumentsNeeds

export const clientRegistrationActor = defineActor<
  ClientRegistrationProtocol,
  ClientRegistrationNeeds
>({
  address: clientRegistration,
  asks: { tenants },
  // Few run concurrently, besides those that wait for a document: registrations queue here, where the queue is bounded,
  // and not for a connection.
  mailbox: { capacity: 512, inflightMax: 8 + FETCHING_MAX },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const documentsOf = fairDocuments(needs, {
      resource: 'sector_identifiers',
      total: FETCHING_MAX,
      perSenderMax: FETCHING_PER_TENANT_MAX,
    })
    return boundHandlers<ClientRegistrationProtocol, RegistrationNeeds>(
      {
        registerClient,
        readRegistration,
        replaceRegistration,
        deleteRegistration,
        createRegistrationToken,
      },
      { ...needs, documentsOf },
    )
  },
})
