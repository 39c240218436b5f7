/**
 * Hashes passwords with argon2id on threads of a low priority. At most `argon2_max_concurrent`
 * run at once, each with its own memory; a bounded number waits; the next is told `busy` at once,
 * so that a flood of logins costs neither memory nor the speed of everything else.
 */
import {
  ActorUnavailable,
  defineActor,
  type MessageContext,
} from '../../../runtime/kernel/actor.js'
import type { Compute, PoolOptions } from '../../../runtime/kernel/threads/pool.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { type Argon2Cost, costOf, formatPhc, sameCost } from './phc.js'
import type { Breaches } from './breaches.js'
import { type CommonPasswords, loadCommonPasswords } from './commonest.js'
import { type HashOutcome, passwords, type PasswordsProtocol } from './protocol.js'
import type { AuthSettings } from './settings.js'

/** NIST SP 800-63B asks for at least 64 characters; this allows any 256. */
export const PASSWORD_BYTES_MAX = 1024
const SALT_BYTES = 16
const HASH_BYTES = 32
/** Some 5 s of waiting at 150 ms a hash; who would wait longer is better told so. */
const QUEUED_PER_THREAD_MAX = 32
/**
 * Whatever answers requests goes first; a machine that is busy for long still leaves these threads more
 * than twice what the lowest priority would.
 */
const NICE = 15
/** A stored hash that asks for more is not computed: it would break the bound on memory. */
const STORED_MEMORY_KIB_MAX = 256 * 1024
const STORED_ITERATIONS_MAX = 64

export type PasswordSettings = Pick<
  AuthSettings,
  | 'argon2_memory_kib'
  | 'argon2_iterations'
  | 'argon2_parallelism'
  | 'argon2_max_concurrent'
  | 'argon2_waiting_per_tenant_max'
>
export type PasswordCompute = Compute<typeof import('./compute.js')>
export type PasswordsNeeds = {
  readonly settings: PasswordSettings
  readonly compute: PasswordCompute
  readonly random: Random
  /** Null: `challenge.hibp_enabled` is off. */
  readonly breaches: Pick<Breaches, 'check'> | null
}

/** How the pool behind `PasswordsNeeds.compute` is opened. */
export function passwordPool(settings: PasswordSettings, processors: number): PoolOptions {
  const threadsMax = Math.max(1, Math.min(settings.argon2_max_concurrent, processors))
  return {
    name: 'passwords',
    module: new URL('./compute.js', import.meta.url),
    threadsMax,
    queueMax: threadsMax * QUEUED_PER_THREAD_MAX,
    queuePerShareMax: settings.argon2_waiting_per_tenant_max,
    batchMax: 1,
    nice: NICE,
    forgets: true,
  }
}

/**
 * The start-up check of the native engine.
 * @throws when it does not verify a known hash: the process must not go on and store others.
 */
export async function checkPasswordEngine(compute: PasswordCompute): Promise<string> {
  const { engine, sound } = await compute.run('smoke', undefined)
  if (!sound) throw new Error(`the password engine ${engine} fails its smoke test`)
  return engine
}

export const passwordsActor = defineActor<PasswordsProtocol, PasswordsNeeds>({
  address: passwords,
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 1024 },
  create: ({ settings, compute, random, breaches }) => {
    const cost: Argon2Cost = {
      memoryKib: settings.argon2_memory_kib,
      iterations: settings.argon2_iterations,
      parallelism: settings.argon2_parallelism,
    }
    // Belongs to nobody and matches nothing; verifying against it takes as long as a real one.
    const nobody = formatPhc(cost, random.bytes(SALT_BYTES), random.bytes(HASH_BYTES))

    let common: Promise<CommonPasswords> | undefined

    async function hash(text: string, context: MessageContext): Promise<HashOutcome> {
      const password = acceptable(text)
      if (password === null) return { tag: 'unacceptable' }
      const salt = random.bytes(SALT_BYTES)
      const phc = await computed(password, () =>
        compute.run('hash', { password, salt, cost }, context),
      )
      return phc === null ? { tag: 'busy' } : { tag: 'hashed', phc }
    }

    return {
      async choose({ password: text }, context) {
        const password = acceptable(text)
        if (password === null) return { tag: 'unacceptable' }
        if ((await (common ??= loadCommonPasswords())).has(text)) {
          password.fill(0)
          return { tag: 'common' }
        }
        const tell = (reason: string) =>
          context.log.warn({ reason }, 'a password was not set: breaches could not be asked')
        const verdict = breaches === null ? 'clean' : await breaches.check(password, tell)
        password.fill(0)
        if (verdict === 'breached') return { tag: 'breached' }
        return verdict === 'unknown' ? { tag: 'unchecked' } : hash(text, context)
      },

      hash: ({ password }, context) => hash(password, context),

      async verify({ phc: stored, password: text }, context) {
        const password = acceptable(text)
        if (password === null) return { tag: 'mismatch' }
        const known = stored === null ? null : usable(stored, cost, context)
        const phc = known === null ? nobody : stored!
        const match = await computed(password, () =>
          compute.run('verify', { password, phc }, context),
        )
        if (match === null) return { tag: 'busy' }
        if (!match || known === null) return { tag: 'mismatch' }
        return { tag: 'match', needsRehash: !sameCost(known, cost) }
      },
    }
  },
})

/** The bytes that are hashed: NFC, so that one password typed on two systems is one password. */
function acceptable(text: string): Uint8Array | null {
  if (text.length === 0 || text.length > PASSWORD_BYTES_MAX || /\p{Surrogate}/u.test(text)) {
    return null
  }
  const bytes = new TextEncoder().encode(text.normalize('NFC'))
  return bytes.length <= PASSWORD_BYTES_MAX ? bytes : null
}

/** The cost of a stored hash; null, and a line in the log, when it cannot or must not be computed. */
function usable(
  stored: string,
  configured: Argon2Cost,
  { log }: MessageContext,
): Argon2Cost | null {
  const cost = costOf(stored)
  if (cost === null) {
    log.error('a stored password hash is not argon2id')
    return null
  }
  const memoryKibMax = Math.max(configured.memoryKib, STORED_MEMORY_KIB_MAX)
  const iterationsMax = Math.max(configured.iterations, STORED_ITERATIONS_MAX)
  if (cost.memoryKib <= memoryKibMax && cost.iterations <= iterationsMax) return cost
  log.error(cost, 'a stored password hash asks for too much memory or time')
  return null
}

/** Runs one computation; null when the queue is full. Our copy of the password is wiped after it. */
async function computed<T>(password: Uint8Array, run: () => Promise<T>): Promise<T | null> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof ActorUnavailable && error.reason === 'mailbox_full') return null
    throw error
  } finally {
    password.fill(0)
  }
}
