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

/** A clock that stands still until it is told to move. */
export interface HeldClock extends Clock {
  advance(ms: number): void
  set(now: Date): void
}

export function heldClock(start: Date): HeldClock {
  let wallMs = start.getTime()
  let monotonicMs = 0
  return {
    now: () => new Date(wallMs),
    nowSecs: () => Math.floor(wallMs / 1000),
    monotonicMs: () => monotonicMs,
    advance(ms) {
      wallMs += ms
      monotonicMs += ms
    },
    set(now) {
      wallMs = now.getTime()
    },
  }
}
