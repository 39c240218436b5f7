/** The only code that reads the time. All other code receives a clock. */
import { performance } from 'node:perf_hooks'

/**
 * How far a wall clock, of a process or of PostgreSQL, may be stepped without harm, in seconds: proofs and revocations are
 * remembered for this much longer than they are valid (docs/guides/operations/faults.md#the-clock).
 */
export const CLOCK_STEP_SECS_MAX = 300

export interface Clock {
  /** Wall-clock time, for users and tokens. */
  now(): Date
  /** Wall-clock Unix seconds, rounded down. */
  nowSecs(): number
  /** Milliseconds on a monotonic clock, for deadlines and durations. */
  monotonicMs(): number
}

export const systemClock: Clock = {
  now: () => new Date(),
  nowSecs: () => Math.floor(Date.now() / 1000),
  monotonicMs: () => performance.now(),
}
