/** Opens the transport that the settings and the machine allow. */
import type { Clock } from '../runtime/kernel/clock.js'
import type { Logger } from '../runtime/kernel/log.js'
import type { HttpExchangeHandler } from './http-exchange.js'
import type { ServerSettings } from './settings.js'
import type { ConnectionBounds } from './transports/bounds.js'
import { createHttp1OverTls, openHttp1 } from './transports/http1.js'
import { openHttp2 } from './transports/http2.js'
import { loadNative, PINNED_NATIVE_SHA256 } from './transports/native.js'
import { IDLE_MS, ListenFailed, type Listener } from './transports/open.js'
import { openUws } from './transports/uws.js'

export type ListenNeeds = {
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

/** A renewed certificate is used within this time. */
const RENEWAL_EVERY_MS = 60_000

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}

type Where = Pick<
  ServerSettings,
  'host' | 'port' | 'transport' | 'http1_parser' | 'tls' | 'drain_secs' | 'keep_alive_secs'
>

/** @throws {ListenFailed} */
export async function listen(
  { host, port, transport, http1_parser, tls, drain_secs, keep_alive_secs }: Where,
  handler: HttpExchangeHandler,
  { log, clock, pins = PINNED_NATIVE_SHA256, isShared, unreadMs, bounds }: ListenNeeds,
): Promise<Listener> {
  const lingerMs = drain_secs * 1000
  const idleMs = keep_alive_secs * 1000
  const options = { host, port, handler, isShared, unreadMs, idleMs, lingerMs, bounds }
  if (transport !== 'plain_http') {
    if (tls === undefined) throw new ListenFailed(`${transport} needs [server.tls]`)
    const files = { certPath: tls.cert_pem_path, keyPath: tls.key_pem_path }
    const monotonicMs = () => clock.monotonicMs()
    const renewal = { log, everyMs: RENEWAL_EVERY_MS }
    const http1 =
      transport === 'tls'
        ? createHttp1OverTls({ handler, unreadMs, idleMs, lingerMs, bounds })
        : undefined
    return openHttp2({ ...options, tls: files, http1, monotonicMs, renewal })
  }
  if (http1_parser === 'node') return openHttp1(options)
  const native = loadNative(pins)
  if (native.tag === 'loaded') {
    if (!isLoopback(host)) {
      log.warn(
        { host },
        'server.http1_parser is uwebsockets on an address that is not loopback: it answers 505 to a request line that the network cuts in two; use "node" unless a proxy on this machine sends the requests',
      )
    }
    if (idleMs !== IDLE_MS)
      log.warn(
        'server.keep_alive_secs has no effect: uWebSockets closes idle connections after 10 s',
      )
    return openUws(native.uws, options)
  }
  log.warn(
    { reason: native.reason },
    'uWebSockets is not available: plain_http is served by node:http, which is slower',
  )
  return openHttp1(options)
}
