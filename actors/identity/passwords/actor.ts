/**
 * Hashes passwords with argon2id on low-priority threads. At most `argon2_max_concurrent` hashes run in parallel, each
 * with its own memory. A bounded number waits, and further requests get `busy` immediately, so that a flood of logins
 * exhausts neither memory nor CPU. Groups of tenants hold a part of the places, and a tenant takes places back from the
 * one that waits with most.
 */
import {
  ActorUnavailable,
  defineActor,
  type MessageContext,
} from '../../../runtime/kernel/actor.js'
import {
  type Compute,
  inlineCompute,
  type PoolOptions,
} from '../../../runtime/kernel/threads/pool.js'
import {
  FairShare,
  isRefused,
  type ShareCounts,
} from '../../../runtime/kernel/fairness/fair-share.js'
import { endedBy } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import type { TenantGroups } from '../../platform/tenant-groups.js'
import { type Argon2Cost, costOf, formatPhc, sameCost } from './phc.js'
import type { Breaches } from './breaches.js'
import { type CommonPasswords, loadCommonPasswords } from './commonest.js'
import { type HashOutcome, passwords, type PasswordsProtocol } from './protocol.js'
import type { AuthSettings } from './settings.js'

/** NIST SP 800-63B requires at least 64 characters. This allows 256 characters of any kind. */
const PASSWORD_BYTES_MAX = 1024
const SALT_BYTES = 16
const HASH_BYTES = 32
/** About 5 s of waiting at 150 ms per hash. Beyond that, `busy` is the better answer. */
const QUEUED_PER_THREAD_MAX = 32
/**
 * Request threads go first. On a machine that stays busy, these threads still get more than twice the share of the
 * lowest priority.
 */
const NICE = 15
/** A stored hash with higher memory cost is not computed, because it would break the memory bound. */
const STORED_MEMORY_KIB_MAX = 256 * 1024
const STORED_ITERATIONS_MAX = 64

type PasswordSettings = Pick<
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
  /** Hashes that run or wait at the same time. */
  readonly places: number
  readonly groups: Pick<TenantGroups, 'of'>
  readonly counts?: ShareCounts | undefined
  /** Null: `challenge.hibp_enabled` is false. */
  readonly breaches: Pick<Breaches, 'check'> | null
}

/** Options of the pool behind `PasswordsNeeds.compute`. */
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

/** The hashes of a pool that run or wait at the same time. */
export function passwordPlaces({ threadsMax, queueMax = 0 }: PoolOptions): number {
  return threadsMax + queueMax
}

/** The same computations on this thread: a check in a pool without threads would start one. */
export async function passwordsHere(): Promise<PasswordCompute> {
  return inlineCompute(await import('./compute.js'))
}

/**
 * Start-up check of the native engine.
 * @throws if it does not verify a known hash. The process must not continue and store hashes.
 */
export async function checkPasswordEngine(compute: PasswordCompute): Promise<string> {
  const { engine, sound } = await compute.run('smoke', undefined)
  if (!sound) throw new Error(`password engine ${engine} failed its smoke test`)
  return engine
}

export const passwordsActor = defineActor<PasswordsProtocol, PasswordsNeeds>({
  address: passwords,
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 1024 },
  create: ({ settings, compute, random, breaches, places, groups, counts }) => {
    const share = new FairShare({
      resource: 'passwords',
      total: places,
      // The pool bounds what waits of a tenant.
      levels: [{ name: 'tenant', max: places }],
      counts,
    })
    const cost: Argon2Cost = {
      memoryKib: settings.argon2_memory_kib,
      iterations: settings.argon2_iterations,
      parallelism: settings.argon2_parallelism,
    }
    // A decoy hash for unknown users. It matches nothing, and verifying it takes as long as a real one.
    const decoyHash = formatPhc(cost, random.bytes(SALT_BYTES), random.bytes(HASH_BYTES))

    let common: Promise<CommonPasswords> | undefined

    /**
     * Runs one computation. Null when there is no place for it, or when it waited and another tenant took its place. Our
     * copy of the password is wiped afterwards.
     */
    async function computed<T>(
      password: Uint8Array,
      { share: tenantId, signal }: MessageContext,
      run: (options: { share: string; signal: AbortSignal }) => Promise<T>,
    ): Promise<T | null> {
      const over = new AbortController()
      const giveUp = () => {
        over.abort()
        return true
      }
      const of = tenantId === '' ? [] : await groups.of(tenantId)
      const place = share.tryAcquire([tenantId], 1, { groups: of, giveUp })
      try {
        if (isRefused(place)) return null
        return await run({ share: tenantId, signal: endedBy(signal, over) })
      } catch (error) {
        const isBusy = error instanceof ActorUnavailable && error.reason === 'mailbox_full'
        if (isBusy || over.signal.aborted) return null
        throw error
      } finally {
        if (!isRefused(place)) place()
        password.fill(0)
      }
    }

    async function hash(text: string, context: MessageContext): Promise<HashOutcome> {
      const password = passwordBytes(text)
      if (password === null) return { tag: 'unacceptable' }
      const salt = random.bytes(SALT_BYTES)
      const phc = await computed(password, context, (options) =>
        compute.run('hash', { password, salt, cost }, options),
      )
      return phc === null ? { tag: 'busy' } : { tag: 'hashed', phc }
    }

    return {
      async choose({ password: text }, context) {
        const password = passwordBytes(text)
        if (password === null) return { tag: 'unacceptable' }
        if ((await (common ??= loadCommonPasswords())).has(text)) {
          password.fill(0)
          return { tag: 'common' }
        }
        const logFailure = (reason: string) =>
          context.log.warn({ reason }, 'password not set: breached-password check unavailable')
        const verdict = breaches === null ? 'clean' : await breaches.check(password, logFailure)
        password.fill(0)
        if (verdict === 'breached') return { tag: 'breached' }
        return verdict === 'unknown' ? { tag: 'unchecked' } : hash(text, context)
      },

      hash: ({ password }, context) => hash(password, context),

      async verify({ phc: stored, password: text }, context) {
        const password = passwordBytes(text)
        if (password === null) return { tag: 'mismatch' }
        const known = stored === null ? null : storedCost(stored, cost, context)
        const phc = known === null ? decoyHash : stored!
        const match = await computed(password, context, (options) =>
          compute.run('verify', { password, phc }, options),
        )
        if (match === null) return { tag: 'busy' }
        if (!match || known === null) return { tag: 'mismatch' }
        return { tag: 'match', needsRehash: !sameCost(known, cost) }
      },
    }
  },
})

/** The bytes to hash: NFC-normalized, so that a password typed on two systems is the same. */
function passwordBytes(text: string): Uint8Array | null {
  if (text.length === 0 || text.length > PASSWORD_BYTES_MAX || /\p{Surrogate}/u.test(text)) {
    return null
  }
  const bytes = new TextEncoder().encode(text.normalize('NFC'))
  return bytes.length <= PASSWORD_BYTES_MAX ? bytes : null
}

/** The cost of a stored hash. Null, with a log line, when the hash is invalid or too expensive. */
function storedCost(
  stored: string,
  configured: Argon2Cost,
  { log }: MessageContext,
): Argon2Cost | null {
  const cost = costOf(stored)
  if (cost === null) {
    log.error('stored password hash is not argon2id')
    return null
  }
  const memoryKibMax = Math.max(configured.memoryKib, STORED_MEMORY_KIB_MAX)
  const iterationsMax = Math.max(configured.iterations, STORED_ITERATIONS_MAX)
  if (cost.memoryKib <= memoryKibMax && cost.iterations <= iterationsMax) return cost
  log.error(cost, 'stored password hash exceeds the cost limit')
  return null
}
