/**
 * Limits on guessing, counted in the coordination backend so that all processes count together.
 * An attempt is counted before it is judged, so that many at once get no more guesses than one after
 * another; a success gives back what the name had used. Once the failures of a name reach the limit
 * it is locked for the full time, for the right password too (decisions.md 7.6, lockout).
 *
 * Names are e-mail addresses as typed, whether or not such an account exists, and accounts (second
 * factor). Beside them every address has a quota of checks. A backend that gives no answer means no:
 * unlimited guessing is what this exists against.
 */
import type { Clock } from '../../runtime/kernel/clock.js'
import { quotaAddress } from '../domain/quota-address.js'
import type { AuthSettings } from '../passwords/settings.js'

export type LockoutSettings = Pick<
  AuthSettings,
  | 'brute_force_max_attempts'
  | 'brute_force_lockout_secs'
  | 'password_verify_ip_max_attempts'
  | 'password_verify_ip_window_secs'
>

/** The part of the coordination port this uses (storage/coordination/port.ts). */
export interface LockoutCounts {
  take(
    key: string,
    window: { readonly limit: number; readonly windowSecs: number },
    cost?: number,
  ): Promise<{ readonly allowed: boolean; readonly used: number; readonly resetSecs: number }>
  get(key: string): Promise<Uint8Array | undefined>
  put(key: string, value: Uint8Array, ttlSecs: number): Promise<void>
}

export type Attempt =
  | {
      readonly tag: 'open'
      /** The attempt failed. True for the failure that locks the name. */
      failed(): Promise<boolean>
      succeeded(): Promise<void>
      /** Nothing was judged: this attempt is given back, and no failure before it. */
      withdrawn(): Promise<void>
    }
  | { readonly tag: 'locked'; readonly retryAfterSecs: number }

export interface Lockout {
  /** Attempts of a name that its window holds, failed ones as a success gives them back. */
  used(name: string): Promise<number>
  /**
   * Counts an attempt.
   * @throws CoordinationUnavailable when attempts cannot be counted.
   */
  attempt(name: string, address: string): Promise<Attempt>
}

export function lockout(counts: LockoutCounts, settings: LockoutSettings, clock: Clock): Lockout {
  const { brute_force_max_attempts: limit, brute_force_lockout_secs: windowSecs } = settings
  const ofName = { limit, windowSecs }
  const ofAddress = {
    limit: settings.password_verify_ip_max_attempts,
    windowSecs: settings.password_verify_ip_window_secs,
  }
  const encoder = new TextEncoder()
  const decoder = new TextDecoder()

  return {
    used: async (name) => (await counts.take(`lockout:name:${name}`, ofName, 0)).used,

    async attempt(name, address) {
      const lock = await counts.get(`lockout:locked:${name}`)
      if (lock !== undefined) {
        const endsSecs = Number(decoder.decode(lock))
        return { tag: 'locked', retryAfterSecs: Math.max(1, endsSecs - clock.nowSecs()) }
      }
      const here = await counts.take(`lockout:address:${quotaAddress(address)}`, ofAddress)
      if (!here.allowed) return { tag: 'locked', retryAfterSecs: here.resetSecs }
      const taken = await counts.take(`lockout:name:${name}`, ofName)
      if (!taken.allowed) return { tag: 'locked', retryAfterSecs: taken.resetSecs }
      return {
        tag: 'open',
        async failed() {
          if (taken.used < limit) return false
          const ends = String(clock.nowSecs() + windowSecs)
          await counts.put(`lockout:locked:${name}`, encoder.encode(ends), windowSecs)
          return true
        },
        async succeeded() {
          await counts.take(`lockout:name:${name}`, ofName, -taken.used)
        },
        async withdrawn() {
          await counts.take(`lockout:name:${name}`, ofName, -1)
        },
      }
    },
  }
}
