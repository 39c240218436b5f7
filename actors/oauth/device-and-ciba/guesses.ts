/**
 * Wrong codes, counted by address in the coordination backend so that all processes count together
 * (RFC 8628 section 5.1). With 10 of them in 15 minutes, 1,000 codes waiting at the same time and
 * 20^8 codes in all, an address finds one by chance in about 70 years.
 *
 * How they are counted: actors/platform/attempts.ts. A backend that gives no answer means no.
 */
import { type AttemptCounts, judgeAttempt, type Judged } from '../../platform/attempts.js'

/** Members of [auth]. */
export type GuessSettings = {
  readonly brute_force_max_attempts: number
  readonly brute_force_lockout_secs: number
}

/**
 * Judges one code that somebody at the address typed: `judge` calls `wrong` for one that there is not.
 * A right one takes back its own place alone: whoever has codes of their own gets no more guesses.
 * @throws CoordinationUnavailable when guesses cannot be counted, and what `judge` throws.
 */
export function judgeGuess<Outcome>(
  counts: AttemptCounts,
  settings: GuessSettings,
  { address, signal }: { readonly address: string; readonly signal: AbortSignal },
  judge: (wrong: () => Promise<unknown>) => Promise<Outcome>,
): Promise<Judged<Outcome>> {
  const window = {
    limit: settings.brute_force_max_attempts,
    windowSecs: settings.brute_force_lockout_secs,
  }
  return judgeAttempt(counts, `user-code:${address}`, window, ({ failed }) => judge(failed), signal)
}
