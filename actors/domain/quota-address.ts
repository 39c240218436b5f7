/** The rate limit key of an address. */
import ipaddr from 'ipaddr.js'

/** An IPv4 address, or the /64 network of an IPv6 address, which usually belongs to one customer. */
export function quotaAddress(address: string): string {
  if (!address.includes(':')) return address
  if (!ipaddr.IPv6.isValid(address)) return address
  const { parts } = ipaddr.IPv6.parse(address)
  return `${parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`
}
