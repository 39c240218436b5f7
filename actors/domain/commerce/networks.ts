/** Networks in CIDR notation: the `source-address` option of SSH certificates, and addresses that callers may have. */
import ipaddr from 'ipaddr.js'

const SOURCES_MAX = 32

type Network = readonly [address: ipaddr.IPv4 | ipaddr.IPv6, prefix: number]

export function isNetwork(text: string): boolean {
  return parseNetwork(text) !== undefined
}

/** True if `outer` contains `inner`. Both must be valid networks. */
export function networkContains(outer: string, inner: string): boolean {
  const [network, networkBits] = parseNetwork(outer)!
  const [address, bits] = parseNetwork(inner)!
  if (network.kind() !== address.kind() || bits < networkBits) return false
  return (address as ipaddr.IPv4).match(network as ipaddr.IPv4, networkBits)
}

/** `source_addresses` in the metadata of an SSH authority. Empty without any, undefined if they are invalid. */
export function metadataSources(
  metadata: Readonly<Record<string, unknown>>,
): readonly string[] | undefined {
  const sources = metadata['source_addresses']
  if (sources === undefined) return []
  if (!Array.isArray(sources) || sources.length === 0 || sources.length > SOURCES_MAX)
    return undefined
  const sound = sources.every((source) => typeof source === 'string' && isNetwork(source))
  return sound ? (sources as string[]) : undefined
}

/** Parses a network. Host bits must be zero, otherwise sshd refuses the certificate. */
function parseNetwork(text: string): Network | undefined {
  if (!/^[0-9a-fA-F.:]{1,45}\/[0-9]{1,3}$/.test(text)) return undefined
  try {
    const [address, prefix] = ipaddr.parseCIDR(text)
    const kind = address.kind() === 'ipv4' ? ipaddr.IPv4 : ipaddr.IPv6
    const network = kind.networkAddressFromCIDR(text)
    return network.toString() === address.toString() ? [address, prefix] : undefined
  } catch {
    return undefined
  }
}

/** True if the address lies in one of the networks, which must be valid. An IPv4-mapped address counts as IPv4. */
export function isAddressWithin(address: string, networks: readonly string[]): boolean {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  const single = `${parsed.toString()}/${parsed.kind() === 'ipv4' ? 32 : 128}`
  return networks.some((network) => networkContains(network, single))
}
