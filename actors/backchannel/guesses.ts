/**
 * Wrong codes, counted by address in the coordination backend so that all processes count together
 * (RFC 8628 section 5.1). With 10 of them in 15 minutes, 1,000 codes waiting at the same time and
 * 20^8 codes in all, an address finds one by chance in about 70 years.
 *
 * A guess is counted before it is judged, so that many at once get no more than one after another;
 * a right one gives back what it took. A backend that gives no answer means no.
 */
import type { AuthSettings } from '../passwords/settings.js'

export type GuessSettings = Pick<
  AuthSettings,
  'brute_force_max_attempts' | 'brute_force_lockout_secs'
>

/** The part of the coordination port this uses (storage/coordination/port.ts). */
export interface GuessCounts {
  take(
    key: string,
    window: { readonly limit: number; readonly windowSecs: number },
    cost?: number,
  ): Promise<{ readonly allowed: boolean; readonly resetSecs: number }>
}

export type Guess =
  | { readonly tag: 'counted'; right(): Promise<void> }
  | { readonly tag: 'spent'; readonly retryAfterSecs: number }

/** @throws CoordinationUnavailable when guesses cannot be counted. */
export async function countGuess(
  counts: GuessCounts,
  settings: GuessSettings,
  address: string,
): Promise<Guess> {
  const key = `user-code:${address}`
  const window = {
    limit: settings.brute_force_max_attempts,
    windowSecs: settings.brute_force_lockout_secs,
  }
  const taken = await counts.take(key, window)
  if (!taken.allowed) return { tag: 'spent', retryAfterSecs: taken.resetSecs }
  return {
    tag: 'counted',
    async right() {
      await counts.take(key, window, -1)
    },
  }
}
