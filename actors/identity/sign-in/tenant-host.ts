/**
 * The host of a browser at `{slug}.{base_domain}`. Cookies are bound to that host (`__Host-`), so links in messages and
 * callbacks of providers must lead to the same host.
 */
import type { ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import type { TenantsProtocol } from '../users/tenants/protocol.js'

/** The tenant host of a request; null when it was sent to the service's own address. */
export async function tenantHostOf(
  tenants: ActorRef<TenantsProtocol>,
  tenantId: string,
  host: string,
  context: MessageContext,
): Promise<string | null> {
  const named = await tenants.resolve({ host }, context)
  if (named.tag !== 'resolved' || named.by !== 'host' || named.tenant.id !== tenantId) return null
  return new URL(`http://${host}`).hostname
}

/** The service's address at the host of a tenant, if there is one: same scheme, same port. */
export function addressAt(issuer: string, tenantHost: string | null): string {
  if (tenantHost === null) return issuer
  const url = new URL(issuer)
  url.hostname = tenantHost
  return url.origin
}
