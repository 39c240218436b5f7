/** The API resources of a tenant: APIs and MCP servers that accept access tokens of this service. */
import { z } from 'zod'
import {
  type ApiResource,
  apiResources,
  type ResourceRefused,
} from '../../../actors/oauth/api-resources/protocol.js'
import { SHOWN_NAME } from '../../../actors/domain/shown-names.js'
import { callerOf } from '../../request/caller.js'
import { ChangedName, ChosenName } from '../../request/names.js'
import { nextLink, PageQuery, readPage } from '../../request/paging.js'
import { empty, json, problem, type Route, reply, route } from '../../route.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'
import { applicationManagers, applicationReaders } from './clients.js'

const SCOPES_MAX = 100
const CLIENTS_MAX = 200
const RESOURCES = '/api/v1/api-resources'

const scope = z
  .object({
    name: z.string().min(1).max(128),
    description: z
      .string()
      .max(300)
      .regex(SHOWN_NAME)
      .or(z.literal(''))
      .default('')
      .meta({ description: 'Shown on the consent page.' }),
    kind: z
      .enum(['read', 'write', 'money'])
      .default('read')
      .meta({ description: 'What the scope permits: reading, changing, or spending money.' }),
  })
  .meta({ id: 'ResourceScope' })

const members = {
  resource: z
    .string()
    .min(1)
    .max(512)
    .meta({
      description:
        'Absolute https URI without fragment (http for loopback hosts). It is the `aud` of the tokens as it is ' +
        'written here. Its host is a verified domain of the tenant or below one, a loopback host, or in a ' +
        'sandbox a name below .test, .example or .localhost.',
      example: 'https://mcp.example.com/mcp',
    }),
  name: ChosenName,
  scopes: z.array(scope).max(SCOPES_MAX),
  access_token_lifetime_secs: z.int().min(60).max(86_400).nullable().meta({
    description: 'Lifetime of access tokens. Null selects the lifetime of the deployment.',
  }),
  require_dpop: z.boolean().meta({ description: 'Tokens need a DPoP proof (RFC 9449).' }),
  token_status_list: z.boolean().meta({
    description:
      'Access tokens have the claim `status` (draft-ietf-oauth-status-list), so that the resource server learns of ' +
      'a revocation without a request per token.',
  }),
  allowed_clients: z.enum(['any', 'listed']).meta({
    description: 'Whether every client of the tenant may request tokens, or only client_ids.',
  }),
  client_ids: z.array(z.string().min(1).max(2048)).max(CLIENTS_MAX).meta({
    description:
      'Clients that may use the resource. With client_credentials they get all of its scopes.',
  }),
}

export const CreateApiResource = z
  .object({
    ...members,
    scopes: members.scopes.default([]),
    access_token_lifetime_secs: members.access_token_lifetime_secs.default(null),
    require_dpop: members.require_dpop.default(false),
    token_status_list: members.token_status_list.default(false),
    allowed_clients: members.allowed_clients.default('any'),
    client_ids: members.client_ids.default([]),
  })
  .meta({ id: 'CreateApiResource' })

const UpdateApiResource = z
  .object({ ...members, name: ChangedName })
  .partial()
  .meta({ id: 'UpdateApiResource' })

const ApiResourceRecord = z
  .object({
    id: z.uuid(),
    tenant_id: z.uuid(),
    resource: z.string(),
    name: z.string(),
    scopes: z.array(
      z.object({
        name: z.string(),
        description: z.string(),
        kind: z.enum(['read', 'write', 'money']),
      }),
    ),
    access_token_lifetime_secs: z.int().optional(),
    require_dpop: z.boolean(),
    token_status_list: z.boolean(),
    allowed_clients: z.enum(['any', 'listed']),
    client_ids: z.array(z.string()),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'ApiResource' })

const ResourceMetadata = z
  .object({
    resource: z.string(),
    authorization_servers: z.array(z.string()),
    scopes_supported: z.array(z.string()),
    bearer_methods_supported: z.array(z.string()),
    resource_name: z.string(),
    jwks_uri: z.string(),
    dpop_bound_access_tokens_required: z.boolean(),
  })
  .meta({ id: 'ProtectedResourceMetadata' })

const ResourcePath = z.object({ id: z.string().max(64) })

const tags = ['API resources'] as const

type Refused<Tag extends ResourceRefused['tag']> = Extract<ResourceRefused, { tag: Tag }>
const refusals = {
  invalid: problem(400, 'bad-request', ({ pointer, detail }: Refused<'invalid'>) => ({
    detail,
    errors: [{ pointer: `#${pointer}`, detail }],
  })),
  domain_not_verified: problem(
    422,
    'unprocessable-content',
    ({ host }: Refused<'domain_not_verified'>) => ({
      error: 'domain_not_verified',
      detail: `${host} is not a verified domain of this tenant: add and verify the domain first.`,
    }),
  ),
  conflict: problem(409, 'conflict', {
    detail:
      'The resource is registered already, the audience of an application, or an address of this service.',
  }),
  full: problem(409, 'conflict', ({ most }: Refused<'full'>) => ({
    detail: `A tenant can have at most ${most} API resources.`,
  })),
}
const unknown = problem(404, 'not-found', { detail: 'The API resource does not exist.' })
const found = reply(200, ApiResourceRecord, ({ resource }: { resource: ApiResource }) =>
  record(resource),
)

export const apiResourceRoutes: readonly Route[] = [
  route(apiResources, 'list', {
    method: 'GET',
    path: RESOURCES,
    operationId: 'listApiResources',
    summary: 'List the API resources of the tenant, newest first',
    tags,
    exposure: 'public',
    security: applicationReaders,
    query: PageQuery,
    message: ({ query, principal }) => ({ principal, ...readPage(query) }),
    replies: {
      listed: reply(
        200,
        z.array(ApiResourceRecord),
        (listed) => listed.resources.map(record),
        ({ next }, context) => nextLink(next, context),
      ),
    },
  }),
  route(apiResources, 'create', {
    method: 'POST',
    path: RESOURCES,
    operationId: 'createApiResource',
    summary: 'Register an API or MCP server as a resource',
    description:
      'Clients then request tokens for it with `resource` (RFC 8707). A resource belongs to one tenant of the ' +
      'deployment.',
    tags,
    exposure: 'public',
    security: applicationManagers,
    capabilities: ['oauth.api_resources'],
    idempotent: true,
    body: json(CreateApiResource),
    message: (request) => ({
      caller: callerOf(request),
      idempotency: request.idempotency,
      draft: draftOf(request.body),
    }),
    replies: {
      created: reply(
        201,
        ApiResourceRecord,
        ({ resource }) => record(resource),
        ({ resource }) => ({ location: `${RESOURCES}/${resource.id}` }),
      ),
      ...refusals,
      ...idempotencyRefusals,
    },
  }),
  route(apiResources, 'read', {
    method: 'GET',
    path: `${RESOURCES}/{id}`,
    operationId: 'getApiResource',
    summary: 'Read an API resource',
    tags,
    exposure: 'public',
    security: applicationReaders,
    params: ResourcePath,
    message: ({ params, principal }) => ({ principal, resourceId: params.id }),
    replies: { found, unknown },
  }),
  route(apiResources, 'update', {
    method: 'PATCH',
    path: `${RESOURCES}/{id}`,
    operationId: 'updateApiResource',
    summary: 'Change an API resource',
    description:
      'Absent members stay unchanged, and lists are replaced as a whole. A client that is no longer allowed ' +
      'gets no new tokens, and its running tokens end.',
    tags,
    exposure: 'public',
    security: applicationManagers,
    params: ResourcePath,
    body: json(UpdateApiResource),
    message: (request) => ({
      caller: callerOf(request),
      resourceId: request.params.id,
      change: draftOf(request.body),
    }),
    replies: { found, ...refusals, unknown },
  }),
  route(apiResources, 'remove', {
    method: 'DELETE',
    path: `${RESOURCES}/{id}`,
    operationId: 'deleteApiResource',
    summary: 'Delete an API resource',
    description: 'Its tokens end, and a refresh is refused with `invalid_target`.',
    tags,
    exposure: 'public',
    security: applicationManagers,
    params: ResourcePath,
    message: (request) => ({ caller: callerOf(request), resourceId: request.params.id }),
    replies: { removed: empty(204), unknown },
  }),
  route(apiResources, 'describe', {
    method: 'GET',
    path: `${RESOURCES}/{id}/protected-resource-metadata`,
    operationId: 'getApiResourceMetadata',
    summary: 'Read the metadata document that the resource serves (RFC 9728)',
    description:
      'The resource serves it at `/.well-known/oauth-protected-resource`, followed by its own path.',
    tags,
    exposure: 'public',
    security: applicationReaders,
    params: ResourcePath,
    message: ({ params, principal }) => ({ principal, resourceId: params.id }),
    replies: {
      described: reply(200, ResourceMetadata, ({ resource, issuer }, { baseUrl }) => ({
        resource: resource.resource,
        authorization_servers: [issuer],
        scopes_supported: resource.scopes.map(({ name }) => name),
        bearer_methods_supported: ['header'],
        resource_name: resource.name,
        jwks_uri: `${baseUrl}/.well-known/jwks.json`,
        dpop_bound_access_tokens_required: resource.requireDpop,
      })),
      unknown,
    },
  }),
]

/** The draft of an API resource, from a body. */
export function draftOf<Body extends z.output<typeof UpdateApiResource>>(body: Body) {
  return {
    resource: body.resource as Body['resource'],
    name: body.name as Body['name'],
    scopes: body.scopes as Body['scopes'],
    allowedClients: body.allowed_clients as Body['allowed_clients'],
    clientIds: body.client_ids as Body['client_ids'],
    requireDpop: body.require_dpop as Body['require_dpop'],
    tokenStatusList: body.token_status_list as Body['token_status_list'],
    accessTokenLifetimeSecs: body.access_token_lifetime_secs as Body['access_token_lifetime_secs'],
  }
}

function record(row: ApiResource): z.input<typeof ApiResourceRecord> {
  return {
    id: row.id,
    tenant_id: row.tenantId,
    resource: row.resource,
    name: row.name,
    scopes: row.scopes.map((one) => ({ ...one })),
    ...(row.accessTokenLifetimeSecs === null
      ? {}
      : { access_token_lifetime_secs: row.accessTokenLifetimeSecs }),
    require_dpop: row.requireDpop,
    token_status_list: row.tokenStatusList,
    allowed_clients: row.allowedClients,
    client_ids: [...row.clientIds],
    created_at: row.createdAt.toISOString(),
    updated_at: row.updatedAt.toISOString(),
  }
}
