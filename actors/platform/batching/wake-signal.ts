/**
 * How long a worker sleeps without a wake signal, in milliseconds. A signal is lost with a process that is killed between its
 * commit and its notification. A deployment that waits costs no more than this.
 */
export const UNWOKEN_MS_MAX = 5_000

/** Wakes sleepers. A signal without a sleeper is kept, and the next sleep returns immediately. */
export class WakeSignal {
  readonly #sleepers = new Set<() => void>()
  #attempt = false

  wake(): void {
    if (this.#sleepers.size === 0) this.#attempt = true
    for (const wake of this.#sleepers) wake()
  }

  /** Until the bell rings, `withinMs` at most. */
  wait(withinMs: number): Promise<void> {
    if (this.#attempt) {
      this.#attempt = false
      return Promise.resolve()
    }
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer)
        this.#sleepers.delete(wake)
        resolve()
      }
      const timer = setTimeout(wake, withinMs)
      this.#sleepers.add(wake)
    })
  }
}
