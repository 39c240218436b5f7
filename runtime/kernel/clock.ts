/** The only readers of time. Everything else is given a clock. */
import { performance } from 'node:perf_hooks'

export interface Clock {
  /** Wall-clock time, for what people and tokens see. */
  now(): Date
  /** Wall-clock Unix seconds, rounded down. */
  nowSecs(): number
  /** Milliseconds that never jump, for floors, deadlines and durations. */
  monotonicMs(): number
}

export const systemClock: Clock = {
  now: () => new Date(),
  nowSecs: () => Math.floor(Date.now() / 1000),
  monotonicMs: () => performance.now(),
}
