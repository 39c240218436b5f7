/**
 * Connects to upstreams, and to nothing that is not the public internet, nor to this service itself.
 * undici does not ask `lookup` about addresses in a URL, so there are three checks: of the name or
 * literal before connecting, of every address a name resolves to, and of the peer once connected.
 * The name is resolved once and the checked address is the one connected to, so a name that answers
 * differently the second time gains nothing.
 */
import { lookup as resolve, type LookupAddress } from 'node:dns'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import { buildConnector } from 'undici'
import { isPublicAddress } from './addresses.js'
import { SHARED_READS } from './shared-read-buffer.js'
import { isOwnAddress, isOwnName } from './self-address.js'
import { deferEof } from './deferred-eof.js'

/** How a connection to an origin is made. The egress engine is given one. */
export type Connector = (target: DialTarget, callback: buildConnector.Callback) => void

/** `tenantId`: for whom the name is looked up; default no tenant. */
export type DialTarget = buildConnector.Options & { readonly tenantId?: string | undefined }

export type DialerOptions = {
  /** Loopback, private and our own addresses as well; refused in production (decisions.md section 19). */
  readonly privateNetworks: boolean
  /** Hosts this service answers on; what is below them is ours too. Default none. */
  readonly ownNames?: readonly string[] | undefined
  /** Host name to address, instead of the resolver and before the address check. */
  readonly dnsOverrides: Readonly<Record<string, string>>
  /** Certificates trusted beside the system's, PEM. */
  readonly ca?: string | readonly string[] | undefined
  readonly connectTimeoutMs?: number | undefined
  /** Offers HTTP/2 (ALPN `h2`). */
  readonly http2?: boolean | undefined
  /** Bodies of answers are lent: for whoever reads them through `createUpstreams`. */
  readonly sharedReads?: boolean | undefined
  /** Default: that of the system, for names that the operator chose. Others: `createNameLookup`. */
  readonly resolve?: Resolver | undefined
  /** Whether an address is one of this machine's. Given by tests. */
  readonly isOwn?: ((address: string) => boolean) | undefined
}

/** Finds all addresses of a name, as `dns.lookup` does with `all`. */
export type Resolver = (
  hostname: string,
  done: (error: Error | null, addresses: readonly LookupAddress[]) => void,
  tenantId?: string,
) => void

const CONNECT_TIMEOUT_MS = 10_000

/** Thrown into the relay when an address is not allowed; nothing was connected or sent. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
  readonly code = 'SVC_ADDRESS_REFUSED'

  constructor(hostname: string) {
    // Not the address: what a name means inside our network is nobody's business.
    super(`${hostname} is not on the public internet`)
  }
}

export function createDialer(options: DialerOptions): Connector {
  const { privateNetworks, ca, connectTimeoutMs = CONNECT_TIMEOUT_MS } = options
  const { http2 = false, sharedReads = false } = options
  const { ownNames = [], isOwn = isOwnAddress } = options
  const overrides = new Map(Object.entries(options.dnsOverrides))
  const resolver = options.resolve ?? resolveAll
  const isAllowed = (address: string) =>
    privateNetworks || (isPublicAddress(address) && !isOwn(address))

  // Node looks a name up before `connect` returns, so this is the tenant of the connection that is being made.
  let tenantId = ''
  const lookup: LookupFunction = (hostname, { all }, done) => {
    const answer = (error: Error | null, addresses: readonly LookupAddress[]) => {
      const failure = error ?? judge(hostname, addresses, isAllowed)
      if (failure !== null) return done(failure, [])
      if (all === true) return done(null, [...addresses])
      done(null, addresses[0]!.address, addresses[0]!.family)
    }
    const override = overrides.get(hostname)
    if (override === undefined) return resolver(hostname, answer, tenantId)
    queueMicrotask(() => answer(null, [{ address: override, family: isIP(override) }]))
  }

  const connect = buildConnector({
    lookup,
    timeout: connectTimeoutMs,
    allowH2: http2,
    ...(sharedReads ? { onread: SHARED_READS } : {}),
    ...(ca === undefined ? {} : { ca: ca as string | string[] }),
  } as buildConnector.BuildOptions)

  return (target, callback) => {
    const literal = target.hostname.replace(/^\[|\]$/g, '')
    if (!privateNetworks && isOwnName(literal, ownNames)) {
      return callback(new AddressRefused(literal), null)
    }
    if (isIP(literal) !== 0 && !isAllowed(literal)) {
      return callback(new AddressRefused(literal), null)
    }
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
}

/** One address that is not allowed spoils the name: otherwise the answer could be retried into it. */
function judge(
  hostname: string,
  addresses: readonly LookupAddress[],
  isAllowed: (address: string) => boolean,
): Error | null {
  if (addresses.length === 0) {
    return Object.assign(new Error(`${hostname} has no address`), { code: 'ENOTFOUND' })
  }
  return addresses.every(({ address }) => isAllowed(address)) ? null : new AddressRefused(hostname)
}

function peerOf(socket: Socket): string {
  return socket.remoteAddress ?? ''
}

const resolveAll: Resolver = (hostname, done) => {
  resolve(hostname, { all: true, verbatim: true }, (error, addresses) => {
    done(error, error === null ? addresses : [])
  })
}
