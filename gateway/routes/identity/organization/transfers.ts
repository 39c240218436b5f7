/** Limits of organizations, and transfers of environments between them. */
import { z } from 'zod'
import {
  type OrganizationPolicy,
  organizations,
  type TransferRecord,
} from '../../../../actors/identity/users/organizations/protocol.js'
import { callerOf } from '../../../request/caller.js'
import { presenter } from '../../../response/presenter.js'
import { uuid } from '../../../request/ids.js'
import { PageQuery, pageReply, readPage } from '../../../request/paging.js'
import { empty, json, problem, type Route, reply, route } from '../../../route.js'
import { idempotencyRefusals } from '../../operations/idempotency-refusals.js'
import {
  limitReached,
  notOperator,
  ofOrganization,
  OrganizationId,
  organizationsOff,
  roleTooLow,
  suspended,
  TenantId,
  unknownOrganization,
  unknownTenant,
} from '../organization-shapes.js'

const ORGANIZATION = '/api/v1/organizations/{organization_id}'
const TRANSFERS = `${ORGANIZATION}/transfers`
const TRANSFER = `${TRANSFERS}/{transfer_id}`
const LIMIT_MAX = 1_000_000
const INVITATION_SECS_MAX = 7_776_000

const tags = ['Control plane'] as const
const readers = {
  scheme: 'bearer',
  controlPlaneTokens: 'owner',
  scopes: ['org:read', 'deployment:manage'],
  subjects: ['agent', 'human'],
  organizationBound: 'accepted',
} as const
const managers = {
  tags,
  exposure: 'public',
  security: {
    ...readers,
    scopes: ['org:manage', 'deployment:manage'],
    direct: 'required',
  },
} as const

const Policy = z
  .object({
    max_members: z.int().meta({ description: 'Most members and open invitations' }),
    max_tenants: z.int().meta({ description: 'Most environments' }),
    invitation_ttl_secs: z.int().meta({ description: 'How long an invitation can be accepted' }),
    members: z.int().meta({ description: 'Members and open invitations now' }),
    tenants: z.int().meta({ description: 'Environments now' }),
  })
  .meta({ id: 'OrganizationPolicy' })

const limit = (most: number) =>
  z
    .int()
    .min(1)
    .max(most)
    .nullable()
    .optional()
    .meta({ description: 'null: the limit of the deployment' })
export const PolicyChange = z
  .object({
    max_members: limit(LIMIT_MAX),
    max_tenants: limit(LIMIT_MAX),
    invitation_ttl_secs: limit(INVITATION_SECS_MAX),
  })
  .meta({ id: 'OrganizationPolicyChange' })

const Transfer = z
  .object({
    id: z.uuid(),
    tenant_id: z.uuid(),
    tenant_name: z.string(),
    from_organization_id: z.uuid(),
    from_organization_name: z.string(),
    to_organization_id: z.uuid(),
    to_organization_name: z.string(),
    status: z.enum(['pending', 'accepted', 'canceled', 'declined', 'expired']),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
    decided_at: z.iso.datetime().nullable(),
  })
  .meta({ id: 'TenantTransfer' })
const transferJson = presenter(Transfer)

const TransferParams = OrganizationId.extend({ transfer_id: z.string().max(64) })

const refusals = {
  not_operator: notOperator,
  unknown_organization: unknownOrganization,
  role_too_low: roleTooLow('owners'),
}
const transferRefusals = {
  ...refusals,
  unknown_transfer: problem(404, 'not-found', { detail: 'The transfer does not exist.' }),
  transfer_closed: problem<{ status: string }, 'conflict'>(409, 'conflict', ({ status }) => ({
    detail: `The transfer is no longer open: it is ${status}.`,
  })),
}
const transferReply = (status: 200 | 201) =>
  reply(status, Transfer, ({ transfer }: { readonly transfer: TransferRecord }) =>
    transferJson(transfer),
  )
const policyFound = reply(200, Policy, ({ policy }: { readonly policy: OrganizationPolicy }) => ({
  max_members: policy.maxMembers,
  max_tenants: policy.maxTenants,
  invitation_ttl_secs: policy.invitationTtlSecs,
  members: policy.members,
  tenants: policy.tenants,
}))

export const organizationTransferRoutes: readonly Route[] = [
  route(organizations, 'readOrganizationPolicy', {
    method: 'GET',
    path: `${ORGANIZATION}/policy`,
    summary: 'Read the limits of an organization, and how much of them is used',
    description: 'For owners and admins, and for operators of the deployment (deployment:manage).',
    tags,
    exposure: 'public',
    security: readers,
    params: OrganizationId,
    message: ofOrganization,
    replies: { policy: policyFound, ...refusals, role_too_low: roleTooLow('owners and admins') },
  }),
  route(organizations, 'updateOrganizationPolicy', {
    method: 'PATCH',
    path: `${ORGANIZATION}/policy`,
    summary: 'Change the limits of an organization',
    description:
      'Owners may set limits up to the limits of the deployment. Operators of the deployment ' +
      '(deployment:manage) may set higher ones. A limit below the present number removes nothing.',
    ...managers,
    params: OrganizationId,
    body: json(PolicyChange),
    message: (request) => ({
      ...ofOrganization(request),
      maxMembers: request.body.max_members,
      maxTenants: request.body.max_tenants,
      invitationTtlSecs: request.body.invitation_ttl_secs,
    }),
    replies: {
      policy: policyFound,
      ...refusals,
      limit_too_high: problem<{ member: string; most: number }, 'bad-request'>(
        400,
        'bad-request',
        ({ member, most }) => ({
          detail: `${member} may be at most ${most} in this deployment.`,
          errors: [{ pointer: `#/${member}`, detail: `must be at most ${most}` }],
        }),
      ),
    },
  }),
  route(organizations, 'startTenantTransfer', {
    method: 'POST',
    path: '/api/v1/tenants/{tenant_id}/transfers',
    summary: 'Offer an environment to another organization',
    description:
      'For an owner of both organizations, with a token that names both. The environment moves when an owner of ' +
      'the other organization accepts, with its users, agents, applications and data. An environment has one open ' +
      'transfer at a time.',
    ...managers,
    idempotent: true,
    params: TenantId,
    body: json(
      z
        .object({ organization_id: uuid().meta({ description: 'The receiving organization' }) })
        .meta({ id: 'StartTenantTransfer' }),
    ),
    message: (request) => ({
      caller: callerOf(request),
      tenantId: request.params.tenant_id,
      organizationId: request.body.organization_id,
      idempotency: request.idempotency,
    }),
    replies: {
      transfer: transferReply(201),
      not_operator: notOperator,
      unknown_tenant: unknownTenant,
      unknown_organization: unknownOrganization,
      role_too_low: roleTooLow('owners'),
      transfer_pending: problem(409, 'conflict', {
        detail: 'The environment has an open transfer: cancel it first.',
      }),
      suspended,
      organizations_off: organizationsOff,
      ...idempotencyRefusals,
    },
  }),
  route(organizations, 'listTenantTransfers', {
    method: 'GET',
    path: TRANSFERS,
    summary: 'List the transfers from and to an organization, newest first',
    description: 'For owners, and for operators of the deployment (deployment:manage).',
    ...managers,
    params: OrganizationId,
    query: PageQuery,
    message: (request) => ({
      ...ofOrganization(request),
      ...readPage(request.query),
    }),
    replies: {
      listed: pageReply(Transfer, ({ rows }) => rows.map(transferJson)),
      ...refusals,
    },
  }),
  route(organizations, 'acceptTenantTransfer', {
    method: 'POST',
    path: `${TRANSFER}/accept`,
    summary: 'Accept a transfer: the environment moves to the organization',
    description:
      'For owners of the receiving organization, once. Agents of the environment must log in again, because their ' +
      'roles come from the organization. Verified domains stay with the organization that verified them.',
    ...managers,
    params: TransferParams,
    message: (request) => ({
      ...ofOrganization(request),
      transferId: request.params.transfer_id,
    }),
    replies: {
      transfer: transferReply(200),
      ...transferRefusals,
      limit_reached: limitReached,
      suspended,
      organizations_off: organizationsOff,
    },
  }),
  route(organizations, 'closeTenantTransfer', {
    method: 'DELETE',
    path: TRANSFER,
    summary: 'Cancel a transfer of the organization, or decline one to it',
    ...managers,
    params: TransferParams,
    message: (request) => ({
      ...ofOrganization(request),
      transferId: request.params.transfer_id,
    }),
    replies: { closed: empty(204), ...transferRefusals },
  }),
]
