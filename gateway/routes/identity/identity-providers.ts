/** A tenant's identity providers and the domains of its organization. */
import { z } from 'zod'
import {
  type DomainRecord,
  identityProviders,
  type ProviderRecord,
} from '../../../actors/identity/identity-providers/protocol.js'
import { camelMembers } from '../../../actors/domain/entities/entity.js'
import { callerOf } from '../../request/caller.js'
import { PageQuery, pageReply, readPage } from '../../request/paging.js'
import { empty, json, problem, type Route, reply, route } from '../../route.js'
import {
  CreateDomain,
  CreateProvider,
  Domain,
  domainJson,
  Provider,
  providerJson,
  UpdateDomain,
  UpdateProvider,
} from './identity-provider-shapes.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'

const managed = {
  exposure: 'internal',
  security: { scheme: 'bearer', controlPlaneTokens: 'operator', scopes: ['tenant:manage'] },
} as const
const providers = { ...managed, tags: ['Single sign-on'] } as const
const domains = { ...managed, tags: ['Domains'] } as const
const PROVIDERS = '/api/v1/sso/providers'
const DOMAINS = '/api/v1/organization/domains'
const named = z.object({ id: z.string().max(64) })

const off = problem(404, 'not-found', { detail: 'This feature is disabled in this deployment.' })
const unknown = problem(404, 'not-found', { detail: 'The provider or domain does not exist.' })
const invalid = problem<{ pointer: string; detail: string }, 'bad-request'>(
  400,
  'bad-request',
  ({ pointer, detail }) => ({ detail, errors: [{ pointer: `#${pointer}`, detail }] }),
)
const full = problem<{ most: number }, 'conflict'>(409, 'conflict', ({ most }) => ({
  detail: `A tenant can have at most ${most} of these.`,
}))
const noOrganization = problem(403, 'forbidden', {
  detail: 'The tenant belongs to no organization: use a token of one of your environments.',
})
const foundProvider = reply(200, Provider, (found: { provider: ProviderRecord }) =>
  providerJson(found.provider),
)
const foundDomain = reply(200, Domain, (found: { domain: DomainRecord }) =>
  domainJson(found.domain),
)

export const identityProviderRoutes: readonly Route[] = [
  route(identityProviders, 'listSsoProviders', {
    ...providers,
    method: 'GET',
    path: PROVIDERS,
    summary: 'List the identity providers of the tenant, newest first',
    query: PageQuery,
    message: ({ query, principal }) => ({ tenantId: principal.tenantId, ...readPage(query) }),
    replies: {
      listed: pageReply(Provider, ({ rows }) => rows.map(providerJson)),
      off,
    },
  }),
  route(identityProviders, 'createSsoProvider', {
    ...providers,
    method: 'POST',
    path: PROVIDERS,
    summary: 'Create an identity provider (enterprise SSO)',
    idempotent: true,
    body: json(CreateProvider),
    message: (request) => ({
      caller: callerOf(request),
      draft: camelMembers(request.body),
      idempotency: request.idempotency,
    }),
    replies: {
      created: reply(
        201,
        Provider,
        ({ provider }) => providerJson(provider),
        ({ provider }) => ({ location: `${PROVIDERS}/${provider.id}` }),
      ),
      invalid,
      full,
      off,
      ...idempotencyRefusals,
    },
  }),
  route(identityProviders, 'getSsoProvider', {
    ...providers,
    method: 'GET',
    path: `${PROVIDERS}/{id}`,
    summary: 'Read an identity provider',
    params: named,
    message: ({ params, principal }) => ({ tenantId: principal.tenantId, id: params.id }),
    replies: { found: foundProvider, unknown, off },
  }),
  route(identityProviders, 'updateSsoProvider', {
    ...providers,
    method: 'PATCH',
    path: `${PROVIDERS}/{id}`,
    summary: 'Update an identity provider',
    description:
      'An absent secret stays unchanged. Users are identified by issuer and subject: with another ' +
      'issuer they are different users.',
    params: named,
    body: json(UpdateProvider),
    message: (request) => ({
      caller: callerOf(request),
      id: request.params.id,
      change: camelMembers(request.body),
    }),
    replies: { found: foundProvider, invalid, unknown, off },
  }),
  route(identityProviders, 'deleteSsoProvider', {
    ...providers,
    method: 'DELETE',
    path: `${PROVIDERS}/{id}`,
    summary: 'Delete an identity provider with the identities linked to it',
    params: named,
    message: (request) => ({ caller: callerOf(request), id: request.params.id }),
    replies: { deleted: empty(204), unknown, off },
  }),
  route(identityProviders, 'listDomains', {
    ...domains,
    method: 'GET',
    path: DOMAINS,
    summary: 'List the domains of the tenant, newest first',
    query: PageQuery,
    message: ({ query, principal }) => ({ tenantId: principal.tenantId, ...readPage(query) }),
    replies: {
      listed: pageReply(Domain, ({ rows }) => rows.map(domainJson)),
      off,
    },
  }),
  route(identityProviders, 'createDomain', {
    ...domains,
    method: 'POST',
    path: DOMAINS,
    summary: 'Add a domain; it takes effect once verified',
    idempotent: true,
    body: json(CreateDomain),
    message: (request) => ({
      caller: callerOf(request),
      domain: request.body.domain,
      ssoProviderId: request.body.sso_provider_id,
      autoJoin: request.body.auto_join,
      idempotency: request.idempotency,
    }),
    replies: {
      created: reply(
        201,
        Domain,
        ({ domain }) => domainJson(domain),
        ({ domain }) => ({ location: `${DOMAINS}/${domain.id}` }),
      ),
      invalid,
      full,
      present: problem(409, 'conflict', { detail: 'The tenant already has this domain.' }),
      no_organization: noOrganization,
      off,
      ...idempotencyRefusals,
    },
  }),
  route(identityProviders, 'getDomain', {
    ...domains,
    method: 'GET',
    path: `${DOMAINS}/{id}`,
    summary: 'Read a domain with its TXT record',
    params: named,
    message: ({ params, principal }) => ({ tenantId: principal.tenantId, id: params.id }),
    replies: { found: foundDomain, unknown, off },
  }),
  route(identityProviders, 'updateDomain', {
    ...domains,
    method: 'PATCH',
    path: `${DOMAINS}/{id}`,
    summary: 'Update the routing and auto-join of a domain',
    params: named,
    body: json(UpdateDomain),
    message: (request) => ({
      caller: callerOf(request),
      id: request.params.id,
      change: {
        ssoProviderId: request.body.sso_provider_id,
        autoJoin: request.body.auto_join,
      },
    }),
    replies: { found: foundDomain, invalid, unknown, off },
  }),
  route(identityProviders, 'verifyDomain', {
    ...domains,
    method: 'POST',
    path: `${DOMAINS}/{id}/verify`,
    summary: 'Verify a domain by its DNS record',
    params: named,
    message: (request) => ({ caller: callerOf(request), id: request.params.id }),
    replies: {
      found: foundDomain,
      proof_missing: problem(409, 'conflict', ({ proof }) => ({
        detail: `There is no TXT record at ${proof.name} with the value ${proof.value}.`,
      })),
      taken: problem(409, 'conflict', {
        detail: 'Another organization has verified this domain.',
      }),
      resolver_silent: problem(503, 'service-unavailable', {
        detail: 'DNS is temporarily unavailable.',
        retryAfterSecs: 30,
      }),
      no_organization: noOrganization,
      unknown,
      off,
    },
  }),
  route(identityProviders, 'deleteDomain', {
    ...domains,
    method: 'DELETE',
    path: `${DOMAINS}/{id}`,
    summary: 'Delete a domain',
    params: named,
    message: (request) => ({ caller: callerOf(request), id: request.params.id }),
    replies: { deleted: empty(204), unknown, off },
  }),
]
