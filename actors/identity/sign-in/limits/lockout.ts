/**
 * Brute-force limits. When the failures of a name reach the limit, the name is locked for the full time, also for the
 * correct password (docs/reference/identity.md, "Lockout").
 *
 * Names are email addresses as typed, whether or not an account exists, and accounts (second factor). A browser in which
 * the account has signed in has its own count next to the address, so strangers do not lock it. In addition every
 * network address has a quota of checks. If the coordination backend is unavailable, attempts are refused: the
 * alternative would be unlimited guessing.
 */
import type { Clock } from '../../../../runtime/kernel/clock.js'
import { quotaAddress } from '../../../domain/quota-address.js'
import { CoordinationUnavailable } from '../../../../storage/platform/coordination/port.js'
import { type AttemptCounts, judgeAttempt, type OpenAttempt } from '../../../platform/attempts.js'
import type { Busy } from '../protocol.js'

/** Settings of `[auth]`. */
export type LockoutSettings = {
  readonly brute_force_max_attempts: number
  readonly brute_force_lockout_secs: number
  readonly password_verify_ip_max_attempts: number
  readonly password_verify_ip_window_secs: number
}

/** The part of the coordination port used here (storage/platform/coordination/port.ts). */
export interface LockoutCounts extends AttemptCounts {
  get(key: string): Promise<Uint8Array | undefined>
  put(key: string, value: Uint8Array, ttlSecs: number): Promise<void>
}

/** Failures of an address over all tenants, as multiples of the limit in one. */
const TENANTS_WORTH = 5

/** One attempt: its target, its origin, and a signal that ends the wait. */
export type Attempted = {
  readonly name: string
  /** What the attempt could guess in other tenants too: the address of an account, whose password is one. */
  readonly everywhere?: string | undefined
  readonly address: string
  readonly signal?: AbortSignal | undefined
}

type Attempt<Outcome> =
  | { readonly tag: 'judged'; readonly outcome: Outcome }
  | { readonly tag: 'locked'; readonly retryAfterSecs: number }

export interface Lockout {
  /** Failed attempts of a name in its window. A success gives its attempt back. */
  used(name: string): Promise<number>
  /** Counts a failure that was judged under another name. */
  failed(name: string): Promise<void>
  /**
   * Judges one attempt if the limits allow it. `judge` reports success or failure; an attempt without a report is given
   * back. `failed` returns true for the failure that locks the name.
   * @throws CoordinationUnavailable when attempts cannot be counted, and what `judge` throws.
   */
  attempt<Outcome>(
    attempted: Attempted,
    judge: (attempt: OpenAttempt) => Promise<Outcome>,
  ): Promise<Attempt<Outcome>>
}

export function lockout(counts: LockoutCounts, settings: LockoutSettings, clock: Clock): Lockout {
  const { brute_force_max_attempts: limit, brute_force_lockout_secs: windowSecs } = settings
  const ofName = { limit, windowSecs }
  const ofEverywhere = { limit: TENANTS_WORTH * limit, windowSecs }
  const ofAddress = {
    limit: settings.password_verify_ip_max_attempts,
    windowSecs: settings.password_verify_ip_window_secs,
  }
  const encoder = new TextEncoder()
  const decoder = new TextDecoder()

  async function lockedFor(name: string): Promise<number | undefined> {
    const lock = await counts.get(`lockout:locked:${name}`)
    if (lock === undefined) return undefined
    return Math.max(1, Number(decoder.decode(lock)) - clock.nowSecs())
  }

  async function lock(name: string): Promise<void> {
    const ends = String(clock.nowSecs() + windowSecs)
    await counts.put(`lockout:locked:${name}`, encoder.encode(ends), windowSecs)
  }

  return {
    used: async (name) => (await counts.take(`lockout:name:${name}`, ofName, 0)).used,

    async failed(name) {
      await counts.take(`lockout:name:${name}`, ofName)
      const { allowed, used } = await counts.take(`lockout:name:${name}:failed`, ofName)
      if (!allowed || used >= limit) await lock(name)
    },

    async attempt(attempted, judge) {
      const { name, everywhere, address, signal } = attempted
      const locked = await lockedFor(name)
      if (locked !== undefined) return { tag: 'locked', retryAfterSecs: locked }
      const here = await counts.take(`lockout:address:${quotaAddress(address)}`, ofAddress)
      if (!here.allowed) return { tag: 'locked', retryAfterSecs: here.resetSecs }
      const shared = everywhere === undefined ? null : `lockout:everywhere:${everywhere}`
      if (shared !== null) {
        const { allowed, resetSecs } = await counts.take(shared, ofEverywhere)
        if (!allowed) return { tag: 'locked', retryAfterSecs: resetSecs }
      }
      let isFailure = false
      const judging = judgeAttempt(
        counts,
        `lockout:name:${name}`,
        ofName,
        (attempt) =>
          judge({
            ...attempt,
            async failed() {
              isFailure = true
              if (!(await attempt.failed())) return false
              await lock(name)
              return true
            },
          }),
        signal,
      )
      const judged = await judging.finally(async () => {
        if (shared !== null && !isFailure) await counts.take(shared, ofEverywhere, -1)
      })
      if (judged.tag === 'judged') return judged
      // The name may have been locked while this attempt waited for others.
      const retryAfterSecs = (await lockedFor(name)) ?? judged.retryAfterSecs
      return { tag: 'locked', retryAfterSecs }
    },
  }
}

/** `busy` when attempts cannot be counted at the moment. */
export async function orBusy<Outcome>(work: () => Promise<Outcome>): Promise<Outcome | Busy> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof CoordinationUnavailable) return { tag: 'busy' }
    throw error
  }
}
