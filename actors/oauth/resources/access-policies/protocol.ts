/** Messages for the access policies of a tenant. See docs/reference/oauth.md, Access policies. */
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import type { Caller } from '../../../domain/audit.js'
import type { AccessPolicyMembers } from '../../../domain/entities/access-policy.js'
import type { EntityProtocol } from '../../../domain/entities/messages.js'
import type { DenialReason } from '../../../domain/oauth/access-policies.js'

export type AccessPoliciesProtocol = EntityProtocol<AccessPolicyMembers, PolicyRefused> & {
  /** What the policies say to a question, without any effect. */
  evaluateAccessPolicies: Ask<EvaluatePolicies, PoliciesEvaluated>
}

export type EvaluatePolicies = {
  readonly caller: Caller
  readonly action: 'sign_in' | 'token'
  readonly address: string
  readonly clientId: string
  readonly scopes: readonly string[]
  /** Null for agents and services. */
  readonly level: number | null
}

export type PolicyRefused =
  /** A network is not in CIDR notation. */
  | {
      readonly tag: 'network_invalid'
      readonly member: 'allowed_networks' | 'denied_networks'
      readonly index: number
    }
  /** aal3 needs passkeys, which are off in this deployment. */
  | { readonly tag: 'level_unreachable' }
  /** Neither networks nor an assurance level. */
  | { readonly tag: 'no_condition' }
  /** The policy would refuse the caller, who did not send `force`. */
  | { readonly tag: 'locks_out'; readonly reason: DenialReason; readonly address: string }
export type PoliciesEvaluated = {
  readonly tag: 'evaluated'
  readonly denied: readonly {
    readonly policyId: string
    readonly name: string
    readonly reason: DenialReason
  }[]
}

export const accessPolicies = address<AccessPoliciesProtocol>('access-policies', {
  idempotent: ['list', 'read', 'evaluateAccessPolicies'],
})
