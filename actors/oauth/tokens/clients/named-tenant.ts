/** Checks that a request names the tenant of its application, if it names a tenant. */
import type { ActorRef, MessageContext } from '../../../../runtime/kernel/actor.js'
import type { TenantId } from '../../../domain/ids.js'
import { namesOtherTenant, type TenantsProtocol } from '../../../identity/users/tenants/protocol.js'
import type { OAuthForm } from '../form.js'

type NamedTenant = 'theirs' | 'conflicting' | 'another'

export const CONFLICTING_TENANT = 'tenant_id and tenant_slug exclude each other'
export const ANOTHER_TENANT = 'the application does not belong to this tenant'

/**
 * The tenant of `tenant_id` or `tenant_slug`, otherwise of the request's host (with or without port). A
 * request without any of these is for the application's own tenant.
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
    const there = await tenants.resolve({ host }, context)
    return namesOtherTenant(there, own as TenantId) ? 'another' : 'theirs'
  }
  const named = await tenants.resolve({ tenantId, tenantSlug }, context)
  if (named.tag === 'conflicting_tenant') return 'conflicting'
  return named.tag === 'resolved' && named.tenant.id === own ? 'theirs' : 'another'
}
