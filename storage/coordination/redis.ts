/** Coordination in Redis: each question is one command or one script, and so indivisible. */
import { randomBytes } from 'node:crypto'
import { createClientPool, RESP_TYPES } from 'redis'
import type { Logger } from '../../runtime/kernel/log.js'
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

const CONNECT_TIMEOUT_MS = 2_000
const COMMAND_TIMEOUT_MS = 2_000
const RECONNECT_MS_MAX = 2_000
const LOCK_TOKEN_BYTES = 16

/** Answers: allowed, used, milliseconds left. */
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

/** Connects at once, so that a wrong URL fails at the start. */
export async function redisCoordination({
  url,
  poolSize,
  log,
}: RedisOptions): Promise<Coordination> {
  let started = false
  const pool = createClientPool(
    {
      url,
      // A question that cannot be asked now is an error now, not an answer later.
      disableOfflineQueue: true,
      commandOptions: { timeout: COMMAND_TIMEOUT_MS },
      socket: {
        connectTimeout: CONNECT_TIMEOUT_MS,
        reconnectStrategy: (tries, cause) =>
          started ? Math.min(50 * 2 ** tries, RECONNECT_MS_MAX) : cause,
      },
    },
    { minimum: 1, maximum: poolSize, acquireTimeout: COMMAND_TIMEOUT_MS },
  )
  pool.on('error', (error: unknown) => log.warn({ err: error }, 'redis'))
  await ask(() => pool.connect()).catch((error: unknown) => {
    pool.destroy()
    throw error
  })
  started = true
  const binary = pool.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer })

  return {
    async take(key, window, cost = 1) {
      checkLifetime(window.windowSecs)
      const reply = await ask(() =>
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
        await ask(() => pool.eval(RELEASE, { keys: [name], arguments: [token] }))
      }
    },

    async get(key) {
      const value = await ask(() => binary.get(storedKey('value', key)))
      return value === null ? undefined : (value as unknown as Uint8Array)
    },

    async put(key, value, ttlSecs) {
      checkLifetime(ttlSecs)
      const name = storedKey('value', key)
      await ask(() =>
        pool.set(name, Buffer.from(value), { expiration: { type: 'EX', value: ttlSecs } }),
      )
    },

    async forget(key) {
      await ask(() => pool.del(storedKey('value', key)))
    },

    async close() {
      pool.destroy()
    },
  }

  async function setIfAbsent(name: string, value: string, ttlSecs: number): Promise<boolean> {
    const reply = await ask(() =>
      pool.set(name, value, { condition: 'NX', expiration: { type: 'EX', value: ttlSecs } }),
    )
    return reply === 'OK'
  }
}

async function ask<T>(question: () => Promise<T>): Promise<T> {
  try {
    return await question()
  } catch (error) {
    throw new CoordinationUnavailable('redis', error)
  }
}
