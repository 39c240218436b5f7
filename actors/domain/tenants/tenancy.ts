/** A tenant: one environment of an organization. */
import type { OrganizationId, TenantId } from '../ids.js'

export type Environment = 'sandbox' | 'production'

export type Tenant = {
  readonly id: TenantId
  readonly organizationId: OrganizationId | null
  readonly name: string
  readonly slug: string
  readonly environment: Environment
  readonly status: 'active' | 'suspended'
  /** True for the tenant that manages organizations and operators. */
  readonly controlPlane: boolean
  /** True if agents may register by proof of work. */
  readonly admitAgents: boolean
  /** True if POST /api/v1/agents/auth/register is enabled, for trusted environments only. */
  readonly directAgentRegistration: boolean
  readonly credentialIssuerEnabled: boolean
  /** What the plan of the organization comes to. Null or absent: everything is permitted. */
  readonly billing?: TenantBilling | null | undefined
}

type TenantBilling = {
  /** Null: all. */
  readonly features: readonly string[] | null
  /** For non-payment. */
  readonly suspended: boolean
}

/** The tenant selector of a request. `tenantId` and `tenantSlug` are mutually exclusive. */
export type TenantSelector = {
  readonly tenantId?: string | undefined
  readonly tenantSlug?: string | undefined
  /** The Host of the request, which may be `{slug}.{base_domain}`. */
  readonly host?: string | undefined
}
