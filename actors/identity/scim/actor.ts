/** Provisioning by directories: tokens, users, and the documents that describe the service. */
import { boundHandlers, defineActor } from '../../../runtime/kernel/actor.js'
import { tokens } from '../../oauth/tokens/protocol.js'
import { readScimResourceType, readScimSchema, readScimServiceProviderConfig } from './documents.js'
import { type ScimNeeds, type ScimTools, scimTools } from './needs.js'
import { scim, type ScimProtocol } from './protocol.js'
import { authenticate, createScimToken, deleteScimToken, listScimTokens } from './tokens.js'
import {
  createScimUser,
  deleteScimUser,
  listScimUsers,
  patchScimUser,
  readScimUser,
  replaceScimUser,
} from './users.js'

export const scimActor = defineActor<ScimProtocol, ScimNeeds>({
  address: scim,
  asks: { tokens },
  mailbox: { capacity: 1024, inflightMax: 128 },
  lane: {
    replaceScimUser: ({ userId }) => userId,
    patchScimUser: ({ userId }) => userId,
    deleteScimUser: ({ userId }) => userId,
  },
  supervision: { onFailure: 'resume' },
  create: (needs) =>
    boundHandlers<ScimProtocol, ScimTools>(
      {
        authenticate,
        createScimToken,
        listScimTokens,
        deleteScimToken,
        createScimUser,
        readScimUser,
        listScimUsers,
        replaceScimUser,
        patchScimUser,
        deleteScimUser,
        readScimServiceProviderConfig,
        readScimSchema,
        readScimResourceType,
        async bulkScim() {
          return { tag: 'not_implemented' }
        },
      },
      scimTools(needs),
    ),
})
