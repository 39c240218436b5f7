/** What the rest of the house knows of a tenant: one environment of an organization. */
import type { OrganizationId, TenantId } from '../ids.js'

export type Environment = 'sandbox' | 'production'

export type Tenant = {
  readonly id: TenantId
  readonly organizationId: OrganizationId | null
  readonly name: string
  readonly slug: string
  readonly environment: Environment
  readonly status: 'active' | 'suspended'
  /** The one tenant in which organizations and operators are looked after. */
  readonly controlPlane: boolean
  /** Whether agents may register themselves by proof of work. */
  readonly admitAgents: boolean
  /** Whether POST /api/v1/agents/auth/register is open: for trusted contexts only. */
  readonly directAgentRegistration: boolean
  readonly credentialIssuerEnabled: boolean
}

/** How a request names its tenant. `tenantId` and `tenantSlug` exclude one another. */
export type TenantSelector = {
  readonly tenantId?: string | undefined
  readonly tenantSlug?: string | undefined
  /** The Host of the request, which may carry the slug as `{slug}.{base_domain}`. */
  readonly host?: string | undefined
}
