/**
 * Background loops of an actor: work in rounds, without a message that asks for it. A round that fails is tried again, and
 * no caller waits for its answer, so a loop can fail for hours unseen. Each loop reports its rounds here:
 * one that has only failed for a minute makes its actor, and so the process, not ready.
 */
import type { Clock } from './clock.js'

/** How long the rounds of a loop may fail, in milliseconds. */
export const FAILING_MS_MAX = 60_000
/** One failure is no series, however long the loop rests before it tries again. */
const FAILURES_MIN = 2

/** One loop as it reports its rounds. */
export interface Loop {
  succeeded(): void
  failed(): void
}

/** What a loop has come to, for metrics. */
export type LoopStats = {
  readonly loop: string
  /** Failed rounds since the start of the process. */
  readonly failures: number
  /** Its rounds have failed for longer than is allowed. */
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

  /** The loop of a name, which says what fails: `upkeep: sweeps`. */
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

  /** Names of the loops that fail for too long, in the order in which they were opened. */
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
