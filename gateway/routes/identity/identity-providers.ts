/** A tenant's identity providers and its organization's domains. decisions.md 2.3 and 17 (style). */
import { z } from 'zod'
import {
  type DomainRecord,
  federation,
  type ProviderRecord,
} from '../../../actors/identity/identity-providers/protocol.js'
import { callerOf } from '../../request/caller.js'
import { nextLink, PageQuery, readPage } from '../../request/paging.js'
import { empty, json, problem, type Route, reply, route } from '../../route.js'
import {
  changeOf,
  CreateDomain,
  CreateProvider,
  Domain,
  domainJson,
  draftOf,
  Provider,
  providerJson,
  UpdateDomain,
  UpdateProvider,
} from './identity-provider-shapes.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'

const managed = {
  exposure: 'internal',
  security: { scheme: 'bearer', scopes: ['tenant:manage'] },
} as const
const providers = { ...managed, tags: ['Single sign-on'] } as const
const domains = { ...managed, tags: ['Domains'] } as const
const PROVIDERS = '/api/v1/sso/providers'
const DOMAINS = '/api/v1/organization/domains'
const named = z.object({ id: z.string().max(64) })

const off = problem(404, 'not-found', { detail: 'This is not switched on in this deployment.' })
const unknown = problem(404, 'not-found', { detail: 'There is no such provider or domain.' })
const invalid = problem<{ pointer: string; detail: string }, 'bad-request'>(
  400,
  'bad-request',
  ({ pointer, detail }) => ({ detail, errors: [{ pointer: `#${pointer}`, detail }] }),
)
const full = problem<{ most: number }, 'conflict'>(409, 'conflict', ({ most }) => ({
  detail: `A tenant has at most ${most} of these.`,
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

export const federationRoutes: readonly Route[] = [
  route(federation, 'listProviders', {
    ...providers,
    method: 'GET',
    path: PROVIDERS,
    operationId: 'listSsoProviders',
    summary: 'List the identity providers of the tenant, newest first',
    query: PageQuery,
    message: ({ query, principal }) => ({ tenantId: principal.tenantId, ...readPage(query) }),
    replies: {
      listed: reply(
        200,
        z.array(Provider),
        (listed) => listed.providers.map(providerJson),
        ({ next }, context) => nextLink(next, context),
      ),
      off,
    },
  }),
  route(federation, 'createProvider', {
    ...providers,
    method: 'POST',
    path: PROVIDERS,
    operationId: 'createSsoProvider',
    summary: 'Set up an identity provider for the people of the tenant',
    idempotent: true,
    body: json(CreateProvider),
    message: (request) => ({
      caller: callerOf(request),
      draft: draftOf(request.body),
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
  route(federation, 'readProvider', {
    ...providers,
    method: 'GET',
    path: `${PROVIDERS}/{id}`,
    operationId: 'getSsoProvider',
    summary: 'Read an identity provider',
    params: named,
    message: ({ params, principal }) => ({ tenantId: principal.tenantId, id: params.id }),
    replies: { found: foundProvider, unknown, off },
  }),
  route(federation, 'updateProvider', {
    ...providers,
    method: 'PATCH',
    path: `${PROVIDERS}/{id}`,
    operationId: 'updateSsoProvider',
    summary: 'Change an identity provider',
    description:
      'A secret that is not sent stays. People are known by issuer and subject: with another ' +
      'issuer they are others.',
    params: named,
    body: json(UpdateProvider),
    message: (request) => ({
      caller: callerOf(request),
      id: request.params.id,
      change: changeOf(request.body),
    }),
    replies: { found: foundProvider, invalid, unknown, off },
  }),
  route(federation, 'deleteProvider', {
    ...providers,
    method: 'DELETE',
    path: `${PROVIDERS}/{id}`,
    operationId: 'deleteSsoProvider',
    summary: 'Remove an identity provider with the links of people to it',
    params: named,
    message: (request) => ({ caller: callerOf(request), id: request.params.id }),
    replies: { deleted: empty(204), unknown, off },
  }),
  route(federation, 'listDomains', {
    ...domains,
    method: 'GET',
    path: DOMAINS,
    operationId: 'listDomains',
    summary: 'List the domains of the tenant, newest first',
    query: PageQuery,
    message: ({ query, principal }) => ({ tenantId: principal.tenantId, ...readPage(query) }),
    replies: {
      listed: reply(
        200,
        z.array(Domain),
        (listed) => listed.domains.map(domainJson),
        ({ next }, context) => nextLink(next, context),
      ),
      off,
    },
  }),
  route(federation, 'createDomain', {
    ...domains,
    method: 'POST',
    path: DOMAINS,
    operationId: 'createDomain',
    summary: 'Add a domain; it counts once it is proved',
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
      present: problem(409, 'conflict', { detail: 'The tenant has this domain already.' }),
      no_organization: noOrganization,
      off,
      ...idempotencyRefusals,
    },
  }),
  route(federation, 'readDomain', {
    ...domains,
    method: 'GET',
    path: `${DOMAINS}/{id}`,
    operationId: 'getDomain',
    summary: 'Read a domain with the record that proves it',
    params: named,
    message: ({ params, principal }) => ({ tenantId: principal.tenantId, id: params.id }),
    replies: { found: foundDomain, unknown, off },
  }),
  route(federation, 'updateDomain', {
    ...domains,
    method: 'PATCH',
    path: `${DOMAINS}/{id}`,
    operationId: 'updateDomain',
    summary: 'Change where addresses of a domain are led to, and who joins by it',
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
  route(federation, 'verifyDomain', {
    ...domains,
    method: 'POST',
    path: `${DOMAINS}/{id}/verify`,
    operationId: 'verifyDomain',
    summary: 'Look for the proof of a domain in DNS',
    params: named,
    message: (request) => ({ caller: callerOf(request), id: request.params.id }),
    replies: {
      found: foundDomain,
      proof_missing: problem(409, 'conflict', ({ proof }) => ({
        detail: `There is no TXT record at ${proof.name} that says ${proof.value}.`,
      })),
      taken: problem(409, 'conflict', {
        detail: 'Another organization has proved that the domain is its own.',
      }),
      resolver_silent: problem(503, 'service-unavailable', {
        detail: 'DNS gives no answer at the moment.',
        retryAfterSecs: 30,
      }),
      no_organization: noOrganization,
      unknown,
      off,
    },
  }),
  route(federation, 'deleteDomain', {
    ...domains,
    method: 'DELETE',
    path: `${DOMAINS}/{id}`,
    operationId: 'deleteDomain',
    summary: 'Remove a domain',
    params: named,
    message: (request) => ({ caller: callerOf(request), id: request.params.id }),
    replies: { deleted: empty(204), unknown, off },
  }),
]
