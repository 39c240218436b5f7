import type { Clock } from '../../runtime/kernel/clock.js'

/** A clock for tests: it stands still until the test moves it. */
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
