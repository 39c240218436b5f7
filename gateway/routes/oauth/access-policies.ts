/** Access policies of a tenant. */
import { z } from 'zod'
import {
  accessPolicies,
  type PolicyMembers,
  type PolicyRecord,
} from '../../../actors/oauth/access-policies/protocol.js'
import { callerOf } from '../../request/caller.js'
import { nextLink, PageQuery, readPage } from '../../request/paging.js'
import { empty, json, problem, type Route, reply, route } from '../../route.js'
import { DisplayName } from '../agents/agent-shapes.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'

const POLICIES = '/api/v1/access-policies'
const POLICY = `${POLICIES}/{id}`
const LIST_MAX = 100

const tags = ['Access policies'] as const
const managers = {
  scheme: 'bearer',
  controlPlaneTokens: 'operator',
  scopes: ['tenant:manage'],
  direct: 'required',
} as const

const Action = z.enum(['sign_in', 'token'])
const Aal = z.enum(['aal1', 'aal2', 'aal3'])
const Reason = z.enum(['network_denied', 'network_not_allowed', 'level_too_low'])
const texts = (most: number) => z.array(z.string().min(1).max(most)).max(LIST_MAX)

const members = {
  name: DisplayName,
  enabled: z.boolean(),
  actions: z
    .array(Action)
    .min(1)
    .max(2)
    .meta({
      description:
        'sign_in: a request at /oauth/authorize, with the address of the browser. token: the issue of an access token, ' +
        'with the address of the client',
    }),
  client_ids: texts(2_048).meta({ description: 'Applications and agents. Empty: all' }),
  scopes: texts(255).meta({ description: 'Requests with one of these scopes. Empty: all' }),
  allowed_networks: texts(64).meta({ description: 'Networks such as 192.0.2.0/24. Empty: all' }),
  denied_networks: texts(64).meta({ description: 'Networks that are refused' }),
  required_aal: Aal.nullable().meta({
    description: 'The least assurance level of users: the sign-in raises it. null: none',
  }),
}
const AccessPolicy = z
  .object({
    id: z.uuid(),
    ...members,
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'AccessPolicy' })

const force = z
  .boolean()
  .optional()
  .meta({ description: 'true accepts a policy that refuses the caller' })
export const CreateAccessPolicy = z
  .object({
    name: members.name,
    enabled: members.enabled.default(true),
    actions: members.actions.default(['sign_in', 'token']),
    client_ids: members.client_ids.default([]),
    scopes: members.scopes.default([]),
    allowed_networks: members.allowed_networks.default([]),
    denied_networks: members.denied_networks.default([]),
    required_aal: members.required_aal.default(null),
    force,
  })
  .meta({ id: 'CreateAccessPolicy' })
const UpdateAccessPolicy = z
  .object({ ...z.object(members).partial().shape, force })
  .meta({ id: 'UpdateAccessPolicy' })

const EvaluateAccessPolicies = z
  .object({
    action: Action,
    address: z.union([z.ipv4(), z.ipv6()]),
    client_id: z.string().min(1).max(2_048),
    scopes: texts(255).default([]),
    aal: Aal.nullable().default(null).meta({ description: 'null for agents and services' }),
  })
  .meta({ id: 'EvaluateAccessPolicies' })
const AccessDecision = z
  .object({
    decision: z.enum(['permit', 'deny']),
    denied_by: z.array(z.object({ id: z.uuid(), name: z.string(), reason: Reason })),
  })
  .meta({ id: 'AccessDecision' })

const PolicyParams = z.object({ id: z.string().max(64) })
const levelOf = (aal: z.output<typeof Aal> | null) =>
  aal === null ? null : (Number(aal.slice(-1)) as 1 | 2 | 3)

const unknown = problem(404, 'not-found', { detail: 'The access policy does not exist.' })
const refusals = {
  network_invalid: problem<{ member: string; index: number }, 'bad-request'>(
    400,
    'bad-request',
    ({ member, index }) => ({
      detail: `The member ${member} has a text that is not a network.`,
      errors: [
        {
          pointer: `#/${member}/${index}`,
          detail: 'must be a network such as 192.0.2.0/24, with zero host bits',
        },
      ],
    }),
  ),
  level_unreachable: problem(400, 'bad-request', {
    detail: 'aal3 needs passkeys, which are off in this deployment.',
    errors: [{ pointer: '#/required_aal', detail: 'must be aal1 or aal2' }],
  }),
  no_condition: problem(400, 'bad-request', {
    detail: 'A policy needs a condition: allowed_networks, denied_networks or required_aal.',
  }),
  locks_out: problem<{ reason: string; address: string }, 'conflict'>(
    409,
    'conflict',
    ({ reason, address }) => ({
      detail:
        `This policy would refuse you (${reason}, from ${address}). ` +
        'Send force with true to save it nevertheless.',
    }),
  ),
}

export const accessPolicyRoutes: readonly Route[] = [
  route(accessPolicies, 'list', {
    method: 'GET',
    path: POLICIES,
    operationId: 'listAccessPolicies',
    summary: 'List the access policies of the tenant, newest first',
    tags,
    exposure: 'public',
    capabilities: ['access_control'],
    security: managers,
    query: PageQuery,
    message: (request) => ({ caller: callerOf(request), ...readPage(request.query) }),
    replies: {
      listed: reply(
        200,
        z.array(AccessPolicy),
        ({ policies }) => policies.map(policyJson),
        ({ next }, context) => nextLink(next, context),
      ),
    },
  }),
  route(accessPolicies, 'create', {
    method: 'POST',
    path: POLICIES,
    operationId: 'createAccessPolicy',
    summary: 'Create an access policy',
    description:
      'Every policy that applies to a request must permit it. A refusal is access_denied at /oauth/authorize and 403 ' +
      'policy_denied elsewhere, and is audited as auth.policy.denied. Policies do not apply to tokens that exist already, ' +
      'nor to API keys, which have allowed_addresses of their own.',
    tags,
    exposure: 'public',
    security: managers,
    idempotent: true,
    body: json(CreateAccessPolicy),
    message: (request) => ({
      caller: callerOf(request),
      policy: membersOf(request.body) as PolicyMembers,
      force: request.body.force === true,
      idempotency: request.idempotency,
    }),
    replies: {
      created: reply(
        201,
        AccessPolicy,
        ({ policy }) => policyJson(policy),
        ({ policy }) => ({ location: `${POLICIES}/${policy.id}` }),
      ),
      ...refusals,
      full: problem<{ most: number }, 'conflict'>(409, 'conflict', ({ most }) => ({
        detail: `The tenant has ${most} access policies, which is the limit of this deployment.`,
      })),
      ...idempotencyRefusals,
    },
  }),
  route(accessPolicies, 'evaluateAccessPolicies', {
    method: 'POST',
    path: `${POLICIES}/evaluate`,
    operationId: 'evaluateAccessPolicies',
    summary: 'Ask what the access policies would decide',
    description: 'Has no effect. Only enabled policies count.',
    tags,
    exposure: 'public',
    security: managers,
    body: json(EvaluateAccessPolicies),
    message: (request) => ({
      caller: callerOf(request),
      action: request.body.action,
      address: request.body.address,
      clientId: request.body.client_id,
      scopes: request.body.scopes,
      level: levelOf(request.body.aal),
    }),
    replies: {
      evaluated: reply(200, AccessDecision, ({ denied }) => ({
        decision: denied.length === 0 ? ('permit' as const) : ('deny' as const),
        denied_by: denied.map(({ policyId, name, reason }) => ({ id: policyId, name, reason })),
      })),
    },
  }),
  route(accessPolicies, 'read', {
    method: 'GET',
    path: POLICY,
    operationId: 'readAccessPolicy',
    summary: 'Read an access policy',
    tags,
    exposure: 'public',
    security: managers,
    params: PolicyParams,
    message: (request) => ({ caller: callerOf(request), policyId: request.params.id }),
    replies: { found: reply(200, AccessPolicy, ({ policy }) => policyJson(policy)), unknown },
  }),
  route(accessPolicies, 'update', {
    method: 'PATCH',
    path: POLICY,
    operationId: 'updateAccessPolicy',
    summary: 'Change an access policy',
    description: 'Members that are absent stay unchanged. In force within a second everywhere.',
    tags,
    exposure: 'public',
    security: managers,
    params: PolicyParams,
    body: json(UpdateAccessPolicy),
    message: (request) => ({
      caller: callerOf(request),
      policyId: request.params.id,
      change: membersOf(request.body),
      force: request.body.force === true,
    }),
    replies: {
      found: reply(200, AccessPolicy, ({ policy }) => policyJson(policy)),
      ...refusals,
      unknown,
    },
  }),
  route(accessPolicies, 'remove', {
    method: 'DELETE',
    path: POLICY,
    operationId: 'deleteAccessPolicy',
    summary: 'Delete an access policy',
    tags,
    exposure: 'public',
    security: managers,
    params: PolicyParams,
    message: (request) => ({ caller: callerOf(request), policyId: request.params.id }),
    replies: { removed: empty(204), unknown },
  }),
]

function membersOf(body: z.output<typeof UpdateAccessPolicy>) {
  return {
    name: body.name,
    enabled: body.enabled,
    actions: body.actions && [...new Set(body.actions)],
    clientIds: body.client_ids && [...new Set(body.client_ids)],
    scopes: body.scopes && [...new Set(body.scopes)],
    allowedNetworks: body.allowed_networks,
    deniedNetworks: body.denied_networks,
    requiredLevel: body.required_aal === undefined ? undefined : levelOf(body.required_aal),
  }
}

function policyJson(policy: PolicyRecord): z.input<typeof AccessPolicy> {
  const { requiredLevel: level } = policy
  return {
    id: policy.id,
    name: policy.name,
    enabled: policy.enabled,
    actions: [...policy.actions],
    client_ids: [...policy.clientIds],
    scopes: [...policy.scopes],
    allowed_networks: [...policy.allowedNetworks],
    denied_networks: [...policy.deniedNetworks],
    required_aal: level === null ? null : (`aal${level}` as z.output<typeof Aal>),
    created_at: new Date(policy.createdAt).toISOString(),
    updated_at: new Date(policy.updatedAt).toISOString(),
  }
}
