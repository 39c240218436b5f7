/** Organizations and environments (control plane). */
import { z } from 'zod'
import {
  organizations,
  type OrganizationToken,
} from '../../../actors/identity/users/organizations/protocol.js'
import { callerOf } from '../../request/caller.js'
import { presenter } from '../../response/presenter.js'
import { PageQuery, pageReply, readPage } from '../../request/paging.js'
import { json, problem, type Route, reply, route } from '../../route.js'
import { ChosenName } from '../../../actors/domain/entities/names.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'
import {
  limitReached,
  notOperator,
  ofOrganization,
  OrganizationId,
  organizationsOff,
  SupportContact,
  suspended,
  unknownOrganization,
} from './organization-shapes.js'

const tags = ['Control plane'] as const
const bound = { organizationBound: 'accepted' } as const

const Slug = z
  .string()
  .regex(/^[a-z0-9-]{3,63}$/)
  .meta({ description: '3 to 63 of a-z, 0-9 and hyphens; generated from the name when absent' })

const Organization = z
  .object({
    id: z.uuid(),
    name: z.string(),
    slug: z.string(),
    status: z.enum(['active', 'suspended']),
    role: z.enum(['owner', 'admin', 'member']).meta({ description: "The caller's" }),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'Organization' })
const organizationJson = presenter(Organization)

const CreateOrganization = z
  .object({ name: ChosenName, slug: Slug.optional() })
  .meta({ id: 'CreateOrganization' })

export const Tenant = z
  .object({
    id: z.uuid(),
    organization_id: z.uuid(),
    name: z.string(),
    slug: z.string(),
    environment: z.enum(['sandbox', 'production']),
    status: z.enum(['active', 'suspended']),
    support_contact: z.string().optional(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'Tenant' })
export const tenantJson = presenter(Tenant)

const CreateTenant = z
  .object({
    name: ChosenName,
    slug: Slug.optional(),
    environment: z.enum(['sandbox', 'production']).default('sandbox'),
    support_contact: SupportContact.optional(),
  })
  .meta({ id: 'CreateTenant' })

const tokenMembers = {
  access_token: z.string(),
  token_type: z.enum(['Bearer', 'DPoP']),
  expires_in: z.int(),
  scope: z.string(),
  organization_id: z.uuid(),
}
const BoundToken = z.object(tokenMembers).meta({ id: 'OrganizationToken' })
const TenantTokenBody = z
  .object({ ...tokenMembers, tenant_id: z.uuid(), tenant_slug: z.string() })
  .meta({ id: 'TenantToken' })

const policyDenied = problem(403, 'policy-denied', {
  reason: 'access_policy',
  detail: 'An access policy of the tenant refuses this token.',
})
const slugRefusals = {
  slug_taken: problem(409, 'conflict', { detail: 'The slug is already in use.' }),
  slug_invalid: problem<{ detail: string }, 'bad-request'>(400, 'bad-request', ({ detail }) => ({
    detail: `The member slug ${detail}.`,
    errors: [{ pointer: '#/slug', detail }],
  })),
}

export const organizationRoutes: readonly Route[] = [
  route(organizations, 'listOrganizations', {
    method: 'GET',
    path: '/api/v1/control-plane/organizations',
    summary: 'List the organizations of the caller, newest first',
    description:
      'An organization-bound token sees its own organization. A user token sees the organization ' +
      'of its tenant, and those that the user created with tokens of that tenant.',
    tags,
    exposure: 'public',
    security: { scheme: 'bearer', controlPlaneTokens: 'owner', scopes: ['org:read'], ...bound },
    query: PageQuery,
    message: (request) => ({
      caller: callerOf(request),
      ...readPage(request.query),
    }),
    replies: {
      listed: pageReply(Organization, ({ rows }) => rows.map(organizationJson)),
      not_operator: notOperator,
    },
  }),
  route(organizations, 'createOrganization', {
    method: 'POST',
    path: '/api/v1/control-plane/organizations',
    summary: 'Create an organization; its creator becomes its owner',
    tags,
    exposure: 'public',
    description: 'For agents with an operator token, and for users with the scope org:create.',
    security: {
      scheme: 'bearer',
      controlPlaneTokens: 'owner',
      scopes: ['org:create'],
      subjects: ['agent', 'human'],
      direct: 'required',
      ...bound,
    },
    idempotent: true,
    body: json(CreateOrganization),
    message: (request) => ({
      caller: callerOf(request),
      name: request.body.name,
      slug: request.body.slug,
      network: request.registeringNetwork,
      idempotency: request.idempotency,
    }),
    replies: {
      created: reply(201, Organization, ({ organization }) => organizationJson(organization)),
      not_operator: notOperator,
      organizations_off: organizationsOff,
      ...slugRefusals,
      ...idempotencyRefusals,
    },
  }),
  route(organizations, 'issueOrganizationToken', {
    method: 'POST',
    path: '/api/v1/control-plane/organizations/{organization_id}/token',
    summary: 'Issue a token bound to one organization',
    description:
      "Its scopes are the scopes that both the caller's role and its token have, never org:create. It has the claim " +
      'organization_id. It is bound to the DPoP key of the request token, if that one is bound. That ' +
      'of a user is valid for the control plane (org:read, tenant:manage) and expires with the token it is ' +
      'asked with.',
    tags,
    exposure: 'public',
    security: {
      scheme: 'bearer',
      controlPlaneTokens: 'owner',
      scopes: ['org:read'],
      subjects: ['agent', 'human'],
      direct: 'required',
      ...bound,
    },
    onceOnly: true,
    params: OrganizationId,
    message: ofOrganization,
    replies: {
      issued: reply(200, BoundToken, tokenJson),
      not_operator: notOperator,
      unknown_organization: unknownOrganization,
      policy_denied: policyDenied,
      suspended,
    },
  }),
  route(organizations, 'listTenants', {
    method: 'GET',
    path: '/api/v1/control-plane/organizations/{organization_id}/tenants',
    summary: 'List the environments of an organization, newest first',
    tags,
    exposure: 'public',
    security: { scheme: 'bearer', controlPlaneTokens: 'owner', scopes: ['org:read'], ...bound },
    params: OrganizationId,
    query: PageQuery,
    message: (request) => ({
      ...ofOrganization(request),
      ...readPage(request.query),
    }),
    replies: {
      listed: pageReply(Tenant, ({ rows }) => rows.map(tenantJson)),
      not_operator: notOperator,
      unknown_organization: unknownOrganization,
    },
  }),
  route(organizations, 'createTenant', {
    method: 'POST',
    path: '/api/v1/control-plane/organizations/{organization_id}/tenants',
    summary: 'Create an environment of an organization',
    description:
      'For owners. A sandbox admits agents from the start, production does not. A user who creates an ' +
      'environment becomes its first user, with the role owner.',
    tags,
    exposure: 'public',
    security: {
      scheme: 'bearer',
      controlPlaneTokens: 'owner',
      scopes: ['tenant:manage'],
      subjects: ['agent', 'human'],
      direct: 'required',
      ...bound,
    },
    idempotent: true,
    params: OrganizationId,
    body: json(CreateTenant),
    message: (request) => ({
      ...ofOrganization(request),
      name: request.body.name,
      slug: request.body.slug,
      environment: request.body.environment,
      supportContact: request.body.support_contact,
      idempotency: request.idempotency,
    }),
    replies: {
      created: reply(201, Tenant, ({ tenant }) => tenantJson(tenant)),
      limit_reached: limitReached,
      organizations_off: organizationsOff,
      not_operator: notOperator,
      unknown_organization: unknownOrganization,
      role_too_low: problem(403, 'forbidden', ({ role }) => ({
        detail: `Only owners of the organization create environments; the caller's role is ${role}.`,
      })),
      suspended,
      ...slugRefusals,
      ...idempotencyRefusals,
    },
  }),
  route(organizations, 'switchTenant', {
    method: 'POST',
    path: '/api/v1/control-plane/organizations/{organization_id}/tenants/{tenant_id}/switch',
    summary: 'Issue a token of one of the environments',
    description:
      'The token is one of the tenant, as if the agent had logged in there: an owner has ' +
      'every tenant scope. It is bound to the DPoP key of the request token, if that one is bound. For ' +
      'agents: users sign in at the environment.',
    tags,
    exposure: 'public',
    security: {
      scheme: 'bearer',
      controlPlaneTokens: 'owner',
      scopes: ['tenant:manage'],
      subjects: ['agent'],
      direct: 'required',
      ...bound,
    },
    onceOnly: true,
    params: OrganizationId.extend({ tenant_id: z.string().max(64) }),
    message: (request) => ({
      ...ofOrganization(request),
      tenantId: request.params.tenant_id,
    }),
    replies: {
      issued: reply(200, TenantTokenBody, (token) => ({
        ...tokenJson(token),
        tenant_id: token.tenantId,
        tenant_slug: token.tenantSlug,
      })),
      not_operator: notOperator,
      unknown_organization: unknownOrganization,
      unknown_tenant: problem(404, 'not-found', { detail: 'The tenant does not exist.' }),
      policy_denied: policyDenied,
      suspended,
    },
  }),
]

function tokenJson(token: Omit<OrganizationToken, 'tag'>): z.input<typeof BoundToken> {
  return {
    access_token: token.accessToken,
    token_type: token.tokenType,
    expires_in: token.expiresInSecs,
    scope: token.scopes.join(' '),
    organization_id: token.organizationId,
  }
}
