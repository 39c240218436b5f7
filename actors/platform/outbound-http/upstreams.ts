/**
 * Connections to upstreams, pooled by origin and by whose they are, and bounded in number. HTTP/2 is
 * spoken where the upstream offers it; otherwise connections are kept alive and used in turn.
 */
import type { TLSSocket } from 'node:tls'
import { Client, type Dispatcher, Pool } from 'undici'
import type { Connector } from './dialer.js'
import { fixHttp2 } from './undici-http2-fixes.js'
import { shareReads, SharedRead } from './shared-read-buffer.js'

/** Pools that keep connections open; the least recently used one is closed beyond it. */
const POOLS_MAX = 256
const CONNECTIONS_PER_POOL_MAX = 128
const KEEP_ALIVE_MS = 10_000
const HEADER_BYTES_MAX = 64 * 1024

export interface Upstreams {
  /**
   * The pool of `https://host:port` for one owner; made when there is none.
   * @param tenantId for whom the name is looked up; the same for each call with that owner.
   */
  of(origin: string, owner?: string, tenantId?: string): Pool
  readonly size: number
  /** Lets running relays end. */
  close(): Promise<void>
  /** Breaks running relays off. */
  destroy(): Promise<void>
}

/** A request that wants to know what it may tell of the connection it is given. */
export type SharedReadDispatch = Dispatcher.DispatchOptions & {
  readonly onSharedRead?: ((sharedRead: SharedRead) => void) | undefined
}

class SharedReadClient extends Client {
  readonly sharedRead = new SharedRead()

  override dispatch(options: SharedReadDispatch, handler: Dispatcher.DispatchHandler): boolean {
    options.onSharedRead?.(this.sharedRead)
    return super.dispatch(options, handler)
  }
}

/**
 * A connection that takes one request at a time, until its upstream turns out to speak HTTP/2: there
 * many go side by side.
 */
function clientOf(url: URL, options: object, connect: Connector): Dispatcher {
  const client: SharedReadClient = new SharedReadClient(url, {
    ...options,
    connect: (target, callback) =>
      connect(target, (...[error, socket]) => {
        if (error !== null) return callback(error, null)
        // How many it takes at once is for `fixHttp2` to say.
        if ((socket as TLSSocket).alpnProtocol === 'h2') return callback(null, socket)
        shareReads(socket, client.sharedRead)
        callback(null, socket)
        // It may have spoken HTTP/2 before.
        setImmediate(() => {
          if (!client.destroyed) client.pipelining = 1
        })
      }),
  })
  return client
}

export type UpstreamOptions = {
  /** The connector must offer `h2` for it to be spoken. */
  readonly http2?: boolean | undefined
}

export function createUpstreams(
  dial: Connector,
  poolsMax = POOLS_MAX,
  { http2 = false }: UpstreamOptions = {},
): Upstreams {
  const pools = new Map<string, Pool>()
  /** Where the last request went. */
  let latest = ''

  function open(key: string, origin: string, tenantId: string): Pool {
    const connect: Connector = (target, callback) => dial({ ...target, tenantId }, callback)
    const pool = new Pool(origin, {
      connect,
      connections: CONNECTIONS_PER_POOL_MAX,
      pipelining: 1,
      ...(http2
        ? { allowH2: true, factory: (url, options) => clientOf(url, options, connect) }
        : {}),
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: HEADER_BYTES_MAX,
      // The relay has its own clocks for both.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    pool.on('connect', (_, [, client]) => fixHttp2(pool, client as Client))
    pools.set(key, pool)
    if (pools.size > poolsMax) {
      const [oldest, unused] = pools.entries().next().value!
      pools.delete(oldest)
      void unused.close()
    }
    return pool
  }

  return {
    of(origin, owner = '', tenantId = '') {
      const key = `${owner} ${origin}`
      let pool = pools.get(key)
      if (pool === undefined) pool = open(key, origin, tenantId)
      else if (key !== latest) {
        pools.delete(key)
        pools.set(key, pool)
      }
      latest = key
      return pool
    },
    get size() {
      return pools.size
    },
    async close() {
      await Promise.all([...pools.values()].map((pool) => pool.close()))
      pools.clear()
    },
    async destroy() {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()))
      pools.clear()
    },
  }
}
