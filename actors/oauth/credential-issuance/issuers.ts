/** Finds the tenant behind a credential issuer. */
import type { ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import { credentialIssuerIdentifier } from '../../domain/credentials/catalogue.js'
import { isSlug } from '../../domain/tenants/slugs.js'
import type { Tenant } from '../../domain/tenants/tenancy.js'
import type { TenantSelector } from '../../domain/tenants/tenancy.js'
import type { TenantsProtocol } from '../../identity/users/tenants/protocol.js'

export type Issuer = {
  readonly tenant: Tenant
  /** The credential issuer identifier. */
  readonly identifier: string
}

type IssuersNeeds = {
  readonly tenants: ActorRef<TenantsProtocol>
  readonly baseUrl: string
  readonly rootTenantSlug: string | undefined
  /** `credentials.enabled`. */
  readonly enabled: boolean
}

export function credentialIssuers({ tenants, baseUrl, rootTenantSlug, enabled }: IssuersNeeds) {
  async function issuing(
    selector: TenantSelector,
    context: MessageContext,
  ): Promise<Tenant | null> {
    if (!enabled) return null
    const resolved = await tenants.resolve(selector, context)
    if (resolved.tag !== 'resolved') return null
    const { tenant } = resolved
    const issues = tenant.credentialIssuerEnabled && tenant.status === 'active'
    return issues && !tenant.controlPlane ? tenant : null
  }

  return {
    /** By the slug of a URL. Null names the root issuer, which belongs to the tenant `credentials.root_tenant_slug`. */
    async bySlug(slug: string | null, context: MessageContext): Promise<Issuer | null> {
      const tenantSlug = slug ?? rootTenantSlug
      if (tenantSlug === undefined || !isSlug(tenantSlug)) return null
      const tenant = await issuing({ tenantSlug }, context)
      const identifier = credentialIssuerIdentifier(baseUrl, slug === null ? null : { slug })
      return tenant === null ? null : { tenant, identifier }
    },

    async byTenant(tenantId: string, context: MessageContext): Promise<Issuer | null> {
      const tenant = await issuing({ tenantId }, context)
      return tenant && { tenant, identifier: credentialIssuerIdentifier(baseUrl, tenant) }
    },
  }
}
