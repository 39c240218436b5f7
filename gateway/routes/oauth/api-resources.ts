/** The API resources of a tenant: APIs and MCP servers that accept access tokens of this service. */
import { z } from 'zod'
import {
  apiResources,
  type AudienceRefused,
} from '../../../actors/oauth/resources/api-resources/protocol.js'
import {
  apiResource,
  type ApiResourceMembers,
} from '../../../actors/domain/entities/api-resource.js'
import { entityRoutes, MemberPath, unknownRow } from '../../entity-routes.js'
import { callerOf } from '../../request/caller.js'
import { problem, type Route, reply, route } from '../../route.js'
import { applicationManagers, applicationReaders } from './clients.js'

const RESOURCES = '/api/v1/api-resources'

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

export const apiResourceRoutes: readonly Route[] = [
  ...entityRoutes<ApiResourceMembers, AudienceRefused>(apiResources, {
    entity: apiResource,
    path: RESOURCES,
    noun: { a: 'an', one: 'API resource', many: 'API resources' },
    operationIds: {
      list: 'listApiResources',
      create: 'createApiResource',
      read: 'getApiResource',
      update: 'updateApiResource',
      remove: 'deleteApiResource',
    },
    texts: {
      create: {
        summary: 'Register an API or MCP server as a resource',
        description:
          'Clients then request tokens for it with `resource` (RFC 8707). A resource belongs to one tenant of the ' +
          'deployment.',
      },
      update: {
        description:
          'Absent members stay unchanged, and lists are replaced as a whole. A client that is no longer allowed ' +
          'gets no new tokens, and its running tokens end.',
      },
      remove: { description: 'Its tokens end, and a refresh is refused with `invalid_target`.' },
      conflict:
        'The resource is registered already, the audience of an application, or an address of this service.',
    },
    capabilities: ['oauth.api_resources'],
    readers: applicationReaders,
    managers: applicationManagers,
    refusals: {
      domain_not_verified: problem(
        422,
        'unprocessable-content',
        ({ host }: { readonly host: string }) => ({
          error: 'domain_not_verified',
          detail: `${host} is not a verified domain of this tenant: add and verify the domain first.`,
        }),
      ),
    },
  }),
  route(apiResources, 'getApiResourceMetadata', {
    method: 'GET',
    path: `${RESOURCES}/{id}/protected-resource-metadata`,
    summary: 'Read the metadata document that the resource serves (RFC 9728)',
    description:
      'The resource serves it at `/.well-known/oauth-protected-resource`, followed by its own path.',
    tags: ['API resources'],
    exposure: 'public',
    security: applicationReaders,
    params: MemberPath,
    message: (request) => ({ caller: callerOf(request), id: request.params.id }),
    replies: {
      described: reply(200, ResourceMetadata, ({ row, issuer }, { baseUrl }) => ({
        resource: row.resource,
        authorization_servers: [issuer],
        scopes_supported: row.scopes.map(({ name }) => name),
        bearer_methods_supported: ['header'],
        resource_name: row.name,
        jwks_uri: `${baseUrl}/.well-known/jwks.json`,
        dpop_bound_access_tokens_required: row.requireDpop,
      })),
      unknown: unknownRow('API resource'),
    },
  }),
]
