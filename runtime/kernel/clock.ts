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

/**
 * Gives work a signal that is aborted by `outer`, or after `ms` with a TimeoutError, until it has ended. `AbortSignal.any()`
 * keeps the signals that it is given weakly: garbage collection takes an `AbortSignal.timeout()` from it, and the work never
 * ends (https://github.com/nodejs/node/issues/57736). So it is called here alone, with controllers that something else keeps.
 */
export async function limitedTo<T>(
  ms: number,
  outer: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController()
  // The timer keeps the controller. It keeps no process.
  const timer = setTimeout(
    () => limit.abort(new DOMException(`over after ${ms} ms`, 'TimeoutError')),
    ms,
  ).unref()
  try {
    return await work(outer === undefined ? limit.signal : endedBy(outer, limit))
  } finally {
    clearTimeout(timer)
  }
}

/** A signal that is aborted by `outer`, or by a controller that the caller keeps. */
export function endedBy(outer: AbortSignal, controller: AbortController): AbortSignal {
  return AbortSignal.any([outer, controller.signal])
}
