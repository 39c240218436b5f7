/** Opens the transport that the settings and the machine allow. */
import type { Clock } from '../runtime/kernel/clock.js'
import type { Logger } from '../runtime/kernel/log.js'
import type { HttpExchangeHandler } from './http-exchange.js'
import type { ServerSettings } from './settings.js'
import type { ConnectionBounds } from './transports/bounds.js'
import type { CertificateFiles } from './transports/certificate.js'
import { createHttp1OverTls, openHttp1 } from './transports/http1.js'
import { openHttp2 } from './transports/http2.js'
import { loadNative, PINNED_NATIVE_SHA256, type Uws } from './transports/native.js'
import { IDLE_MS, ListenFailed, type Listener } from './transports/open.js'
import { isLoopback, wantedParser } from './transports/parser.js'
import { openUws } from './transports/uws-listener.js'

type ListenNeeds = {
  readonly log: Logger
  readonly clock: Clock
  /** For tests: another table refuses the native binary. */
  readonly pins?: Readonly<Record<string, string>> | undefined
  /** Other threads of the process listen on the port too. */
  readonly isShared?: boolean | undefined
  /** For tests: time that a client may leave its answer unread. */
  readonly unreadMs?: number | undefined
  readonly bounds?: ConnectionBounds | undefined
}

/** Within five seconds a renewed certificate is used. */
const RENEWAL_EVERY_MS = 4_000

type Where = Pick<
  ServerSettings,
  'host' | 'port' | 'transport' | 'http1_parser' | 'tls' | 'drain_secs' | 'keep_alive_secs'
>

/** @throws {ListenFailed} */
export async function listen(
  where: Where,
  handler: HttpExchangeHandler,
  { log, clock, pins = PINNED_NATIVE_SHA256, isShared, unreadMs, bounds }: ListenNeeds,
): Promise<Listener> {
  const { host, port, transport, drain_secs, keep_alive_secs } = where
  const lingerMs = drain_secs * 1000
  const idleMs = keep_alive_secs * 1000
  const options = { host, port, handler, isShared, unreadMs, idleMs, lingerMs, bounds }
  const files = certificateOf(where)
  const renewal = { log, everyMs: RENEWAL_EVERY_MS }
  const uws = nativeFor(where, log, pins)
  if (uws !== undefined) {
    return openUws(uws, { ...options, tls: files === undefined ? files : { files, renewal } })
  }
  if (files === undefined) return openHttp1(options)
  return openHttp2({
    ...options,
    tls: files,
    offersHttp2: transport !== 'tls_http1',
    http1: transport === 'tls_h2_only' ? undefined : createHttp1OverTls(options),
    monotonicMs: () => clock.monotonicMs(),
    renewal,
  })
}

function certificateOf({ transport, tls }: Where): CertificateFiles | undefined {
  if (transport === 'plain_http') return undefined
  if (tls === undefined) throw new ListenFailed(`${transport} needs [server.tls]`)
  return { certPath: tls.cert_pem_path, keyPath: tls.key_pem_path }
}

/** The library, where it is to serve and loads here. */
function nativeFor(
  where: Where,
  log: Logger,
  pins: Readonly<Record<string, string>>,
): Uws | undefined {
  const { host, transport, keep_alive_secs } = where
  if (wantedParser(where) !== 'uwebsockets') return undefined
  const native = loadNative(pins)
  if (native.tag === 'refused') {
    const { reason } = native
    log.warn({ reason }, 'uWebSockets is not available: node:http serves, which is slower')
    return undefined
  }
  if (transport === 'plain_http' && !isLoopback(host)) {
    log.warn(
      { host },
      'server.http1_parser is uwebsockets on an address that is not loopback: it answers 505 to a request line that the network cuts in two; use "node" unless a proxy on this machine sends the requests',
    )
  }
  if (keep_alive_secs * 1000 !== IDLE_MS) {
    log.warn('server.keep_alive_secs has no effect: uWebSockets closes idle connections after 10 s')
  }
  return native.uws
}
