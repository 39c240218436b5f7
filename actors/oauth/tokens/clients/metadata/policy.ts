/** The policy of a tenant for clients that are identified by their metadata document. */
import type { ClientIdMetadataPolicy } from '../../../../identity/users/tenants/protocol.js'

/** True if the policy lets clients of this host in. `deny` wins. */
export function admitsHost(
  { enabled, allow, deny }: ClientIdMetadataPolicy,
  clientId: string,
): boolean {
  // A name with a final dot is the same name.
  const host = new URL(clientId).hostname.replace(/\.$/, '')
  const isIn = (entries: readonly string[]) => entries.some((entry) => covers(entry, host))
  return enabled && isIn(allow) && !isIn(deny)
}

/** `*` covers every host, `*.example.com` every host below that name. */
function covers(entry: string, host: string): boolean {
  if (entry === '*') return true
  return entry.startsWith('*.') ? host.endsWith(entry.slice(1)) : entry === host
}
