/**
 * Where a browser is that begins at `{slug}.{base_domain}`. Its cookies are of that host alone (`__Host-`),
 * so whatever comes back by way of a letter or of a provider has to come back there.
 */
import type { ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import type { TenantsProtocol } from '../tenants/protocol.js'

/** The host of a tenant that a request came to; null for one that came to the address of the service. */
export async function tenantHostOf(
  tenants: ActorRef<TenantsProtocol>,
  tenantId: string,
  host: string,
  context: MessageContext,
): Promise<string | null> {
  const named = await tenants.ask('resolve', { host }, context)
  if (named.tag !== 'resolved' || named.by !== 'host' || named.tenant.id !== tenantId) return null
  return new URL(`http://${host}`).hostname
}

/** The address of the service, at the host of a tenant where one is named: same scheme, same port. */
export function addressAt(issuer: string, tenantHost: string | null): string {
  if (tenantHost === null) return issuer
  const url = new URL(issuer)
  url.hostname = tenantHost
  return url.origin
}
