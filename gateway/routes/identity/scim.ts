/** SCIM 2.0 (RFC 7644): users, and the documents that describe the service. */
import { z } from 'zod'
import { type JsonObject, scim } from '../../../actors/identity/scim/protocol.js'
import { callerOf } from '../../request/caller.js'
import { scimRefused } from '../../response/scim-errors.js'
import { empty, type Route, route } from '../../route.js'
import {
  askedOf,
  AttributesQuery,
  IfMatch,
  listed,
  ListQuery,
  patchBody,
  ScimDocument,
  scimDocument,
  ScimList,
  scimResource,
  scimRoute,
  ScimUser,
  searchBody,
  userBody,
} from './scim-shapes.js'

const USERS = '/scim/v2/Users'
const USER = `${USERS}/{user_id}`

const UserParams = z.object({ user_id: z.string().max(64) })
const found = scimResource(200, ScimUser)
const described = (schema: z.ZodType) =>
  scimDocument(schema, ({ document }: { document: JsonObject }) => document)

/** A text or number member of a search, as it would be in a query. */
const memberOf = (body: JsonObject, name: string): string | null => {
  const value = body[name]
  if (typeof value === 'string' || typeof value === 'number') return String(value)
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string').join(',') : null
}

export const scimRoutes: readonly Route[] = [
  route(scim, 'listScimUsers', {
    ...scimRoute,
    method: 'GET',
    path: USERS,
    summary: 'List or filter the users of the tenant',
    description: 'Removed users are not listed. They are ordered by creation.',
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
  route(scim, 'listScimUsers', {
    ...scimRoute,
    method: 'POST',
    path: `${USERS}/.search`,
    operationId: 'searchScimUsers',
    summary: 'Filter the users of the tenant with a request body',
    body: searchBody,
    message: (request) => ({
      caller: callerOf(request),
      filter: memberOf(request.body, 'filter'),
      startIndex: memberOf(request.body, 'startIndex'),
      count: memberOf(request.body, 'count'),
      attributes: memberOf(request.body, 'attributes'),
      excludedAttributes: memberOf(request.body, 'excludedAttributes'),
    }),
    replies: { listed, refused: scimRefused([400]) },
  }),
  route(scim, 'createScimUser', {
    ...scimRoute,
    method: 'POST',
    path: USERS,
    summary: 'Provision a user',
    description:
      'The user is pre-provisioned if the address is in a domain that the tenant verified, or, in a sandbox, under ' +
      'a reserved name such as .test. Otherwise the owner of the address gets an invitation.',
    query: AttributesQuery,
    body: userBody,
    capabilities: ['scim'],
    message: (request) => ({
      caller: callerOf(request),
      body: request.body,
      ...askedOf(request.query),
    }),
    replies: {
      created: scimResource(201, ScimUser, ({ id }, baseUrl) => `${baseUrl}${USERS}/${id}`),
      refused: scimRefused([400, 403, 409]),
    },
  }),
  route(scim, 'readScimUser', {
    ...scimRoute,
    method: 'GET',
    path: USER,
    summary: 'Read a user',
    params: UserParams,
    query: AttributesQuery,
    message: (request) => ({
      caller: callerOf(request),
      userId: request.params.user_id,
      ...askedOf(request.query),
    }),
    replies: { found, refused: scimRefused([400, 404]) },
  }),
  route(scim, 'replaceScimUser', {
    ...scimRoute,
    method: 'PUT',
    path: USER,
    summary: 'Replace the attributes of a user',
    description: 'Absent attributes lose their values, except roles and active.',
    params: UserParams,
    query: AttributesQuery,
    headers: IfMatch,
    body: userBody,
    message: (request) => ({
      caller: callerOf(request),
      userId: request.params.user_id,
      body: request.body,
      ifMatch: request.headers['if-match'] ?? null,
      ...askedOf(request.query),
    }),
    replies: { found, refused: scimRefused([400, 403, 404, 409, 412]) },
  }),
  route(scim, 'patchScimUser', {
    ...scimRoute,
    method: 'PATCH',
    path: USER,
    summary: 'Change attributes of a user',
    description:
      'active=false suspends the user: their sessions and tokens in this tenant end immediately.',
    params: UserParams,
    query: AttributesQuery,
    headers: IfMatch,
    body: patchBody,
    message: (request) => ({
      caller: callerOf(request),
      userId: request.params.user_id,
      body: request.body,
      ifMatch: request.headers['if-match'] ?? null,
      ...askedOf(request.query),
    }),
    replies: { found, refused: scimRefused([400, 403, 404, 409, 412]) },
  }),
  route(scim, 'deleteScimUser', {
    ...scimRoute,
    method: 'DELETE',
    path: USER,
    summary: 'Remove a user from the tenant',
    description: 'Their sessions and tokens in this tenant end immediately.',
    params: UserParams,
    headers: IfMatch,
    message: (request) => ({
      caller: callerOf(request),
      userId: request.params.user_id,
      ifMatch: request.headers['if-match'] ?? null,
    }),
    replies: { deleted: empty(204), refused: scimRefused([403, 404, 409, 412]) },
  }),
  route(scim, 'readScimServiceProviderConfig', {
    ...scimRoute,
    method: 'GET',
    path: '/scim/v2/ServiceProviderConfig',
    summary: 'Read what the service supports',
    message: () => ({}),
    replies: { described: described(ScimDocument), refused: scimRefused([404]) },
  }),
  route(scim, 'readScimSchema', {
    ...scimRoute,
    method: 'GET',
    path: '/scim/v2/Schemas',
    operationId: 'listScimSchemas',
    summary: 'List the schemas',
    message: () => ({ id: null }),
    replies: { described: described(ScimList), refused: scimRefused([404]) },
  }),
  route(scim, 'readScimSchema', {
    ...scimRoute,
    method: 'GET',
    path: '/scim/v2/Schemas/{schema_uri}',
    summary: 'Read a schema',
    params: z.object({ schema_uri: z.string().max(256) }),
    message: ({ params }) => ({ id: params.schema_uri }),
    replies: { described: described(ScimDocument), refused: scimRefused([404]) },
  }),
  route(scim, 'readScimResourceType', {
    ...scimRoute,
    method: 'GET',
    path: '/scim/v2/ResourceTypes',
    operationId: 'listScimResourceTypes',
    summary: 'List the resource types',
    message: () => ({ id: null }),
    replies: { described: described(ScimList), refused: scimRefused([404]) },
  }),
  route(scim, 'readScimResourceType', {
    ...scimRoute,
    method: 'GET',
    path: '/scim/v2/ResourceTypes/{name}',
    summary: 'Read a resource type',
    params: z.object({ name: z.string().max(64) }),
    message: ({ params }) => ({ id: params.name }),
    replies: { described: described(ScimDocument), refused: scimRefused([404]) },
  }),
  route(scim, 'bulkScim', {
    ...scimRoute,
    method: 'POST',
    path: '/scim/v2/Bulk',
    summary: 'Bulk operations, which this service does not support',
    description: 'Always 501, as ServiceProviderConfig says.',
    message: () => ({}),
    replies: {
      not_implemented: {
        docs: scimRefused([501]).docs,
        render: (_outcome, context) =>
          scimRefused([501]).render(
            { status: 501, scimType: null, detail: 'Bulk operations are not supported.' },
            context,
          ),
      },
    },
  }),
]
