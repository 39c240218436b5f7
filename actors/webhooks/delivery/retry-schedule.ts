/** What follows from an attempt: nothing, another one and when, or the end. decisions.md 9 and 22. */

/** Of one attempt, as the sender saw it. */
export type AttemptResult = {
  readonly attemptedAt: Date
  readonly durationMs: number
  /** null when there was no answer. */
  readonly responseStatus: number | null
  /** null after success. Not a message of the receiver: a word of ours. */
  readonly error: string | null
  /** The receiver's wish, in seconds; null when it has none. */
  readonly retryAfterSecs: number | null
}

export type Verdict =
  | { readonly status: 'succeeded'; readonly waitSecs: null }
  | { readonly status: 'retrying'; readonly waitSecs: number }
  | { readonly status: 'failed'; readonly waitSecs: null }

/** The answer that ends a subscription (RFC 9110 section 15.5.11). */
export const GONE = 410
const RETRY_AFTER_SECS_MAX = 24 * 60 * 60
const JITTER = 0.1
/** Client errors that a later attempt may mend. */
const RETRIED_4XX = new Set([408, 425, 429])

/**
 * @param rung attempts of this ladder that have been made, this one included.
 * @param schedule wait before each attempt, in seconds; its length is how many there are.
 * @param chance uniform in 0..1.
 */
export function judgeAttempt(
  { responseStatus, retryAfterSecs }: AttemptResult,
  rung: number,
  schedule: readonly number[],
  chance: number,
): Verdict {
  if (responseStatus !== null && responseStatus >= 200 && responseStatus < 300) {
    return { status: 'succeeded', waitSecs: null }
  }
  const waitSecs = schedule[rung]
  if (waitSecs === undefined || isPermanent(responseStatus)) {
    return { status: 'failed', waitSecs: null }
  }
  const jittered = waitSecs * (1 + JITTER * (2 * chance - 1))
  const wished = Math.min(retryAfterSecs ?? 0, RETRY_AFTER_SECS_MAX)
  return { status: 'retrying', waitSecs: Math.max(jittered, wished) }
}

/** A refusal of the receiver that asking again does not change. */
function isPermanent(status: number | null): boolean {
  return status !== null && status >= 400 && status < 500 && !RETRIED_4XX.has(status)
}

/** Whether the receiver is there at all, whatever it thinks of this delivery. */
export function isAlive({ responseStatus }: AttemptResult): boolean {
  return responseStatus !== null && responseStatus < 500 && responseStatus !== 429
}

const DECIMAL = /^[0-9]{1,10}$/

/** Seconds that a Retry-After header asks for (RFC 9110 section 10.2.3), rounded up. */
export function readRetryAfter(value: string | undefined, now: Date): number | null {
  if (value === undefined) return null
  const text = value.trim()
  if (DECIMAL.test(text)) return Number(text)
  const at = Date.parse(text)
  // A number that is no delay would be read as a year.
  if (Number.isNaN(at) || !/^[A-Za-z]/.test(text)) return null
  return Math.max(0, Math.ceil((at - now.getTime()) / 1000))
}

/** Attempts in a row that find nobody until the receiver is given a rest. */
export const CIRCUIT_FAILURES = 10
const REST_SECS_FIRST = 5
const REST_SECS_MAX = 60

/** The rest after so many failures in a row: longer each time, a minute at most; 0 for none. */
export function restSecs(failures: number): number {
  if (failures < CIRCUIT_FAILURES) return 0
  return Math.min(REST_SECS_MAX, REST_SECS_FIRST * 2 ** Math.min(failures - CIRCUIT_FAILURES, 10))
}

/** A receiver whose median answer takes longer than this is slow. */
const SLOW_MS = 5_000
/** Rest of a slow receiver: so many times as long as its turn took. */
const SLOW_REST = 2

/**
 * The rest of a receiver after a turn, by how long its answers took: 0 unless it is slow. A receiver
 * that is slow and never idle has a place for a third of the time, so that others come to theirs.
 */
export function slowRestSecs(durationsMs: readonly number[], turnMs: number): number {
  const ordered = durationsMs.toSorted((a, b) => a - b)
  const median = ordered[Math.floor(ordered.length / 2)] ?? 0
  return median < SLOW_MS ? 0 : Math.min(REST_SECS_MAX, (SLOW_REST * turnMs) / 1000)
}
