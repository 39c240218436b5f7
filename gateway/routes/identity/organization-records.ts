/** Name, support contact and suspension of organizations and tenants. */
import type { NameRefused } from '../../../actors/domain/shown-names.js'
import { organizations } from '../../../actors/identity/users/organizations/protocol.js'
import { callerOf } from '../../request/caller.js'
import { PageQuery, pageReply, readPage } from '../../request/paging.js'
import { json, type Route, reply, route, problem } from '../../route.js'
import {
  notOperator,
  ofOrganization,
  OrganizationId,
  organizationFound,
  OrganizationRecord,
  organizationRecordJson,
  RecordChange,
  roleTooLow,
  TenantId,
  unknownOrganization,
  unknownTenant,
} from './organization-shapes.js'
import { Tenant, tenantJson } from './organizations.js'

const tags = ['Control plane'] as const
const ORGANIZATION = '/api/v1/organizations/{organization_id}'
const TENANT = '/api/v1/tenants/{tenant_id}'

const readers = {
  tags,
  exposure: 'public',
  security: {
    scheme: 'bearer',
    controlPlaneTokens: 'owner',
    scopes: ['org:read', 'deployment:manage'],
    subjects: ['agent', 'human'],
    organizationBound: 'accepted',
  },
} as const
const managers = {
  tags,
  exposure: 'public',
  security: {
    ...readers.security,
    scopes: ['org:manage', 'deployment:manage'],
    direct: 'required',
  },
} as const
/** Granted by `svc operator appoint --scope deployment:manage`. No role includes it. */
export const deployment = {
  scheme: 'bearer',
  controlPlaneTokens: 'operator',
  scopes: ['deployment:manage'],
  subjects: ['agent'],
  console: 'accepted',
  direct: 'required',
} as const

const ACCESS =
  'For owners and admins of the organization, with a control-plane token or a user token, and ' +
  'for operators of the deployment (deployment:manage).'

const organizationReplies = {
  found: organizationFound,
  not_operator: notOperator,
  unknown_organization: unknownOrganization,
  role_too_low: roleTooLow('owners and admins'),
}
const tenantFound = reply(
  200,
  Tenant,
  ({ tenant }: { readonly tenant: Parameters<typeof tenantJson>[0] }) => tenantJson(tenant),
)
const ofTenant = {
  found: tenantFound,
  not_operator: notOperator,
  unknown_tenant: unknownTenant,
  role_too_low: roleTooLow('owners and admins'),
}

/** A name that breaks the rule, unless it stays. */
const invalid = problem(400, 'bad-request', ({ pointer, detail }: NameRefused) => ({
  detail,
  errors: [{ pointer: `#${pointer}`, detail }],
}))

const SUSPENDED =
  'Its tokens, sessions, sign-ins, refresh tokens, delegations, egress calls, certificates, webhooks ' +
  'and sales are refused or paused in every process within a second. Nothing is lost: reactivation restores ' +
  'everything. Repeating the request changes nothing.'

export const organizationRecordRoutes: readonly Route[] = [
  route(organizations, 'readOrganization', {
    method: 'GET',
    path: ORGANIZATION,
    summary: 'Read an organization',
    description: ACCESS,
    ...readers,
    params: OrganizationId,
    message: ofOrganization,
    replies: organizationReplies,
  }),
  route(organizations, 'updateOrganization', {
    method: 'PATCH',
    path: ORGANIZATION,
    summary: 'Update the name or the support contact of an organization',
    description: `${ACCESS} Tenants without their own contact show the contact of the organization.`,
    ...managers,
    params: OrganizationId,
    body: json(RecordChange),
    message: (request) => ({
      ...ofOrganization(request),
      name: request.body.name,
      supportContact: request.body.support_contact,
    }),
    replies: { ...organizationReplies, invalid },
  }),
  route(organizations, 'readTenant', {
    method: 'GET',
    path: TENANT,
    summary: 'Read an environment',
    description: ACCESS,
    ...readers,
    params: TenantId,
    message: (request) => ({
      caller: callerOf(request),
      tenantId: request.params.tenant_id,
    }),
    replies: ofTenant,
  }),
  route(organizations, 'updateTenant', {
    method: 'PATCH',
    path: TENANT,
    summary: 'Update the name or the support contact of an environment',
    description: ACCESS,
    ...managers,
    params: TenantId,
    body: json(RecordChange),
    message: (request) => ({
      caller: callerOf(request),
      tenantId: request.params.tenant_id,
      name: request.body.name,
      supportContact: request.body.support_contact,
    }),
    replies: { ...ofTenant, invalid },
  }),
  route(organizations, 'listDeploymentOrganizations', {
    method: 'GET',
    path: '/api/v1/organizations',
    summary: 'List all organizations of the deployment, newest first',
    description: 'For operators of the deployment.',
    tags,
    exposure: 'internal',
    security: deployment,
    query: PageQuery,
    message: ({ query }) => readPage(query),
    replies: {
      listed: pageReply(OrganizationRecord, ({ rows }) => rows.map(organizationRecordJson)),
    },
  }),
  route(organizations, 'listDeploymentTenants', {
    method: 'GET',
    path: '/api/v1/tenants',
    summary: 'List all environments of the deployment, newest first',
    description: 'For operators of the deployment.',
    tags,
    exposure: 'internal',
    security: deployment,
    query: PageQuery,
    message: ({ query }) => readPage(query),
    replies: {
      listed: pageReply(Tenant, ({ rows }) => rows.map(tenantJson)),
    },
  }),
  ...(
    [
      ['suspend', 'suspendOrganization', 'suspendTenant'],
      ['reactivate', 'reactivateOrganization', 'reactivateTenant'],
    ] as const
  ).flatMap(([verb, ofOrganization, ofTenant]) => {
    const word = verb === 'suspend' ? 'Suspend' : 'Reactivate'
    const facts = { method: 'POST', tags, exposure: 'internal', security: deployment } as const
    return [
      route(organizations, ofOrganization, {
        ...facts,
        path: `${ORGANIZATION}/${verb}`,
        summary: `${word} an organization with all its environments`,
        description: SUSPENDED,
        params: OrganizationId,
        message: (request) => ({
          caller: callerOf(request),
          id: request.params.organization_id,
        }),
        replies: { found: organizationFound, unknown_organization: unknownOrganization },
      }),
      route(organizations, ofTenant, {
        ...facts,
        path: `${TENANT}/${verb}`,
        summary: `${word} an environment`,
        description: `${SUSPENDED} It stays suspended as long as its organization is suspended.`,
        params: TenantId,
        message: (request) => ({
          caller: callerOf(request),
          id: request.params.tenant_id,
        }),
        replies: { found: tenantFound, unknown_tenant: unknownTenant },
      }),
    ]
  }),
]
