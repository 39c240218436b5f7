/** Access policies of a tenant. */
import { z } from 'zod'
import {
  accessPolicies,
  type PolicyRefused,
} from '../../../actors/oauth/resources/access-policies/protocol.js'
import {
  Aal,
  accessPolicy,
  type AccessPolicyMembers,
  levelOf,
  PolicyAction,
  texts,
} from '../../../actors/domain/entities/access-policy.js'
import { entityRoutes } from '../../entity-routes.js'
import { callerOf } from '../../request/caller.js'
import { json, problem, type Route, reply, route } from '../../route.js'

const POLICIES = '/api/v1/access-policies'

const managers = {
  scheme: 'bearer',
  controlPlaneTokens: 'operator',
  scopes: ['tenant:manage'],
  direct: 'required',
} as const

const EvaluateAccessPolicies = z
  .object({
    action: PolicyAction,
    address: z.union([z.ipv4(), z.ipv6()]),
    client_id: z.string().min(1).max(2_048),
    scopes: texts(255).default([]),
    aal: Aal.nullable().default(null).meta({ description: 'null for agents and services' }),
  })
  .meta({ id: 'EvaluateAccessPolicies' })
const Reason = z.enum(['network_denied', 'network_not_allowed', 'level_too_low'])
const AccessDecision = z
  .object({
    decision: z.enum(['permit', 'deny']),
    denied_by: z.array(z.object({ id: z.uuid(), name: z.string(), reason: Reason })),
  })
  .meta({ id: 'AccessDecision' })

export const accessPolicyRoutes: readonly Route[] = [
  ...entityRoutes<AccessPolicyMembers, PolicyRefused>(accessPolicies, {
    entity: accessPolicy,
    path: POLICIES,
    noun: { a: 'an', one: 'access policy', many: 'access policies' },
    operationIds: {
      list: 'listAccessPolicies',
      create: 'createAccessPolicy',
      read: 'readAccessPolicy',
      update: 'updateAccessPolicy',
      remove: 'deleteAccessPolicy',
    },
    texts: {
      create: {
        summary: 'Create an access policy',
        description:
          'Every policy that applies to a request must permit it. A refusal is access_denied at /oauth/authorize ' +
          'and 403 policy_denied elsewhere, and is audited as auth.policy.denied. Policies do not apply to tokens ' +
          'that exist already, nor to API keys, which have their own allowed_addresses.',
      },
      update: {
        description: 'Members that are absent stay unchanged. In force within a second everywhere.',
      },
      remove: {},
      full: (most) =>
        `The tenant has ${most} access policies, which is the limit of this deployment.`,
    },
    capabilities: ['access_control'],
    readers: managers,
    managers,
    refusals: {
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
    },
  }),
  route(accessPolicies, 'evaluateAccessPolicies', {
    method: 'POST',
    path: `${POLICIES}/evaluate`,
    summary: 'Ask what the access policies would decide',
    description: 'Has no effect. Only enabled policies count.',
    tags: ['Access policies'],
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
]
