/** Limits the guessing of user codes, on every page that takes one. */
import { type AttemptCounts, judgeAttempt, type Judged } from './attempts.js'

/** Members of [auth]. */
export type GuessSettings = {
  readonly brute_force_max_attempts: number
  readonly brute_force_lockout_secs: number
}

/**
 * Counts wrong user codes per client address in the coordination backend, so that all processes count
 * together (RFC 8628 section 5.1). With 10 wrong codes in 15 minutes, 1,000 pending codes and 20^8
 * possible codes, an address finds one by chance in about 70 years.
 *
 * See actors/platform/attempts.ts. If the backend is unavailable, codes are refused.
 *
 * Runs `check` for one code. `check` calls `wrong` if the code does not exist. A correct code only
 * takes back its own count, so that attackers cannot reset the counter with their own codes.
 * @throws CoordinationUnavailable if guesses cannot be counted, and what `check` throws.
 */
export function countGuess<Outcome>(
  counts: AttemptCounts,
  settings: GuessSettings,
  { address, signal }: { readonly address: string; readonly signal: AbortSignal },
  check: (wrong: () => Promise<unknown>) => Promise<Outcome>,
): Promise<Judged<Outcome>> {
  const window = {
    limit: settings.brute_force_max_attempts,
    windowSecs: settings.brute_force_lockout_secs,
  }
  return judgeAttempt(counts, `user-code:${address}`, window, ({ failed }) => check(failed), signal)
}
