/**
 * Addresses and names of this service. Outbound requests to them are refused: they would loop, with the
 * service's own address as the client.
 */
import { networkInterfaces } from 'node:os'

/**
 * True if an address from a resolver or a socket belongs to this machine. Checked per connection, because
 * interfaces change.
 */
export function isOwnAddress(address: string): boolean {
  const candidate = plain(address)
  return Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some((own) => plain(own.address) === candidate),
  )
}

/** True for a host name of this service or a subdomain of one, such as a tenant host. */
export function isOwnName(hostname: string, ownNames: readonly string[]): boolean {
  const name = hostname.toLowerCase().replace(/\.$/, '')
  return ownNames.some((own) => name === own || name.endsWith(`.${own}`))
}

/** Reduces an IPv4-mapped IPv6 address to IPv4. */
function plain(address: string): string {
  return address.toLowerCase().replace(/^::ffff:(?=[0-9.]+$)/, '')
}
