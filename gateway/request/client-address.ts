/** The client's address behind trusted proxies (docs/reference/http.md, Hosts and proxies). */
import ipaddr from 'ipaddr.js'
import { quotaAddress } from '../../actors/domain/quota-address.js'

type Range = [ipaddr.IPv4 | ipaddr.IPv6, number]

export interface ClientAddresses {
  /** The right-most hop that is not a trusted proxy. The peer, if it is not a trusted proxy. */
  clientOf(peer: string, forwardedFor: string | undefined): string
  /** True if the X-Forwarded-* fields of the peer are trusted. */
  trusts(peer: string): boolean
  /** What a registration from this address is counted by. Null for addresses that say nothing: loopback, trusted proxies. */
  networkOf(client: string): string | null
}

const VERDICTS_KEPT_MAX = 1_024

/** Tests whether an address is one of these addresses, or lies in one of these networks. None: never. */
export function addressTest(listed: readonly string[]): (address: string) => boolean {
  const ranges = listed.map(rangeOf)
  const kept = new Map<string, boolean>()
  return (address) => {
    if (ranges.length === 0) return false
    const known = kept.get(address)
    if (known !== undefined) return known
    const verdict = isWithin(address, ranges)
    if (kept.size >= VERDICTS_KEPT_MAX) kept.clear()
    kept.set(address, verdict)
    return verdict
  }
}

export function clientAddresses(trustedProxies: readonly string[]): ClientAddresses {
  const trusts = addressTest(trustedProxies)
  return {
    trusts,
    clientOf(peer, forwardedFor) {
      if (forwardedFor === undefined || !trusts(peer)) return peer
      let client = peer
      for (const hop of forwardedFor.split(',').toReversed()) {
        const address = addressIn(hop)
        // Trusted proxies write addresses. Any other value ends the trusted part.
        if (address === null) return client
        client = address
        if (!trusts(address)) return client
      }
      return client
    },
    networkOf: (client) => (isLoopback(client) || trusts(client) ? null : quotaAddress(client)),
  }
}

const isLoopback = addressTest(['127.0.0.0/8', '::1'])

function rangeOf(text: string): Range {
  return text.includes('/')
    ? (ipaddr.parseCIDR(text) as Range)
    : [ipaddr.parse(text), ipaddr.IPv4.isValid(text) ? 32 : 128]
}

function isWithin(address: string, ranges: readonly Range[]): boolean {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  return ranges.some(
    ([network, bits]) => network.kind() === parsed.kind() && parsed.match(network as never, bits),
  )
}

/** The address of one element of X-Forwarded-For, which can have brackets and a port. */
function addressIn(hop: string): string | null {
  const text = hop.trim()
  const bracketed = /^\[([0-9a-fA-F:.]+)\](?::[0-9]{1,5})?$/.exec(text)?.[1]
  const bare = bracketed ?? /^([0-9.]+)(?::[0-9]{1,5})?$/.exec(text)?.[1] ?? text
  if (!ipaddr.isValid(bare) || (!bare.includes(':') && bare.split('.').length !== 4)) return null
  return ipaddr.process(bare).toString()
}
