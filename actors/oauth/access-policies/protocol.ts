/** Messages for the access policies of a tenant. See docs/reference/oauth.md, Access policies. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { Caller } from '../../domain/audit.js'
import type { IdempotencyClaim } from '../../domain/idempotency.js'
import type { ListCursor, Page } from '../../domain/paging.js'

export type AccessPoliciesProtocol = {
  list: Ask<{ readonly caller: Caller } & Page, PoliciesListed>
  read: Ask<OnePolicy, PolicyFound | PolicyUnknown>
  create: Ask<
    CreatePolicy,
    PolicyCreated | PolicyRefused | { readonly tag: 'full'; readonly most: number } | KeyRefused
  >
  /** Absent members stay unchanged. */
  update: Ask<UpdatePolicy, PolicyFound | PolicyRefused | PolicyUnknown>
  remove: Ask<OnePolicy, { readonly tag: 'removed' } | PolicyUnknown>
  /** What the policies say to a question, without any effect. */
  evaluateAccessPolicies: Ask<EvaluatePolicies, PoliciesEvaluated>
}

export type PolicyMembers = {
  readonly name: string
  readonly enabled: boolean
  readonly actions: readonly ('sign_in' | 'token')[]
  readonly clientIds: readonly string[]
  readonly scopes: readonly string[]
  readonly allowedNetworks: readonly string[]
  readonly deniedNetworks: readonly string[]
  readonly requiredLevel: 1 | 2 | 3 | null
}
export type PolicyRecord = PolicyMembers & {
  readonly id: string
  readonly createdAt: Date
  readonly updatedAt: Date
}

export type OnePolicy = { readonly caller: Caller; readonly policyId: string }
export type CreatePolicy = {
  readonly caller: Caller
  readonly policy: PolicyMembers
  /** Accepts a policy that refuses the caller. */
  readonly force: boolean
  readonly idempotency: IdempotencyClaim | null
}
export type UpdatePolicy = OnePolicy & {
  readonly change: { readonly [Member in keyof PolicyMembers]: PolicyMembers[Member] | undefined }
  readonly force: boolean
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

export type PoliciesListed = {
  readonly tag: 'listed'
  readonly policies: readonly PolicyRecord[]
  readonly next: ListCursor | null
}
export type PolicyFound = { readonly tag: 'found'; readonly policy: PolicyRecord }
export type PolicyCreated = {
  readonly tag: 'created'
  readonly policy: PolicyRecord
  readonly replayed: boolean
}
export type PolicyUnknown = { readonly tag: 'unknown' }
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
  /** The policy would refuse the caller. */
  | {
      readonly tag: 'locks_out'
      readonly reason: 'network_denied' | 'network_not_allowed' | 'level_too_low'
      readonly address: string
    }
export type PoliciesEvaluated = {
  readonly tag: 'evaluated'
  readonly denied: readonly {
    readonly policyId: string
    readonly name: string
    readonly reason: 'network_denied' | 'network_not_allowed' | 'level_too_low'
  }[]
}
export type KeyRefused =
  | { readonly tag: 'idempotency_mismatch' }
  | { readonly tag: 'idempotency_in_progress' }

export const accessPolicies = address<AccessPoliciesProtocol>('access-policies', [
  'list',
  'read',
  'evaluateAccessPolicies',
])
