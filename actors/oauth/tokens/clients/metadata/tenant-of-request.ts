/** The tenant of a request whose client_id belongs to no tenant (docs/reference/oauth.md). */
import type { ActorRef, MessageContext } from '../../../../../runtime/kernel/actor.js'
import { findResourceByUri } from '../../../../../storage/oauth/api-resources.js'
import { knownAudiences } from '../../../../../storage/oauth/applications.js'
import type { Database } from '../../../../../storage/platform/sql.js'
import { slugOfHost, type TenancySettings } from '../../../../domain/tenants/resolution.js'
import type { Tenant } from '../../../../domain/tenants/tenancy.js'
import type { TenantsProtocol } from '../../../../identity/users/tenants/protocol.js'
import { inTenant } from '../../../../platform/in-tenant.js'

export type TenantOfRequest =
  | { readonly tag: 'tenant'; readonly tenantId: string }
  | { readonly tag: 'unknown_resource' }
  | { readonly tag: 'nothing_named' }

export type TenantOfRequestNeeds = {
  readonly database: Database
  readonly tenants: ActorRef<TenantsProtocol>
  readonly tenancy: TenancySettings
  readonly issuer: string
}

export const NO_TENANT =
  'resource is missing: it must name an API of the tenant in which the user signs in'
export const NO_SUCH_RESOURCE = 'resource is not an API of any tenant'

/** The tenant of the host, otherwise of the API that `resource` names, otherwise the default tenant. */
export async function tenantOfRequest(
  { database, tenants, tenancy, issuer }: TenantOfRequestNeeds,
  { host, resources }: { readonly host: string; readonly resources: readonly string[] },
  context: MessageContext,
): Promise<TenantOfRequest> {
  const ofHost = slugOfHost(host, tenancy)
  if (ofHost !== undefined) {
    const found = await tenants.resolve({ tenantSlug: ofHost }, context)
    if (found.tag === 'resolved' && isOpen(found.tenant)) return tenant(found.tenant.id)
  }
  const apis = resources.filter((one) => one !== issuer && one !== `${issuer}/`)
  for (const resource of apis) {
    // The tenant is unknown until its API is found, so the look-up crosses tenants.
    const api = await database.system((tx) => findResourceByUri(tx, resource), {
      pool: 'identity',
      signal: context.signal,
    })
    if (api !== undefined) return tenant(api.tenantId)
  }
  const found = await tenants.resolve({}, context)
  const isDefault = found.tag === 'resolved' && found.by === 'default' && isOpen(found.tenant)
  if (apis.length === 0) return isDefault ? tenant(found.tenant.id) : { tag: 'nothing_named' }
  if (!isDefault || apis.some((one) => one.includes('\0'))) return { tag: 'unknown_resource' }
  const { id } = found.tenant
  const known = await inTenant(database, id, context, (tx) => knownAudiences(tx, id, apis))
  return known.length > 0 ? tenant(id) : { tag: 'unknown_resource' }
}

function isOpen({ controlPlane, status }: Tenant): boolean {
  return !controlPlane && status === 'active'
}

function tenant(tenantId: string): TenantOfRequest {
  return { tag: 'tenant', tenantId }
}
