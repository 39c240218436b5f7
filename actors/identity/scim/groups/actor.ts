/** SCIM groups: the roles of a tenant. */
import { defineActor } from '../../../../runtime/kernel/actor.js'
import { tokens } from '../../../oauth/tokens/protocol.js'
import {
  createScimGroup,
  deleteScimGroup,
  patchScimGroup,
  replaceScimGroup,
} from './change-groups.js'
import type { ScimGroupsNeeds } from './needs.js'
import { scimGroups, type ScimGroupsProtocol } from './protocol.js'
import { listScimGroups, readScimGroup } from './read-groups.js'

export const scimGroupsActor = defineActor<ScimGroupsProtocol, ScimGroupsNeeds>({
  address: scimGroups,
  asks: { tokens },
  mailbox: { capacity: 1024, inflightMax: 32 },
  lane: {
    replaceScimGroup: ({ groupId }) => groupId,
    patchScimGroup: ({ groupId }) => groupId,
    deleteScimGroup: ({ groupId }) => groupId,
  },
  supervision: { onFailure: 'resume' },
  handlers: {
    createScimGroup,
    readScimGroup,
    listScimGroups,
    replaceScimGroup,
    patchScimGroup,
    deleteScimGroup,
  },
})
