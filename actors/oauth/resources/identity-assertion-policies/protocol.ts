/** Messages for policies of identity assertions. See docs/guides/oauth/identity-assertions.md. */
import { address } from '../../../../runtime/kernel/protocol.js'
import type { IdentityAssertionPolicyMembers } from '../../../domain/entities/identity-assertion-policy.js'
import type { EntityProtocol, MemberInvalid } from '../../../domain/entities/messages.js'

/** `conflict`: the application has a policy for the audience, or an application or API resource has the audience. */
export type PolicyRefused =
  | MemberInvalid
  | { readonly tag: 'conflict' }
  /** It is no active confidential application of the tenant. */
  | { readonly tag: 'client_unknown' }

export type IdentityAssertionPoliciesProtocol = EntityProtocol<
  IdentityAssertionPolicyMembers,
  PolicyRefused
>

export const identityAssertionPolicies = address<IdentityAssertionPoliciesProtocol>(
  'identity-assertion-policies',
  { idempotent: ['list', 'read'] },
)
