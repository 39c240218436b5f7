/**
 * Work that streams may do in one turn of the event loop, all together: a hostile secret and body cost some
 * nanoseconds for each byte, and no stream holds the thread while others wait.
 */

/** Steps of redaction: about two milliseconds of the slowest ones. */
const STEPS_PER_TURN = 512 * 1024

export class Pace {
  #left = STEPS_PER_TURN
  #scheduled = false
  readonly #waiting: (() => void)[] = []

  /** Counts work that was done; false where the next one is to wait for `onTurn`. */
  spend(steps: number): boolean {
    this.#left -= steps
    this.#schedule()
    return this.#left > 0
  }

  /** Calls back in a later turn, in the order of the calls. */
  onTurn(resume: () => void): void {
    this.#waiting.push(resume)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#context())
  }

  #context(): void {
    this.#scheduled = false
    this.#left = STEPS_PER_TURN
    for (let count = this.#waiting.length; count > 0 && this.#left > 0; count -= 1) {
      this.#waiting.shift()!()
    }
    if (this.#waiting.length > 0) this.#schedule()
  }
}

/** That of this thread. */
export const pace = new Pace()
