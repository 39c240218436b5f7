/**
 * Coordination in memcached. Under memory pressure it evicts entries unless it runs with -M, which deployments must set
 * (docs/concepts/storage.md).
 */
import { randomBytes } from 'node:crypto'
import type { Logger } from '../../../runtime/kernel/log.js'
import { Circuit } from './circuit.js'
import {
  MemcachedClient,
  type MemcachedOptions,
  MemcachedRefusal,
  type Reply,
} from './memcached-client.js'
import {
  checkLifetime,
  type Coordination,
  CoordinationUnavailable,
  storedKey,
  taken,
} from './port.js'

/** Reads a key that does not exist. */
const PROBE = 'mg svc:start'
const LOCK_TOKEN_BYTES = 16

/** memcached's clock has a resolution of one second, so entries can expire one second early. This is added. */
const TICK_SECS = 1

/** Sends a probe, so that a wrong address fails at start. */
export async function memcachedCoordination({
  log,
  ...options
}: MemcachedOptions & { readonly log: Logger }): Promise<Coordination> {
  const client = new MemcachedClient(options)
  const circuit = new Circuit({
    backend: 'memcached',
    limitMs: options.commandTimeoutMs,
    isAnswer: (error) => error instanceof MemcachedRefusal,
    tearDown: () => client.reset(),
    probe: async () => {
      await client.ask(PROBE)
    },
    log,
  })

  const ask = (command: string, value?: Uint8Array): Promise<Reply> =>
    circuit.run(() => client.ask(command, value))

  /** Mode E (add) stores only if the key does not exist. */
  async function setIfAbsent(name: string, value: Uint8Array, ttlSecs: number): Promise<boolean> {
    const lifeSecs = ttlSecs + TICK_SECS
    const { status } = await ask(`ms ${name} ${value.length} T${lifeSecs} ME`, value)
    return status === 'HD'
  }

  await ask(PROBE).catch((error: unknown) => {
    circuit.close()
    client.close()
    throw error
  })

  return {
    async take(key, window, cost = 1) {
      checkLifetime(window.windowSecs)
      const name = storedKey('take', key)
      if (cost <= 0) {
        const { status, value, flags } = await ask(`ma ${name} MD D${-cost} v t`)
        const used = status === 'VA' ? Number(value) : 0
        return taken(true, used, window, Number(flags.get('t') ?? window.windowSecs))
      }
      const { value, flags } = await ask(`ma ${name} N${window.windowSecs} J${cost} D${cost} v t`)
      const used = Number(value)
      const resetSecs = Number(flags.get('t') ?? window.windowSecs)
      if (used <= window.limit) return taken(true, used, window, resetSecs)
      // Count first, so that the limit is never exceeded, and give back what does not fit.
      const after = await ask(`ma ${name} MD D${cost} v`)
      const held = after.status === 'VA' ? Number(after.value) : 0
      return taken(false, Math.min(held, window.limit), window, resetSecs)
    },

    async once(key, ttlSecs) {
      checkLifetime(ttlSecs)
      return setIfAbsent(storedKey('once', key), Buffer.from('1'), ttlSecs)
    },

    async lock(key, ttlSecs) {
      checkLifetime(ttlSecs)
      const name = storedKey('lock', key)
      const token = randomBytes(LOCK_TOKEN_BYTES)
      if (!(await setIfAbsent(name, token, ttlSecs))) return undefined
      return async () => {
        const held = await ask(`mg ${name} v c`)
        if (!held.value?.equals(token)) return
        // Deleted only with the version of this holder.
        await ask(`md ${name} C${held.flags.get('c')}`)
      }
    },

    async get(key) {
      return (await ask(`mg ${storedKey('value', key)} v`)).value
    },

    async put(key, value, ttlSecs) {
      checkLifetime(ttlSecs)
      const { status } = await ask(
        `ms ${storedKey('value', key)} ${value.length} T${ttlSecs}`,
        value,
      )
      if (status !== 'HD') {
        throw new CoordinationUnavailable('memcached', new Error(`it answered ${status}`))
      }
    },

    async forget(key) {
      await ask(`md ${storedKey('value', key)}`)
    },

    async close() {
      circuit.close()
      client.close()
    },
  }
}
