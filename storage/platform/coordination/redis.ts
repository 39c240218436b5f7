/** Coordination in Redis: each operation is one command or script, and so atomic. */
import { randomBytes } from 'node:crypto'
import { Circuit } from './circuit.js'
import {
  checkLifetime,
  type Coordination,
  CoordinationUnavailable,
  storedKey,
  taken,
} from './port.js'
import { isReply, openRedis, type RedisOptions } from './redis-connections.js'

const BACKEND = 'redis'
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

/** Connects immediately, so that a wrong address fails at start. */
export async function redisCoordination(options: RedisOptions): Promise<Coordination> {
  const { log, settings } = options
  let servers = await openRedis(options).catch((error: unknown) => {
    throw new CoordinationUnavailable(BACKEND, error)
  })
  const circuit = new Circuit({
    backend: BACKEND,
    limitMs: settings.command_timeout_secs * 1000,
    isAnswer: isReply,
    tearDown: () => servers.destroy(),
    probe: async () => {
      servers = await openRedis(options)
    },
    log,
  })
  const ask = (name: string, ...command: (string | Uint8Array)[]) =>
    circuit.run(() => servers.send(name, command))
  const run = (script: string, name: string, ...words: string[]) =>
    ask(name, 'EVAL', script, '1', name, ...words)

  return {
    async take(key, window, cost = 1) {
      checkLifetime(window.windowSecs)
      const words = [cost, window.limit, window.windowSecs].map(String)
      const reply = await run(TAKE, storedKey('take', key), ...words)
      const [allowed, used, leftMs] = reply as [number, number, number]
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
        await run(RELEASE, name, token)
      }
    },

    async get(key) {
      const name = storedKey('value', key)
      const value = (await ask(name, 'GET', name)) as Uint8Array | null
      return value ?? undefined
    },

    async put(key, value, ttlSecs) {
      checkLifetime(ttlSecs)
      const name = storedKey('value', key)
      await ask(name, 'SET', name, value, 'EX', String(ttlSecs))
    },

    async forget(key) {
      const name = storedKey('value', key)
      await ask(name, 'DEL', name)
    },

    async close() {
      circuit.close()
      servers.destroy()
    },
  }

  async function setIfAbsent(name: string, value: string, ttlSecs: number): Promise<boolean> {
    return (await ask(name, 'SET', name, value, 'NX', 'EX', String(ttlSecs))) === 'OK'
  }
}
