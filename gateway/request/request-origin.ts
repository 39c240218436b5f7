/**
 * The service's own origin to which a request was sent, for the `htu` check of DPoP proofs (RFC 9449 section 4.3,
 * check 9). It is never an arbitrary Host value: another server that received a token and a proof could replay
 * both here with its own host name.
 */
import { LOOPBACK_HOSTS } from '../../runtime/kernel/text/urls.js'
import type { ClientAddresses } from './client-address.js'
import type { HttpExchange } from '../http-exchange.js'
import { isHostOf, tenantHostTest, withoutPort } from './hosts.js'

export type RequestOrigin = (
  exchange: Pick<HttpExchange, 'host' | 'secure' | 'headers' | 'peerAddress'>,
) => string

type RequestOriginOptions = {
  readonly issuer: URL
  /** `server.egress_url`. */
  readonly egress: URL
  /** `server.base_domain`: hosts of tenants have one label in front of it. */
  readonly baseDomain: string
  /** `server.allowed_hosts`: further hosts of the service. */
  readonly allowedHosts: readonly string[]
  /** The port of the listener. */
  readonly port: number
  readonly addresses: ClientAddresses
}

/** Hosts whose origin is kept. A client can send any Host, so the number is bounded. */
const HOSTS_KEPT_MAX = 1_024
/** A host of the service other than the issuer's. */
type OwnHost = {
  readonly host: string
  /** Has the scheme, where nothing else says it: the issuer for hosts of tenants. */
  readonly like: URL | null
}

/**
 * Returns the origin of the issuer, the egress proxy, a tenant host or a listed host. Without `allowed_hosts`, which production
 * requires, also of a loopback name with the service's own port. For any other Host it returns the issuer's origin.
 */
export function requestOrigin(options: RequestOriginOptions): RequestOrigin {
  const { issuer, egress, allowedHosts, port, addresses } = options
  const listed = new Set(allowedHosts.map((host) => host.toLowerCase()))
  const isTenantHost = tenantHostTest(options.baseDomain)
  const ownPorts = new Set([issuer.port, String(port)])

  /** The host if it is one of the service, otherwise null. A tenant host with another port gets the issuer's port. */
  function ownHost(host: string): string | null {
    const name = withoutPort(host)
    if (listed.has(host) || listed.has(name)) return host
    const ownPort = ownPorts.has(portOf(host, issuer.protocol))
    if (isTenantHost(name)) {
      if (ownPort) return host
      return issuer.port === '' ? name : `${name}:${issuer.port}`
    }
    return listed.size === 0 && LOOPBACK_HOSTS.has(name) && ownPort ? host : null
  }

  const { origin } = issuer
  const kept = new Map<string, OwnHost | null>()
  /** Null for the host of the issuer, and for a host of another service. */
  function otherHost(host: string): OwnHost | null {
    const known = kept.get(host)
    if (known !== undefined) return known
    const found = isHostOf(host, issuer) ? null : foundHost(host)
    if (kept.size >= HOSTS_KEPT_MAX) kept.clear()
    kept.set(host, found)
    return found
  }

  function foundHost(host: string): OwnHost | null {
    if (isHostOf(host, egress)) return { host: egress.host, like: egress }
    const own = ownHost(host)
    if (own === null) return null
    return { host: own, like: isTenantHost(withoutPort(own)) ? issuer : null }
  }

  return (exchange) => {
    const other = otherHost(exchange.host)
    if (other === null) return origin
    return `${schemeOf(exchange, addresses, other.like)}://${other.host}`
  }
}

/** The port in URL form: empty for the default port of the scheme. */
function portOf(host: string, protocol: string): string {
  const address = `${protocol}//${host}`
  return URL.canParse(address) ? new URL(address).port : ''
}

/** The client's scheme: from TLS, from a trusted proxy, or from the URL that has the host. */
function schemeOf(
  { secure, headers, peerAddress }: Parameters<RequestOrigin>[0],
  addresses: ClientAddresses,
  like: URL | null,
): string {
  if (secure) return 'https'
  const forwarded = headers.get('x-forwarded-proto')?.trim().toLowerCase()
  if ((forwarded === 'https' || forwarded === 'http') && addresses.trusts(peerAddress))
    return forwarded
  return like === null ? 'http' : like.protocol.slice(0, -1)
}
