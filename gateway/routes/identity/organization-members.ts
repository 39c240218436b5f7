/** Members and events of an organization. */
import { z } from 'zod'
import {
  type OrganizationEventRecord,
  organizations,
} from '../../../actors/identity/users/organizations/protocol.js'
import { PageQuery, pageReply, readPage } from '../../request/paging.js'
import { empty, json, problem, type Route, reply, route } from '../../route.js'
import { uuid } from '../../request/ids.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'
import {
  limitReached,
  Member,
  memberJson,
  notOperator,
  ofOrganization,
  OrganizationId,
  organizationsOff,
  Role,
  roleTooLow,
  unknownOrganization,
} from './organization-shapes.js'
import { Email } from './user-shapes.js'
import { EVENTS_MAX, eventsQuery } from '../events-query.js'

const MEMBERS = '/api/v1/organizations/{organization_id}/members'
const MEMBER = `${MEMBERS}/{member_id}`
const facts = {
  tags: ['Control plane'],
  exposure: 'public',
  security: {
    scheme: 'bearer',
    controlPlaneTokens: 'owner',
    scopes: ['org:manage', 'deployment:manage'],
    subjects: ['agent', 'human'],
    direct: 'required',
    organizationBound: 'accepted',
  },
} as const

const AddMember = z
  .union([
    z.object({ email: Email, agent_id: z.never().optional(), role: Role }),
    z.object({
      agent_id: uuid().meta({
        description: 'Registered in the control plane or in an environment of the organization',
      }),
      email: z.never().optional(),
      role: Role,
    }),
  ])
  .meta({ id: 'AddOrganizationMember' })

const OrganizationEvent = z
  .object({
    sequence: z.int(),
    event_id: z.uuid(),
    type: z.string(),
    organization_id: z.uuid(),
    timestamp: z.iso.datetime(),
    data: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'OrganizationEvent' })

const MemberParams = OrganizationId.extend({ member_id: z.string().max(64) })

const refusals = {
  not_operator: notOperator,
  unknown_organization: unknownOrganization,
  role_too_low: roleTooLow('owners'),
}
const unknownMember = problem(404, 'not-found', { detail: 'The member does not exist.' })
const lastOwner = problem(409, 'conflict', {
  error: 'last_owner',
  detail: 'An organization needs an owner: make another member an owner first.',
})

export const organizationMemberRoutes: readonly Route[] = [
  route(organizations, 'listOrganizationMembers', {
    ...facts,
    method: 'GET',
    path: MEMBERS,
    summary: 'List the members and invited addresses of an organization, newest first',
    description: 'For owners, and for operators of the deployment (deployment:manage).',
    params: OrganizationId,
    query: PageQuery,
    message: (request) => ({
      ...ofOrganization(request),
      ...readPage(request.query),
    }),
    replies: {
      listed: pageReply(Member, ({ rows }) => rows.map(memberJson)),
      ...refusals,
    },
  }),
  route(organizations, 'listOrganizationEvents', {
    ...facts,
    method: 'GET',
    path: '/api/v1/organizations/{organization_id}/events',
    summary: 'List the events of an organization in order, for receivers that poll',
    description:
      'For owners, and for operators of the deployment (deployment:manage). Each tenant of the ' +
      'organization has a copy of each event, with the same `event_id`, in its events and webhooks. ' +
      'The creation and the last 10,000 events are kept. A person is named only in the copy of the ' +
      'tenant that knows their subject.',
    security: { ...facts.security, scopes: ['org:read', 'deployment:manage'] },
    params: OrganizationId,
    query: eventsQuery('`next_after` of the last answer; 0, the default, is the oldest.'),
    message: (request) => ({
      ...ofOrganization(request),
      after: request.query.after ?? 0,
      limit: request.query.limit ?? EVENTS_MAX,
    }),
    replies: {
      listed: reply(
        200,
        z.object({ items: z.array(OrganizationEvent), next_after: z.int() }),
        ({ events, nextAfter }) => ({ items: events.map(eventJson), next_after: nextAfter }),
      ),
      ...refusals,
    },
  }),
  route(organizations, 'addOrganizationMember', {
    ...facts,
    method: 'POST',
    path: MEMBERS,
    summary: 'Invite a person by email address, or add an agent',
    description:
      'An invited person becomes a member with their first sign-in at an environment of the organization, ' +
      'with an account of that address, once verified. The response does not reveal whether there is ' +
      'such an account. An agent becomes a member immediately.',
    idempotent: true,
    params: OrganizationId,
    body: json(AddMember),
    message: (request) => ({
      ...ofOrganization(request),
      who:
        request.body.agent_id === undefined
          ? { email: request.body.email }
          : { agentId: request.body.agent_id },
      role: request.body.role,
      idempotency: request.idempotency,
    }),
    replies: {
      member: reply(201, Member, ({ member }) => memberJson(member)),
      ...refusals,
      unknown_agent: problem(404, 'not-found', { detail: 'The agent does not exist.' }),
      limit_reached: limitReached,
      organizations_off: organizationsOff,
      is_member: problem(409, 'conflict', { detail: 'It is already a member or invited.' }),
      ...idempotencyRefusals,
    },
  }),
  route(organizations, 'updateOrganizationMember', {
    ...facts,
    method: 'PATCH',
    path: MEMBER,
    summary: 'Change the role of a member',
    description:
      "A new role ends the agent's sessions in the organization's tenants. It must log in again.",
    params: MemberParams,
    body: json(z.object({ role: Role }).meta({ id: 'OrganizationMemberChange' })),
    message: (request) => ({
      ...ofOrganization(request),
      memberId: request.params.member_id,
      role: request.body.role,
    }),
    replies: {
      member: reply(200, Member, ({ member }) => memberJson(member)),
      ...refusals,
      unknown_member: unknownMember,
      last_owner: lastOwner,
    },
  }),
  route(organizations, 'removeOrganizationMember', {
    ...facts,
    method: 'DELETE',
    path: MEMBER,
    summary: 'Remove a member, or withdraw an invitation',
    description:
      "Ends the agent's sessions in the organization's tenants. A person stays a user of the " +
      'tenants where they have one.',
    params: MemberParams,
    message: (request) => ({
      ...ofOrganization(request),
      memberId: request.params.member_id,
    }),
    replies: {
      removed: empty(204),
      ...refusals,
      unknown_member: unknownMember,
      last_owner: lastOwner,
    },
  }),
]

function eventJson(event: OrganizationEventRecord): z.input<typeof OrganizationEvent> {
  return {
    sequence: event.sequence,
    event_id: event.id,
    type: event.type,
    organization_id: event.organizationId,
    timestamp: event.occurredAt.toISOString(),
    data: { ...event.data },
  }
}
