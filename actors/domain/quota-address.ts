/** By what guesses and requests of one client are counted. */
import ipaddr from 'ipaddr.js'

/** The unit a quota counts by: an IPv4 address, or the /64 that one IPv6 customer has. */
export function quotaAddress(address: string): string {
  if (!address.includes(':')) return address
  if (!ipaddr.IPv6.isValid(address)) return address
  const { parts } = ipaddr.IPv6.parse(address)
  return `${parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`
}
