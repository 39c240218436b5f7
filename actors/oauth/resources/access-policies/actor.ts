/** Manages the access policies of a tenant. `tokens/issue/access-policies.ts` enforces them. */
import { defineActor } from '../../../../runtime/kernel/actor.js'
import {
  accessPoliciesInForce,
  accessPolicyTable,
} from '../../../../storage/oauth/access-policies.js'
import type { Caller } from '../../../domain/audit.js'
import { isNetwork } from '../../../domain/commerce/networks.js'
import {
  type AccessPolicy,
  type AccessPolicyDraft,
  accessPolicy,
  type AccessPolicyMembers,
  levelOf,
} from '../../../domain/entities/access-policy.js'
import { answerOf } from '../../../domain/entities/entity.js'
import { entityHandlers } from '../../../platform/entity-handlers.js'
import { type AccessPoliciesProtocol, accessPolicies, type PolicyRefused } from './protocol.js'
import { denials } from '../../../domain/oauth/access-policies.js'
import type { AccessControlSettings } from './settings.js'
import { inTenant } from '../../../platform/in-tenant.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

type AccessPoliciesActorNeeds = WriteNeeds & {
  readonly settings: AccessControlSettings
  /** The highest assurance level that a sign-in can reach: 3 with passkeys, otherwise 2. */
  readonly levelMax: 2 | 3
}

export const accessPoliciesActor = defineActor<AccessPoliciesProtocol, AccessPoliciesActorNeeds>({
  address: accessPolicies,
  asks: {},
  mailbox: { capacity: 512, inflightMax: 32 },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: (needs) => ({
    ...entityHandlers<AccessPolicyMembers, PolicyRefused>(needs, {
      entity: accessPolicy,
      table: accessPolicyTable,
      most: needs.settings.max_policies_per_tenant,
      faultOf: (policy, caller) => faultOf(policy, needs.levelMax) ?? lockout(policy, caller),
      auditOf: audited,
      auditOfChange: (before, row) => ({ before: audited(before), after: audited(row) }),
      forgets: ({ tenantId }) => tenantId,
    }),

    async evaluateAccessPolicies({ caller, ...question }, context) {
      const { tenantId } = caller.principal
      const policies = await inTenant(needs.database, tenantId, context, (tx) =>
        accessPoliciesInForce(tx, tenantId),
      )
      const denied = denials(policies, question).map(({ policy: { id, name }, reason }) => ({
        policyId: id,
        name,
        reason,
      }))
      return { tag: 'evaluated', denied }
    },
  }),
})

function faultOf(policy: AccessPolicyDraft, levelMax: number): PolicyRefused | undefined {
  const { allowedNetworks, deniedNetworks, requiredAal } = policy
  if ((levelOf(requiredAal) ?? 1) > levelMax) return { tag: 'level_unreachable' }
  for (const [member, networks] of [
    ['allowed_networks', allowedNetworks],
    ['denied_networks', deniedNetworks],
  ] as const) {
    const index = networks.findIndex((network) => !isNetwork(network))
    if (index >= 0) return { tag: 'network_invalid', member, index }
  }
  const isEmpty =
    allowedNetworks.length === 0 && deniedNetworks.length === 0 && requiredAal === null
  return isEmpty ? { tag: 'no_condition' } : undefined
}

/** The refusal of a policy that would refuse its own author, with this token and from this address. */
function lockout(
  policy: AccessPolicyDraft,
  { principal, address }: Caller,
): PolicyRefused | undefined {
  if (policy.force === true) return undefined
  const { clientId, scopes, subjectType, acr } = principal
  const level = subjectType === 'human' ? Number(acr?.slice(-1) ?? 1) : null
  for (const action of policy.actions) {
    const [verdict] = denials([{ ...policy, id: '' }], { action, clientId, scopes, address, level })
    if (verdict !== undefined) return { tag: 'locks_out', reason: verdict.reason, address }
  }
  return undefined
}

/** The members of a policy for the audit log. */
function audited(row: AccessPolicy) {
  const { id: _id, created_at: _from, updated_at: _to, ...members } = answerOf(accessPolicy, row)
  return members
}
