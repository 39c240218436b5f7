/** Messages for policies of identity assertions. See docs/guides/oauth/identity-assertions.md. */
import { address } from '../../../../runtime/kernel/protocol.js'
import type { IdentityAssertionPolicyMembers } from '../../../domain/entities/identity-assertion-policy.js'
import type { EntityProtocol } from '../../../domain/entities/messages.js'

/** `conflict` too if an application or API resource has the audience. `client_unknown`: no active confidential application. */
export type PolicyRefused = { readonly tag: 'client_unknown' }

export type IdentityAssertionPoliciesProtocol = EntityProtocol<
  IdentityAssertionPolicyMembers,
  PolicyRefused
>

export const identityAssertionPolicies = address<IdentityAssertionPoliciesProtocol>(
  'identity-assertion-policies',
  { idempotent: ['list', 'read'] },
)
