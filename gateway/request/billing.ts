/** [billing]: refuses what the plan of the tenant's organization does not include, and changes while it is suspended. */
import type { BilledFeature } from '../../actors/identity/users/plans/protocol.js'
import type { Principal } from '../../actors/domain/principal.js'
import type { TenantsProtocol } from '../../actors/identity/users/tenants/protocol.js'
import type { ActorRef, AskOptions } from '../../runtime/kernel/actor.js'
import type { Problem } from '../response/problems.js'
import type { Route } from '../route.js'

/** The feature of the operations of an actor. Operations of other actors belong to every plan. */
const FEATURE_OF: Readonly<Record<string, BilledFeature>> = {
  'access-policies': 'access_control',
  'api-keys': 'api_keys',
  commerce: 'commerce',
  payouts: 'commerce',
  checkout: 'commerce',
  x402: 'commerce',
  'credential-issuance': 'credential_issuer',
  scim: 'scim',
  'scim-groups': 'scim',
  'identity-providers': 'sso.enterprise',
  vault: 'vault',
  egress: 'vault.egress',
  'ssh-certificates': 'vault.ssh_ca',
  webhooks: 'webhooks',
}

/** The refusal of a request, otherwise null. The tenant is in memory: a request costs no statement. */
export type BillingCheck = (
  route: Route,
  principal: Principal,
  options: AskOptions,
) => Promise<Problem | null>

export function billingCheck(tenants: ActorRef<TenantsProtocol>): BillingCheck {
  return async ({ method, target }, { tenantId }, options) => {
    if (target.via !== 'actor') return null
    const resolved = await tenants.resolve({ tenantId }, options)
    const billing = resolved.tag === 'resolved' ? (resolved.tenant.billing ?? null) : null
    if (billing === null) return null
    const feature = FEATURE_OF[target.address.name]
    if (feature !== undefined && billing.features !== null && !billing.features.includes(feature)) {
      return {
        name: 'forbidden',
        error: 'billing_feature_disabled',
        detail: `The plan of the organization does not include ${feature}.`,
      }
    }
    if (!billing.suspended || method === 'GET') return null
    return {
      name: 'forbidden',
      error: 'billing_suspended',
      detail: 'The organization is suspended for non-payment. Reads still work.',
    }
  }
}
