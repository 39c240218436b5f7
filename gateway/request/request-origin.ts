/**
 * The service's own origin to which a request was sent, for the `htu` check of DPoP proofs (RFC 9449 section 4.3,
 * check 9). It is never an arbitrary Host value: another server that received a token and a proof could replay
 * both here with its own host name.
 */
import type { ClientAddresses } from './client-address.js'
import type { HttpExchange } from '../http-exchange.js'
import { isHostOf, withoutPort } from './hosts.js'

export type RequestOrigin = (
  exchange: Pick<HttpExchange, 'host' | 'secure' | 'headers' | 'peerAddress'>,
) => string

export type RequestOriginOptions = {
  /** The issuer URL. */
  readonly issuer: URL
  /** `server.base_domain`: hosts of tenants have one label in front of it. */
  readonly baseDomain: string
  /** `server.allowed_hosts`: further hosts of the service. */
  readonly allowedHosts: readonly string[]
  /** `server.port`. */
  readonly port: number
  readonly addresses: ClientAddresses
}

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])

/**
 * Returns the origin of the issuer, a tenant host or a listed host. Without `allowed_hosts`, which production
 * requires, also of a loopback name with the service's own port. For any other Host it returns the issuer's origin.
 */
export function requestOrigin(options: RequestOriginOptions): RequestOrigin {
  const { issuer, allowedHosts, port, addresses } = options
  const listed = new Set(allowedHosts.map((host) => host.toLowerCase()))
  const suffix = `.${options.baseDomain.toLowerCase()}`
  const ownPorts = new Set([issuer.port, String(port)])

  function isTenantHost(name: string): boolean {
    return name.endsWith(suffix) && !name.slice(0, -suffix.length).includes('.')
  }

  /** The host if it is one of the service, otherwise null. A tenant host with another port gets the issuer's port. */
  function ownHost(host: string): string | null {
    const name = withoutPort(host)
    if (listed.has(host) || listed.has(name)) return host
    const ownPort = ownPorts.has(portOf(host, issuer.protocol))
    if (isTenantHost(name)) {
      if (ownPort) return host
      return issuer.port === '' ? name : `${name}:${issuer.port}`
    }
    return listed.size === 0 && LOOPBACK.has(name) && ownPort ? host : null
  }

  return (exchange) => {
    if (isHostOf(exchange.host, issuer)) return issuer.origin
    const host = ownHost(exchange.host)
    if (host === null) return issuer.origin
    return `${schemeOf(exchange, addresses, isTenantHost(withoutPort(host)) ? issuer : null)}://${host}`
  }
}

/** The port in URL form: empty for the default port of the scheme. */
function portOf(host: string, protocol: string): string {
  const address = `${protocol}//${host}`
  return URL.canParse(address) ? new URL(address).port : ''
}

/** The client's scheme: from TLS, from a trusted proxy, or from the issuer. */
function schemeOf(
  { secure, headers, peerAddress }: Parameters<RequestOrigin>[0],
  addresses: ClientAddresses,
  issuer: URL | null,
): string {
  if (secure) return 'https'
  const forwarded = headers.get('x-forwarded-proto')?.trim().toLowerCase()
  if ((forwarded === 'https' || forwarded === 'http') && addresses.trusts(peerAddress))
    return forwarded
  return issuer === null ? 'http' : issuer.protocol.slice(0, -1)
}
