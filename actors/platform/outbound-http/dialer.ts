/**
 * Connects to upstreams on the public internet only, and not to this service itself. undici does not
 * call `lookup` for IP literals, so there are three checks: the name or literal before connecting, every
 * resolved address, and the peer address once connected. A name is resolved once and the checked address
 * is the one that is dialled, which prevents DNS rebinding. With `[proxy]` the checked address is what the proxy
 * connects to; the peer is the proxy then, and is not checked.
 */
import { lookup as resolve, type LookupAddress } from 'node:dns'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import { createSecureContext } from 'node:tls'
import { buildConnector } from 'undici'
import { isPublicAddress } from './addresses.js'
import { ConnectTurns } from './connect-turns.js'
import { SHARED_READS } from './shared-read-buffer.js'
import { deferEof } from './deferred-eof.js'
import { networkInterfaces } from 'node:os'
import type { ProxySettings } from './proxy-settings.js'
import { tunnelsOf, type Tunnels } from './tunnels.js'

/** Opens a connection to an origin. */
export type Connector = (target: DialTarget, callback: buildConnector.Callback) => void

/** `tenantId`: the tenant whose share of name look-ups is used; default none. */
type DialTarget = buildConnector.Options & { readonly tenantId?: string | undefined }

export type DialerOptions = {
  /** Allows loopback, private and own addresses. Not allowed in production. */
  readonly privateNetworks: boolean
  /** Host names of this service; their subdomains belong to it too. Default none. */
  readonly ownNames?: readonly string[] | undefined
  /** Host name to address, instead of DNS; the address is still checked. */
  readonly dnsOverrides: Readonly<Record<string, string>>
  /** Trusted CA certificates in addition to the system's, PEM. */
  readonly ca?: string | readonly string[] | undefined
  readonly connectTimeoutMs?: number | undefined
  /** Offers HTTP/2 (ALPN `h2`). */
  readonly http2?: boolean | undefined
  /** Reads into the shared read buffer; only with `createUpstreams`. */
  readonly sharedReads?: boolean | undefined
  /** Default: the system resolver, for host names of the operator. For others: `createNameLookup`. */
  readonly resolve?: Resolver | undefined
  /** `[proxy]`: connects through the proxy of the operator. */
  readonly proxy?: ProxySettings | undefined
  /** True for addresses of this machine; for tests. */
  readonly isOwn?: ((address: string) => boolean) | undefined
}

/** Resolves all addresses of a name, like `dns.lookup` with `all`. */
export type Resolver = (
  hostname: string,
  done: (error: Error | null, addresses: readonly LookupAddress[]) => void,
  tenantId?: string,
) => void

const CONNECT_TIMEOUT_MS = 10_000

/** The address is not allowed; nothing was sent. */
class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
  readonly code = 'SVC_ADDRESS_REFUSED'

  constructor(hostname: string) {
    // Without the address, which would disclose internal DNS.
    super(`${hostname} has no public address`)
  }
}

export function createDialer(options: DialerOptions): Connector {
  const { privateNetworks, ca, connectTimeoutMs = CONNECT_TIMEOUT_MS } = options
  const { http2 = false, sharedReads = false } = options
  const { ownNames = [], isOwn = isOwnAddress } = options
  const overrides = new Map(Object.entries(options.dnsOverrides))
  const resolver = options.resolve ?? resolveAll
  const tunnels = tunnelsOf(options.proxy)
  const turns = new ConnectTurns()
  const isAllowed = (address: string) =>
    privateNetworks || (isPublicAddress(address) && !isOwn(address))

  // Node calls `lookup` before `connect` returns, so this is the tenant of the current connection.
  let tenantId = ''
  const lookup: LookupFunction = (hostname, { all }, done) => {
    const answer = (error: Error | null, addresses: readonly LookupAddress[]) => {
      const failure = error ?? judge(hostname, addresses, isAllowed)
      if (failure !== undefined) return done(failure, [])
      if (all === true) return done(null, [...addresses])
      done(null, addresses[0]!.address, addresses[0]!.family)
    }
    const override = overrides.get(hostname)
    if (override === undefined) return resolver(hostname, answer, tenantId)
    queueMicrotask(() => answer(null, [{ address: override, family: isIP(override) }]))
  }

  /** The checked address of a name. */
  const namedLookup = (hostname: string, tenant: string, done: FoundAddress) => {
    tenantId = tenant
    lookup(hostname, { all: false }, (error, address) => done(error, String(address)))
    tenantId = ''
  }

  let connector: buildConnector.connector | undefined
  const connect: buildConnector.connector = (target, callback) => {
    connector ??= buildConnector({
      lookup,
      timeout: connectTimeoutMs,
      allowH2: http2,
      ...(sharedReads ? { onread: SHARED_READS } : {}),
      // One for all connections. Node would make one for each, a quarter of the work of connecting.
      secureContext: createSecureContext(ca === undefined ? {} : { ca: ca as string | string[] }),
    } as buildConnector.BuildOptions)
    connector(target, callback)
  }

  return (target, callback) => {
    const literal = target.hostname.replace(/^\[|\]$/g, '')
    if (!privateNetworks && isOwnName(literal, ownNames)) {
      return callback(new AddressRefused(literal), null)
    }
    if (isIP(literal) !== 0 && !isAllowed(literal)) {
      return callback(new AddressRefused(literal), null)
    }
    if (tunnels !== undefined && !tunnels.skips(literal)) {
      const through = { tunnels, lookup: namedLookup, timeoutMs: connectTimeoutMs, connect }
      return throughProxy(target, literal, through, callback)
    }
    const begin = () => {
      tenantId = target.tenantId ?? ''
      connect(target, (...[error, socket]) => {
        if (error !== null) return callback(error, null)
        if (isAllowed(peerOf(socket))) {
          deferEof(socket)
          return callback(null, socket)
        }
        socket.destroy()
        callback(new AddressRefused(target.hostname), null)
      })
      tenantId = ''
    }
    if (target.tenantId === undefined || target.protocol !== 'https:') return begin()
    turns.begin(target.tenantId, begin)
  }
}

type FoundAddress = (error: Error | null, address: string) => void

type Through = {
  readonly tunnels: Tunnels
  readonly lookup: (hostname: string, tenantId: string, done: FoundAddress) => void
  readonly timeoutMs: number
  readonly connect: buildConnector.connector
}

/** Connects by a tunnel of the proxy, after the same checks of name and addresses. */
function throughProxy(
  target: DialTarget,
  literal: string,
  { tunnels, lookup, timeoutMs, connect }: Through,
  callback: buildConnector.Callback,
): void {
  const isTls = target.protocol === 'https:'
  const port = target.port === '' ? (isTls ? 443 : 80) : Number(target.port)
  const dial = (address: string) =>
    tunnels.open(
      tunnels.connectTo === 'name' ? literal : address,
      port,
      timeoutMs,
      (error, tunnel) => {
        if (tunnel === null) return callback(error ?? new Error('there is no tunnel'), null)
        const ready = (socket: Socket) => {
          deferEof(socket)
          callback(null, socket)
        }
        if (!isTls) return ready(tunnel)
        connect({ ...target, httpSocket: tunnel }, (...[failure, socket]) => {
          if (failure !== null) return callback(failure, null)
          ready(socket)
        })
      },
    )
  if (isIP(literal) !== 0) return dial(literal)
  lookup(literal, target.tenantId ?? '', (error, address) => {
    if (error === null) dial(address)
    else callback(error, null)
  })
}

/** One forbidden address refuses the name: a connection attempt could fall back to it. */
function judge(
  hostname: string,
  addresses: readonly LookupAddress[],
  isAllowed: (address: string) => boolean,
): Error | undefined {
  if (addresses.length === 0) {
    return Object.assign(new Error(`${hostname} has no address`), { code: 'ENOTFOUND' })
  }
  return addresses.every(({ address }) => isAllowed(address))
    ? undefined
    : new AddressRefused(hostname)
}

function peerOf(socket: Socket): string {
  return socket.remoteAddress ?? ''
}

const resolveAll: Resolver = (hostname, done) => {
  resolve(hostname, { all: true, verbatim: true }, (error, addresses) => {
    done(error, error === null ? addresses : [])
  })
}

/**
 * True if an address from a resolver or a socket belongs to this machine. Outbound requests to it are
 * refused: they would loop, with the service's own address as the client. Checked per connection, because
 * interfaces change.
 */
export function isOwnAddress(address: string): boolean {
  const candidate = plain(address)
  return Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some((own) => plain(own.address) === candidate),
  )
}

/** True for a host name of this service or a subdomain of one, such as a tenant host. */
function isOwnName(hostname: string, ownNames: readonly string[]): boolean {
  const name = hostname.toLowerCase().replace(/\.$/, '')
  return ownNames.some((own) => name === own || name.endsWith(`.${own}`))
}

/** Reduces an IPv4-mapped IPv6 address to IPv4. */
function plain(address: string): string {
  return address.toLowerCase().replace(/^::ffff:(?=[0-9.]+$)/, '')
}
