/** HTTP/1.1 on uWebSockets.js: `server.transport` is `plain_http`, or `tls_http1` with TLS. */
import { type AddressInfo, createServer } from 'node:net'
import { isMainThread } from 'node:worker_threads'
import type { HttpRequest, HttpResponse, us_listen_socket } from 'uWebSockets.js'
import { admitHead, HeadCheck } from '../request/request-smuggling-guard.js'
import { UNREAD_MS_MAX } from '../response/relay.js'
import { ConnectionBounds } from './bounds.js'
import {
  type CertificateFiles,
  readCertificate,
  type Renewal,
  TLS12_SUITES,
  watchCertificate,
} from './certificate.js'
import type { Uws } from './native.js'
import {
  ListenFailed,
  type ListenOptions,
  type Listener,
  NATIVE_KEEP_ALIVE_SECS,
  OpenExchanges,
  urlOf,
} from './open.js'
import { PeerNames, type Shared, UwsExchange } from './uws.js'

/** SO_REUSEPORT: the threads of a process, and the apps of two certificates, share the port. */
const LISTEN_SHARED_PORT = 0

/** The native overload with host and options, which the type definitions lack. */
type ListenOnHost = (
  host: string,
  port: number,
  options: number,
  listening: (token: us_listen_socket | false) => void,
) => void

type UwsOptions = ListenOptions & {
  /** Undefined without TLS. */
  readonly tls?: { readonly files: CertificateFiles; readonly renewal: Renewal } | undefined
}

/** @throws {ListenFailed} */
export async function openUws(uws: Uws, options: UwsOptions): Promise<Listener> {
  const { host, port, tls, unreadMs = UNREAD_MS_MAX, lingerMs = 0 } = options
  const { bounds = new ConnectionBounds() } = options
  const shared: Shared = {
    draining: false,
    open: new OpenExchanges(),
    secure: tls !== undefined,
    peers: new PeerNames(),
    unreadMs,
    bounds,
  }
  const connected = new OpenExchanges()
  const pair = tls === undefined ? undefined : readCertificate(tls.files)
  // A thread follows the main thread, which has claimed the port.
  const bound = isMainThread ? await claimedPort(host, port) : port
  let app = await openApp(uws, options, shared, connected, bound)
  /** An app with an earlier certificate keeps its connections. */
  const apps = new Set([app])
  const renew = async () => {
    const before = app
    app = await openApp(uws, options, shared, connected, bound)
    apps.add(app)
    uws.us_listen_socket_close(before.socket)
    before.retire(() => {
      apps.delete(before)
      before.close()
    })
  }
  const unwatch =
    tls === undefined || pair === undefined
      ? () => undefined
      : watchCertificate(tls.files, pair, tls.renewal, renew)
  const closeAll = () => {
    for (const { close } of apps) close()
  }
  // Node aborts the process when a thread ends with open native handles.
  if (!isMainThread) process.prependOnceListener('exit', closeAll)

  return {
    url: urlOf(tls === undefined ? 'http' : 'https', host, bound),
    port: bound,
    transport: tls === undefined ? 'uws' : 'uws_tls',
    parser: 'uwebsockets',
    keepAliveSecs: NATIVE_KEEP_ALIVE_SECS,
    async drain(deadlineMs) {
      const from = performance.now()
      unwatch()
      if (!shared.draining) {
        shared.draining = true
        uws.us_listen_socket_close(app.socket)
        if (lingerMs > 0) await connected.none(Math.min(lingerMs, deadlineMs))
      }
      return shared.open.none(deadlineMs - (performance.now() - from))
    },
    async close() {
      unwatch()
      shared.draining = true
      process.off('exit', closeAll)
      closeAll()
    },
  }
}

type App = {
  readonly socket: us_listen_socket
  /** Calls back when its last connection has ended. */
  retire(ended: () => void): void
  close(): void
}

/** @throws {ListenFailed} if another process has the port. The native listener would share it, and get half of the requests. */
async function claimedPort(host: string, port: number): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', ({ message }) =>
      reject(new ListenFailed(`cannot listen on ${host} port ${port}: ${message}`)),
    )
    server.listen({ host, port, exclusive: true }, resolve)
  })
  const claimed = (server.address() as AddressInfo).port
  await new Promise((resolve) => server.close(resolve))
  return claimed
}

/** An app that listens. The native side reads a certificate once, so a renewed one needs another app. */
function openApp(
  uws: Uws,
  { host, handler, tls }: UwsOptions,
  shared: Shared,
  connected: OpenExchanges,
  port: number,
): Promise<App> {
  const app =
    tls === undefined
      ? uws.App()
      : uws.SSLApp({
          cert_file_name: tls.files.certPath,
          key_file_name: tls.files.keyPath,
          ssl_ciphers: TLS12_SUITES.join(':'),
        })
  let open = 0
  let ended: (() => void) | undefined
  app.filter((_, count) => {
    open += Number(count) > 0 ? 1 : -1
    if (Number(count) > 0) connected.begin()
    else connected.finish()
    // Not while the native side still handles the last one.
    if (open === 0 && ended !== undefined) setImmediate(ended)
  })
  const retire = (whenEnded: () => void) => {
    ended = whenEnded
    if (open === 0) setImmediate(whenEnded)
  }
  app.any('/*', (res: HttpResponse, req: HttpRequest) => {
    // The native request is invalid when this returns, so its head is copied.
    const headers = new HeadCheck()
    req.forEach((name, value) => headers.add(name, value))
    const target = { path: req.getUrl(), query: req.getQuery() ?? '', authority: null }
    const head = admitHead(headers, req.getCaseSensitiveMethod(), target)
    // No answer: after an answer the parser would read the rest of the buffer as another request.
    if (head.fault === 'ambiguous') res.close()
    else handler(new UwsExchange(res, shared, head))
  })
  return new Promise((resolve, reject) => {
    const listen = app.listen.bind(app) as unknown as ListenOnHost
    listen(host, port, LISTEN_SHARED_PORT, (token) => {
      if (token !== false) resolve({ socket: token, retire, close: () => app.close() })
      else reject(new ListenFailed(`cannot listen on ${host} port ${port}`))
    })
  })
}
