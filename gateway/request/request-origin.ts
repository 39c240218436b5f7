/**
 * The origin that a request was sent to, as far as it is one of ours. A DPoP proof is compared with it
 * (RFC 9449 section 4.3, check 9), so that it never comes from an arbitrary Host: another server that
 * was shown a token and a proof for itself could replay both here under its own name.
 */
import type { ClientAddresses } from './client-address.js'
import type { HttpExchange } from '../http-exchange.js'
import { isHostOf, withoutPort } from './hosts.js'

export type RequestOrigin = (
  exchange: Pick<HttpExchange, 'host' | 'secure' | 'headers' | 'peerAddress'>,
) => string

export type RequestOriginOptions = {
  /** Public origin of the service. */
  readonly issuer: URL
  /** `server.base_domain`: tenants answer one label below it. */
  readonly baseDomain: string
  /** `server.allowed_hosts`: further names that the operator gave the service. */
  readonly allowedHosts: readonly string[]
  /** `server.port`. */
  readonly port: number
  readonly addresses: ClientAddresses
}

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])

/**
 * Returns the issuer's origin, that of a tenant host, of a listed host, or (without `allowed_hosts`,
 * which production demands) of a loopback name with the service's own port. Any other Host stands for
 * the issuer's origin: the client computed its proof from the address that it knows.
 */
export function requestOrigin(options: RequestOriginOptions): RequestOrigin {
  const { issuer, allowedHosts, port, addresses } = options
  const listed = new Set(allowedHosts.map((host) => host.toLowerCase()))
  const suffix = `.${options.baseDomain.toLowerCase()}`
  const ownPorts = new Set([issuer.port, String(port)])

  function isTenantHost(name: string): boolean {
    return name.endsWith(suffix) && !name.slice(0, -suffix.length).includes('.')
  }

  /** Ours by its name and its port; of a tenant's name with a foreign port, with the issuer's port. */
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

/** The port as URLs have it: empty where it is the default one of the scheme. */
function portOf(host: string, protocol: string): string {
  const address = `${protocol}//${host}`
  return URL.canParse(address) ? new URL(address).port : ''
}

/** The scheme that the client used: our own TLS, what a trusted proxy says, or that of the issuer. */
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
