/** Wakes sleepers. A signal without a sleeper is kept, and the next sleep returns at once. */
export class Bell {
  readonly #sleepers = new Set<() => void>()
  #rung = false

  ring(): void {
    if (this.#sleepers.size === 0) this.#rung = true
    for (const wake of this.#sleepers) wake()
  }

  /** Resolves on the next signal or after `withinMs`. */
  rest(withinMs: number): Promise<void> {
    if (this.#rung) {
      this.#rung = false
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
