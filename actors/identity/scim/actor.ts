/** Provisioning by directories: tokens, users, and the documents that describe the service. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import {
  type DocumentFacts,
  providerConfig,
  resourceTypeDocument,
  schemaDocument,
} from './documents.js'
import { refusing } from './faults.js'
import { tokens } from '../../oauth/tokens/protocol.js'
import { scim, type ScimProtocol } from './protocol.js'
import { scimTokens } from './tokens.js'
import { scimUsersOf, type ScimUsersNeeds } from './user-changes.js'
import {
  createScimUser,
  deleteScimUser,
  listScimUsers,
  patchScimUser,
  readScimUser,
  replaceScimUser,
} from './users.js'

export type ScimNeeds = ScimUsersNeeds & {
  /** The URL of the documentation, or null. */
  readonly documentation: string | null
}

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
  create: (needs) => {
    const { issuer, documentation, maxResults, groups } = needs
    const facts: DocumentFacts = { base: `${issuer}/scim/v2`, documentation, maxResults, groups }
    const users = scimUsersOf(needs)
    return {
      ...scimTokens(needs),
      createScimUser: (message, context) => createScimUser(users, message, context),
      readScimUser: (message, context) => readScimUser(users, message, context),
      listScimUsers: (message, context) => listScimUsers(users, message, context),
      replaceScimUser: (message, context) => replaceScimUser(users, message, context),
      patchScimUser: (message, context) => patchScimUser(users, message, context),
      deleteScimUser: (message, context) => deleteScimUser(users, message, context),
      describe: ({ kind, id }) =>
        refusing(async () => {
          const document =
            kind === 'config'
              ? providerConfig(facts)
              : kind === 'schemas'
                ? schemaDocument(facts, id)
                : resourceTypeDocument(facts, id)
          return { tag: 'described' as const, document }
        }),
      bulkScim: async () => ({ tag: 'not_implemented' as const }),
    }
  },
})
