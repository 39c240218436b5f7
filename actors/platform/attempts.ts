/**
 * Attempts at a secret, counted in the coordination backend so that all processes count together.
 *
 * An attempt takes its place before it is judged and keeps it while it is: as many at once get no
 * more guesses than one after another. A failure leaves its place taken, a success gives its own back
 * and those of the failures before it, and what was not judged (a full line, a database that gives no
 * answer) gives back its own alone. Where the places are taken by attempts that are judged right now,
 * the next one waits for their verdicts: many right ones at once are not a guess among them.
 */
import { setTimeout as sleep } from 'node:timers/promises'

/** The part of the coordination port this uses (storage/platform/coordination/port.ts). */
export interface AttemptCounts {
  take(
    key: string,
    window: AttemptWindow,
    cost?: number,
  ): Promise<{ readonly allowed: boolean; readonly used: number; readonly resetSecs: number }>
}

export type AttemptWindow = {
  /** Failures. */
  readonly limit: number
  readonly windowSecs: number
}

/** An attempt that has a place. Given back unless one of these was called. */
export interface OpenAttempt {
  /** The attempt failed. True for the failure that reaches the limit. */
  failed(): Promise<boolean>
  succeeded(): Promise<void>
}

export type Judged<Outcome> =
  | { readonly tag: 'judged'; readonly outcome: Outcome }
  /** The failures have reached the limit: nothing was judged. */
  | { readonly tag: 'spent'; readonly retryAfterSecs: number }

/** How long an attempt waits for the verdicts of others: several times what the slowest takes. */
const VERDICTS_MS = 5_000
const LOOK_MS_MIN = 20
const LOOK_MS_MAX = 250

/**
 * Judges one attempt of those that `key` has.
 * @throws CoordinationUnavailable when attempts cannot be counted, AbortError with `signal`, and what
 * `judge` throws.
 */
export async function judgeAttempt<Outcome>(
  counts: AttemptCounts,
  key: string,
  window: AttemptWindow,
  judge: (attempt: OpenAttempt) => Promise<Outcome>,
  signal?: AbortSignal,
): Promise<Judged<Outcome>> {
  const failures = `${key}:failed`
  const place = await placeOf(counts, key, window, signal)
  if (place.tag === 'spent') return place
  let isDecided = false
  const attempt: OpenAttempt = {
    async failed() {
      isDecided = true
      const { allowed, used } = await counts.take(failures, window)
      return !allowed || used >= window.limit
    },
    async succeeded() {
      isDecided = true
      const { used } = await counts.take(failures, window, 0)
      await counts.take(key, window, -1 - used)
      if (used > 0) await counts.take(failures, window, -used)
    },
  }
  try {
    return { tag: 'judged', outcome: await judge(attempt) }
  } finally {
    if (!isDecided) await counts.take(key, window, -1)
  }
}

async function placeOf(
  counts: AttemptCounts,
  key: string,
  window: AttemptWindow,
  signal: AbortSignal | undefined,
) {
  let waitedMs = 0
  for (let lookMs = LOOK_MS_MIN; ; lookMs = Math.min(LOOK_MS_MAX, lookMs * 2)) {
    const place = await counts.take(key, window)
    if (place.allowed) return { tag: 'taken' } as const
    const failures = await counts.take(`${key}:failed`, window, 0)
    // A process that died while it judged leaves its places taken until the window ends.
    if (failures.used >= window.limit || waitedMs >= VERDICTS_MS)
      return { tag: 'spent', retryAfterSecs: place.resetSecs } as const
    await sleep(lookMs, undefined, { signal })
    waitedMs += lookMs
  }
}
