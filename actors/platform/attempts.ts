/**
 * Limits attempts at a secret. They are counted in the coordination backend, so that all processes count together.
 *
 * An attempt takes a slot before the check, so that concurrent attempts get no more guesses than sequential ones. A
 * failure keeps its slot. A success releases its slot and the slots of earlier failures. An attempt without a result
 * (for example an unavailable database) releases only its own slot. If all slots are taken by running checks, the next
 * attempt waits for their results, so that concurrent correct attempts are not refused.
 */
import { setTimeout as sleep } from 'node:timers/promises'

/** The used part of the coordination interface (storage/platform/coordination/port.ts). */
export interface AttemptCounts {
  take(
    key: string,
    window: AttemptWindow,
    cost?: number,
  ): Promise<{ readonly allowed: boolean; readonly used: number; readonly resetSecs: number }>
}

type AttemptWindow = {
  /** Failures. */
  readonly limit: number
  readonly windowSecs: number
}

/** An attempt with a slot. The slot is released unless one of these methods is called. */
export interface OpenAttempt {
  /** Records a failure. @returns true for the failure that reaches the limit. */
  failed(): Promise<boolean>
  succeeded(): Promise<void>
}

export type Judged<Outcome> =
  | { readonly tag: 'judged'; readonly outcome: Outcome }
  /** The limit of failures is reached, and the attempt was not checked. */
  | { readonly tag: 'spent'; readonly retryAfterSecs: number }

/** Maximum wait for the results of concurrent attempts, several times the slowest check. */
const VERDICTS_MS = 5_000
const LOOK_MS_MIN = 20
const LOOK_MS_MAX = 250

/**
 * Checks one attempt of `key`.
 * @throws CoordinationUnavailable if attempts cannot be counted, AbortError with `signal`, and errors of `judge`.
 */
export async function judgeAttempt<Outcome>(
  counts: AttemptCounts,
  key: string,
  window: AttemptWindow,
  judge: (attempt: OpenAttempt) => Promise<Outcome>,
  signal?: AbortSignal,
): Promise<Judged<Outcome>> {
  const failures = `${key}:failed`
  const slot = await takeSlot(counts, key, window, signal)
  if (slot.tag === 'spent') return slot
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

async function takeSlot(
  counts: AttemptCounts,
  key: string,
  window: AttemptWindow,
  signal: AbortSignal | undefined,
) {
  let waitedMs = 0
  for (let lookMs = LOOK_MS_MIN; ; lookMs = Math.min(LOOK_MS_MAX, lookMs * 2)) {
    const slot = await counts.take(key, window)
    if (slot.allowed) return { tag: 'taken' } as const
    const failures = await counts.take(`${key}:failed`, window, 0)
    // Slots of a crashed process are taken until the window ends.
    if (failures.used >= window.limit || waitedMs >= VERDICTS_MS)
      return { tag: 'spent', retryAfterSecs: slot.resetSecs } as const
    await sleep(lookMs, undefined, { signal })
    waitedMs += lookMs
  }
}
