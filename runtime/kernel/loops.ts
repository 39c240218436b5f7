/**
 * Background loops of an actor: work in rounds that no message starts. A failed round is tried
 * again and has no caller that would notice, so a loop could fail for hours unseen. Each loop
 * therefore reports its rounds here. After a minute of nothing but failures its actor, and with it
 * the process, is not ready.
 */
import type { Clock } from './clock.js'

/** How long the rounds of a loop may fail, in milliseconds. */
export const FAILING_MS_MAX = 60_000
/** A single failure is not a series, however long the loop pauses before it tries again. */
const FAILURES_MIN = 2

/** Reports the rounds of one loop. */
export interface Loop {
  succeeded(): void
  failed(): void
}

/** The state of a loop, for metrics. */
export type LoopStats = {
  readonly loop: string
  /** Failed rounds since the start of the process. */
  readonly failures: number
  /** Its rounds have failed for longer than `FAILING_MS_MAX`. */
  readonly failing: boolean
}

type State = { total: number; row: number; sinceMs: number | null }

/** The loops of one actor. They outlive its instances: a restart does not excuse a failing loop. */
export class Loops {
  readonly #clock: Clock
  readonly #states = new Map<string, State>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Opens the loop of this name. The name says what fails: `upkeep: sweeps`. */
  open(name: string): Loop {
    const state: State = this.#states.get(name) ?? { total: 0, row: 0, sinceMs: null }
    this.#states.set(name, state)
    return {
      succeeded: () => {
        state.row = 0
        state.sinceMs = null
      },
      failed: () => {
        state.total += 1
        state.row += 1
        state.sinceMs ??= this.#clock.monotonicMs()
      },
    }
  }

  /** Names of the failing loops, in the order in which they were opened. */
  failing(): readonly string[] {
    return this.stats()
      .filter(({ failing }) => failing)
      .map(({ loop }) => loop)
  }

  stats(): readonly LoopStats[] {
    const nowMs = this.#clock.monotonicMs()
    return [...this.#states].map(([loop, { total, row, sinceMs }]) => ({
      loop,
      failures: total,
      failing: sinceMs !== null && row >= FAILURES_MIN && nowMs - sinceMs >= FAILING_MS_MAX,
    }))
  }
}
