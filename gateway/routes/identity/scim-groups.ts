/** SCIM groups (RFC 7644), where scim.groups_enabled is on. */
import { z } from 'zod'
import { scimGroups } from '../../../actors/identity/scim/groups/protocol.js'
import { callerOf } from '../../request/caller.js'
import { scimRefused } from '../../response/scim-errors.js'
import { empty, type Route, route } from '../../route.js'
import {
  askedOf,
  AttributesQuery,
  groupBody,
  IfMatch,
  listed,
  ListQuery,
  patchBody,
  ScimGroup,
  scimResource,
  scimRoute,
} from './scim-shapes.js'

const GROUPS = '/scim/v2/Groups'
const GROUP = `${GROUPS}/{group_id}`
const GroupParams = z.object({ group_id: z.string().max(64) })
const found = scimResource(200, ScimGroup)
const refused = scimRefused([400, 403, 404, 409, 412])

export const scimGroupRoutes: readonly Route[] = [
  route(scimGroups, 'listScimGroups', {
    ...scimRoute,
    method: 'GET',
    path: GROUPS,
    summary: 'List or filter the groups of the tenant',
    description: 'Filters: eq, ne, co, sw and pr on displayName, externalId and id.',
    query: ListQuery,
    message: (request) => ({
      caller: callerOf(request),
      filter: request.query.filter ?? null,
      startIndex: request.query.startIndex ?? null,
      count: request.query.count ?? null,
      ...askedOf(request.query),
    }),
    replies: { listed, refused: scimRefused([400]) },
  }),
  route(scimGroups, 'createScimGroup', {
    ...scimRoute,
    method: 'POST',
    path: GROUPS,
    summary: 'Create a group',
    description:
      'The group stands for one role of the tenant: owner, admin or member if it has that name, otherwise a role of ' +
      'the tenant with this name. Users who have the role are members already.',
    query: AttributesQuery,
    body: groupBody,
    capabilities: ['scim.groups'],
    message: (request) => ({
      caller: callerOf(request),
      body: request.body,
      ...askedOf(request.query),
    }),
    replies: {
      created: scimResource(201, ScimGroup, ({ id }, baseUrl) => `${baseUrl}${GROUPS}/${id}`),
      refused: scimRefused([400, 403, 409]),
    },
  }),
  route(scimGroups, 'readScimGroup', {
    ...scimRoute,
    method: 'GET',
    path: GROUP,
    summary: 'Read a group',
    params: GroupParams,
    query: AttributesQuery,
    message: (request) => ({
      caller: callerOf(request),
      groupId: request.params.group_id,
      ...askedOf(request.query),
    }),
    replies: { found, refused: scimRefused([400, 404]) },
  }),
  route(scimGroups, 'replaceScimGroup', {
    ...scimRoute,
    method: 'PUT',
    path: GROUP,
    summary: 'Replace a group',
    description: 'The role stays. Without members in the body the members stay.',
    params: GroupParams,
    query: AttributesQuery,
    headers: IfMatch,
    body: groupBody,
    message: (request) => ({
      caller: callerOf(request),
      groupId: request.params.group_id,
      body: request.body,
      ifMatch: request.headers['if-match'] ?? null,
      ...askedOf(request.query),
    }),
    replies: { found, refused },
  }),
  route(scimGroups, 'patchScimGroup', {
    ...scimRoute,
    method: 'PATCH',
    path: GROUP,
    summary: 'Add or remove members, or rename a group',
    params: GroupParams,
    query: AttributesQuery,
    headers: IfMatch,
    body: patchBody,
    message: (request) => ({
      caller: callerOf(request),
      groupId: request.params.group_id,
      body: request.body,
      ifMatch: request.headers['if-match'] ?? null,
      ...askedOf(request.query),
    }),
    replies: { found, refused },
  }),
  route(scimGroups, 'deleteScimGroup', {
    ...scimRoute,
    method: 'DELETE',
    path: GROUP,
    summary: 'Delete a group',
    description: 'Its members lose the role.',
    params: GroupParams,
    headers: IfMatch,
    message: (request) => ({
      caller: callerOf(request),
      groupId: request.params.group_id,
      ifMatch: request.headers['if-match'] ?? null,
    }),
    replies: { deleted: empty(204), refused: scimRefused([403, 404, 409, 412]) },
  }),
]
