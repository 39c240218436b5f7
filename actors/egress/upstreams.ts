/** Connections to upstreams, pooled by origin and bounded in number. */
import { Pool } from 'undici'
import type { Connector } from './dialer.js'

/** Origins that keep connections open; the least recently used one is closed beyond it. */
const ORIGINS_MAX = 256
const CONNECTIONS_PER_ORIGIN_MAX = 128
const KEEP_ALIVE_MS = 10_000
const HEADER_BYTES_MAX = 64 * 1024

export interface Upstreams {
  /** The pool of `https://host:port`; made when there is none. */
  of(origin: string): Pool
  readonly size: number
  /** Lets running relays end. */
  close(): Promise<void>
  /** Breaks running relays off. */
  destroy(): Promise<void>
}

export function createUpstreams(connect: Connector, originsMax = ORIGINS_MAX): Upstreams {
  const pools = new Map<string, Pool>()

  function open(origin: string): Pool {
    const pool = new Pool(origin, {
      connect,
      connections: CONNECTIONS_PER_ORIGIN_MAX,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: HEADER_BYTES_MAX,
      // The relay has its own clocks for both.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    pools.set(origin, pool)
    if (pools.size > originsMax) {
      const [oldest, unused] = pools.entries().next().value!
      pools.delete(oldest)
      void unused.close()
    }
    return pool
  }

  return {
    of(origin) {
      const pool = pools.get(origin)
      if (pool === undefined) return open(origin)
      pools.delete(origin)
      pools.set(origin, pool)
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
