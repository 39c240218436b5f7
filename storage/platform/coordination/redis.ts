/** Coordination in Redis: each operation is one command or script, and so atomic. */
import { randomBytes } from 'node:crypto'
import { createClientPool, ErrorReply, RESP_TYPES } from 'redis'
import type { Logger } from '../../../runtime/kernel/log.js'
import { Circuit, within } from './circuit.js'
import {
  checkLifetime,
  type Coordination,
  CoordinationUnavailable,
  storedKey,
  taken,
} from './port.js'

export interface RedisOptions {
  readonly url: string
  readonly poolSize: number
  readonly log: Logger
}

const BACKEND = 'redis'
const CONNECT_TIMEOUT_MS = 2_000
const COMMAND_TIMEOUT_MS = 2_000
const RECONNECT_MS_MAX = 2_000
const LOCK_TOKEN_BYTES = 16

/** Returns allowed, used, and the remaining milliseconds. */
const TAKE = `
local used = tonumber(redis.call('GET', KEYS[1]) or '0')
local cost = tonumber(ARGV[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then left = tonumber(ARGV[3]) * 1000 end
if cost > 0 and used + cost > tonumber(ARGV[2]) then return {0, used, left} end
used = math.max(0, used + cost)
redis.call('SET', KEYS[1], string.format('%.0f', used), 'PX', left)
return {1, used, left}`

const RELEASE = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`

/** Connects at once, so that a wrong URL fails at start. */
export async function redisCoordination(options: RedisOptions): Promise<Coordination> {
  const { log } = options
  let pool = await openPool(options).catch((error: unknown) => {
    throw new CoordinationUnavailable(BACKEND, error)
  })
  const circuit = new Circuit({
    backend: BACKEND,
    limitMs: COMMAND_TIMEOUT_MS,
    isAnswer: (error) => error instanceof ErrorReply,
    tearDown: () => pool.destroy(),
    probe: async () => {
      pool = await openPool(options)
    },
    log,
  })
  const ask = <T>(question: (pool: RedisPool) => Promise<T>) => circuit.run(() => question(pool))

  return {
    async take(key, window, cost = 1) {
      checkLifetime(window.windowSecs)
      const reply = await ask((pool) =>
        pool.eval(TAKE, {
          keys: [storedKey('take', key)],
          arguments: [cost, window.limit, window.windowSecs].map(String),
        }),
      )
      const [allowed, used, leftMs] = reply as unknown as [number, number, number]
      return taken(allowed === 1, used, window, leftMs / 1000)
    },

    async once(key, ttlSecs) {
      checkLifetime(ttlSecs)
      return setIfAbsent(storedKey('once', key), '1', ttlSecs)
    },

    async lock(key, ttlSecs) {
      checkLifetime(ttlSecs)
      const name = storedKey('lock', key)
      const token = randomBytes(LOCK_TOKEN_BYTES).toString('base64url')
      if (!(await setIfAbsent(name, token, ttlSecs))) return undefined
      return async () => {
        await ask((pool) => pool.eval(RELEASE, { keys: [name], arguments: [token] }))
      }
    },

    async get(key) {
      const value = await ask((pool) =>
        pool.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }).get(storedKey('value', key)),
      )
      return value === null ? undefined : (value as unknown as Uint8Array)
    },

    async put(key, value, ttlSecs) {
      checkLifetime(ttlSecs)
      const name = storedKey('value', key)
      await ask((pool) =>
        pool.set(name, Buffer.from(value), { expiration: { type: 'EX', value: ttlSecs } }),
      )
    },

    async forget(key) {
      await ask((pool) => pool.del(storedKey('value', key)))
    },

    async close() {
      circuit.close()
      pool.destroy()
    },
  }

  async function setIfAbsent(name: string, value: string, ttlSecs: number): Promise<boolean> {
    const reply = await ask((pool) =>
      pool.set(name, value, { condition: 'NX', expiration: { type: 'EX', value: ttlSecs } }),
    )
    return reply === 'OK'
  }
}

type RedisPool = Awaited<ReturnType<typeof openPool>>

/** A pool whose first connection has responded. */
async function openPool({ url, poolSize, log }: RedisOptions) {
  let isOpen = false
  const pool = createClientPool(
    {
      url,
      // Fail at once instead of queueing while disconnected.
      disableOfflineQueue: true,
      socket: {
        connectTimeout: CONNECT_TIMEOUT_MS,
        // Replaces idle connections that the server closed. Other failures open the circuit.
        reconnectStrategy: (tries, cause) =>
          isOpen ? Math.min(50 * 2 ** tries, RECONNECT_MS_MAX) : cause,
      },
    },
    { minimum: 1, maximum: poolSize, acquireTimeout: COMMAND_TIMEOUT_MS },
  )
  pool.on('error', (error: unknown) => log.warn({ err: error }, 'redis'))
  try {
    await within(COMMAND_TIMEOUT_MS, async () => {
      await pool.connect()
      await pool.ping()
    })
  } catch (error) {
    pool.destroy()
    throw error
  }
  isOpen = true
  return pool
}
