/** Public IP addresses: the guard against server-side request forgery. */
import ipaddr from 'ipaddr.js'

const { IPv4, IPv6 } = ipaddr

/**
 * Refused although the registries of RFC 6890 call them global: they reach the hosting provider or are
 * translated to another address.
 */
const REFUSED_V4 = [
  // The metadata and health endpoint of Azure hosts.
  '168.63.129.16/32',
  // IETF protocol assignments.
  '192.0.0.0/24',
  // 6to4 relays, withdrawn by RFC 7526.
  '192.88.99.0/24',
].map((range) => IPv4.parseCIDR(range))

/** The only IPv6 block that is allocated for global unicast. */
const GLOBAL_V6 = IPv6.parseCIDR('2000::/3')
const REFUSED_V6 = [
  // IETF protocol assignments: Teredo, benchmarking, ORCHID and more.
  '2001::/23',
  '2001:db8::/32',
  // 6to4, which embeds an IPv4 address.
  '2002::/16',
  // Documentation (RFC 9637).
  '3fff::/20',
].map((range) => IPv6.parseCIDR(range))
/** An IPv4-mapped address as resolvers and sockets write it (RFC 5952 section 5). */
const MAPPED = /^::ffff:/i
/** The interface identifier that ISATAP puts before an embedded IPv4 address (RFC 5214). */
const ISATAP = 0x5efe

/**
 * True if an address from a resolver or a socket is globally reachable. An IPv4-mapped IPv6 address is
 * checked as IPv4; every other embedding is refused.
 */
export function isPublicAddress(text: string): boolean {
  if (text.includes('%')) return false
  let address: ipaddr.IPv4 | ipaddr.IPv6
  try {
    address = ipaddr.parse(text)
  } catch {
    return false
  }
  if (address instanceof IPv6) {
    if (!address.isIPv4MappedAddress()) return isPublicV6(address)
    // The library also accepts `::1.2.3.4`, which is not IPv4-mapped and not public.
    return MAPPED.test(text) && isPublicV4(address.toIPv4Address())
  }
  return IPv4.isValidFourPartDecimal(text) && isPublicV4(address)
}

function isPublicV4(address: ipaddr.IPv4): boolean {
  return address.range() === 'unicast' && !REFUSED_V4.some((range) => address.match(range))
}

function isPublicV6(address: ipaddr.IPv6): boolean {
  if (!address.match(GLOBAL_V6) || address.range() !== 'unicast') return false
  if (address.parts[5] === ISATAP && (address.parts[4]! & 0xfdff) === 0) return false
  return !REFUSED_V6.some((range) => address.match(range))
}
