/**
 * Decides what follows an attempt: success, another attempt, or the end
 * (docs/reference/webhooks.md, Retry schedule).
 */
import type { AttemptResult } from './protocol.js'

type Verdict =
  | { readonly status: 'succeeded'; readonly waitSecs: null }
  | { readonly status: 'retrying'; readonly waitSecs: number }
  | { readonly status: 'failed'; readonly waitSecs: null }

/** The status that deactivates a subscription (RFC 9110 section 15.5.11). */
export const GONE = 410
const RETRY_AFTER_SECS_MAX = 24 * 60 * 60
const JITTER = 0.1
/** Client errors that are retried. */
const RETRIED_4XX = new Set([408, 425, 429])

/**
 * @param attempt number of attempts made in this run of the schedule, including this one.
 * @param schedule wait before each attempt in seconds. Its length is the number of attempts.
 * @param chance uniform in 0..1.
 */
export function judgeAttempt(
  { responseStatus, retryAfterSecs }: AttemptResult,
  attempt: number,
  schedule: readonly number[],
  chance: number,
): Verdict {
  if (responseStatus !== null && responseStatus >= 200 && responseStatus < 300) {
    return { status: 'succeeded', waitSecs: null }
  }
  const waitSecs = schedule[attempt]
  if (waitSecs === undefined || isPermanent(responseStatus)) {
    return { status: 'failed', waitSecs: null }
  }
  const jittered = waitSecs * (1 + JITTER * (2 * chance - 1))
  const wished = Math.min(retryAfterSecs ?? 0, RETRY_AFTER_SECS_MAX)
  return { status: 'retrying', waitSecs: Math.max(jittered, wished) }
}

/** A refusal that a retry does not change. */
function isPermanent(status: number | null): boolean {
  return status !== null && status >= 400 && status < 500 && !RETRIED_4XX.has(status)
}

/** True if the receiver responds at all, even with an error for this delivery. */
export function isAlive({ responseStatus }: AttemptResult): boolean {
  return responseStatus !== null && responseStatus < 500 && responseStatus !== 429
}

const DECIMAL = /^[0-9]{1,10}$/

/** Seconds of a Retry-After header (RFC 9110 section 10.2.3), rounded up. */
export function readRetryAfter(value: string | undefined, now: Date): number | null {
  if (value === undefined) return null
  const text = value.trim()
  if (DECIMAL.test(text)) return Number(text)
  const timeMs = Date.parse(text)
  // `Date.parse` would read other numbers as years.
  if (Number.isNaN(timeMs) || !/^[A-Za-z]/.test(text)) return null
  return Math.max(0, Math.ceil((timeMs - now.getTime()) / 1000))
}

/** Consecutive failures without a response until the circuit opens. */
export const CIRCUIT_FAILURES = 10
const REST_SECS_FIRST = 5
const REST_SECS_MAX = 60

/** Duration of the rest after consecutive failures: it grows up to a minute. 0 for none. */
export function restSecs(failures: number): number {
  if (failures < CIRCUIT_FAILURES) return 0
  return Math.min(REST_SECS_MAX, REST_SECS_FIRST * 2 ** Math.min(failures - CIRCUIT_FAILURES, 10))
}

/** A receiver is slow when its median response time exceeds this. */
const SLOW_MS = 5_000
/** A slow receiver rests for its turn's duration times this factor. */
const SLOW_REST = 2

/**
 * Rest of a receiver after a turn, by its response times. 0 unless it is slow. A slow receiver that
 * always has due deliveries holds a place for a third of the time, so that others get their turns.
 */
export function slowRestSecs(durationsMs: readonly number[], turnMs: number): number {
  const ordered = durationsMs.toSorted((a, b) => a - b)
  const median = ordered[Math.floor(ordered.length / 2)] ?? 0
  return median < SLOW_MS ? 0 : Math.min(REST_SECS_MAX, (SLOW_REST * turnMs) / 1000)
}
