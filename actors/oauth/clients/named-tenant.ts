/** Whether a request names the tenant of its application, where it names one. decisions.md section 0. */
import type { ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import type { TenantId } from '../../domain/ids.js'
import { namesOtherTenant, type TenantsProtocol } from '../../identity/tenants/protocol.js'
import type { OAuthForm } from '../tokens/form.js'

export type NamedTenant = 'theirs' | 'conflicting' | 'another'

export const CONFLICTING_TENANT = 'tenant_id and tenant_slug exclude one another'
export const ANOTHER_TENANT = 'the application is not one of this tenant'

/**
 * By `tenant_id` or `tenant_slug`, else by the host that the request came to (with or without a
 * port); a request that names none means that of its application.
 */
export async function namedTenant(
  tenants: ActorRef<TenantsProtocol>,
  form: OAuthForm,
  { tenantId: own }: { readonly tenantId: string },
  host: string,
  context: MessageContext,
): Promise<NamedTenant> {
  const tenantId = form.get('tenant_id') ?? undefined
  const tenantSlug = form.get('tenant_slug') ?? undefined
  if (tenantId === undefined && tenantSlug === undefined) {
    const there = await tenants.ask('resolve', { host }, context)
    return namesOtherTenant(there, own as TenantId) ? 'another' : 'theirs'
  }
  const named = await tenants.ask('resolve', { tenantId, tenantSlug }, context)
  if (named.tag === 'conflicting_tenant') return 'conflicting'
  return named.tag === 'resolved' && named.tenant.id === own ? 'theirs' : 'another'
}
