/**
 * Connection pools per origin and owner, limited in number. Uses HTTP/2 if the upstream offers it, else
 * HTTP/1.1 with keep-alive.
 */
import type { TLSSocket } from 'node:tls'
import { Client, type Dispatcher, Pool } from 'undici'
import { tracing } from '../../../runtime/kernel/tracing.js'
import { traceDispatch } from './traced-dispatch.js'
import type { Connector } from './dialer.js'
import { skipContinue } from '../undici/expect-continue.js'
import { fixHttp2 } from '../undici/http2-fixes.js'
import { shareReads, SharedRead } from './shared-read-buffer.js'

/** Limit of pools. Beyond it, the tenant with the most pools loses the one that it used least recently. */
const POOLS_MAX = 256
const CONNECTIONS_PER_POOL_MAX = 128
const KEEP_ALIVE_MS = 10_000
const HEADER_BYTES_MAX = 64 * 1024

export interface Upstreams {
  /**
   * The pool of `https://host:port` for one owner, created if necessary.
   * @param tenantId the tenant for name look-ups; constant per owner.
   */
  of(origin: string, owner?: string, tenantId?: string): Pool
  readonly size: number
  /** Waits for running requests. */
  close(): Promise<void>
  /** Aborts running requests. */
  destroy(): Promise<void>
}

/** A request that uses the shared read buffer; it gets the read state of its connection. */
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

/** With tracing on, a request is a span, and its `traceparent` is passed on. */
class TracedPool extends Pool {
  readonly tenantId: string

  constructor(origin: string, tenantId: string, options: Pool.Options) {
    super(origin, options)
    this.tenantId = tenantId
  }

  override dispatch(
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
  ): boolean {
    if (tracing === undefined) return super.dispatch(options, handler)
    const traced = traceDispatch(tracing, options, handler)
    return super.dispatch(traced.options, traced.handler)
  }
}

/** A client with one request at a time for HTTP/1.1 and concurrent requests for HTTP/2. */
function clientOf(url: URL, options: object, connect: Connector): Dispatcher {
  const client: SharedReadClient = new SharedReadClient(url, {
    ...options,
    connect: (target, callback) =>
      connect(target, (...[error, socket]) => {
        if (error !== null) return callback(error, null)
        // `fixHttp2` sets the number of concurrent requests.
        if ((socket as TLSSocket).alpnProtocol === 'h2') return callback(null, socket)
        shareReads(socket, client.sharedRead)
        callback(null, socket)
        // The previous connection may have been HTTP/2.
        setImmediate(() => {
          if (!client.destroyed) client.pipelining = 1
        })
      }),
  })
  return client
}

type UpstreamOptions = {
  /** Needs a connector that offers `h2`. */
  readonly http2?: boolean | undefined
}

export function createUpstreams(
  dial: Connector,
  poolsMax = POOLS_MAX,
  { http2 = false }: UpstreamOptions = {},
): Upstreams {
  const pools = new Map<string, TracedPool>()
  /** Key of the last used pool. */
  let latest = ''

  function open(key: string, origin: string, tenantId: string): TracedPool {
    const connect: Connector = (target, callback) => dial({ ...target, tenantId }, callback)
    const pool = new TracedPool(origin, tenantId, {
      connect,
      connections: CONNECTIONS_PER_POOL_MAX,
      pipelining: 1,
      ...(http2
        ? { allowH2: true, factory: (url, options) => clientOf(url, options, connect) }
        : {}),
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: HEADER_BYTES_MAX,
      // The relay has its own timeouts.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    pool.on('connect', (_, [, client]) => {
      skipContinue(client as Client)
      fixHttp2(pool, client as Client)
    })
    pools.set(key, pool)
    if (pools.size > poolsMax) closeOne()
    return pool
  }

  /** Tenants name as many origins as they want, so a tenant with many loses its own pools. */
  function closeOne(): void {
    const countOf = new Map<string, number>()
    for (const { tenantId } of pools.values())
      countOf.set(tenantId, (countOf.get(tenantId) ?? 0) + 1)
    const most = Math.max(...countOf.values())
    for (const [key, pool] of pools) {
      if (countOf.get(pool.tenantId) !== most) continue
      pools.delete(key)
      void pool.close()
      return
    }
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
