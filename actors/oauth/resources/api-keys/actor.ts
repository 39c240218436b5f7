/** Manages the API keys of a tenant. The tokens actor verifies them (tokens/verify/api-key-verifier.ts). */
import { defineActor } from '../../../../runtime/kernel/actor.js'
import { type ApiKeysProtocol, apiKeys } from './protocol.js'
import { type ApiKeysNeeds, listApiKeys, readApiKey } from './read.js'
import { createApiKey, deleteApiKey, rotateApiKey } from './write.js'

export const apiKeysActor = defineActor<ApiKeysProtocol, ApiKeysNeeds>({
  address: apiKeys,
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 64 },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  handlers: { listApiKeys, readApiKey, createApiKey, rotateApiKey, deleteApiKey },
})
