/**
 * Limits the redaction work of all streams per turn of the event loop. A hostile pair of secret and body
 * costs some nanoseconds per byte, which must not block other streams.
 */

/** Redaction steps; the slowest ones take about two milliseconds in all. */
const STEPS_PER_TURN = 512 * 1024

export class Pace {
  #left = STEPS_PER_TURN
  #scheduled = false
  readonly #waiting: (() => void)[] = []

  /** Counts finished work; false when the stream must wait for `onTurn`. */
  spend(steps: number): boolean {
    this.#left -= steps
    this.#schedule()
    return this.#left > 0
  }

  /** Calls back in a later turn, first in, first out. */
  onTurn(resume: () => void): void {
    this.#waiting.push(resume)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#turn())
  }

  #turn(): void {
    this.#scheduled = false
    this.#left = STEPS_PER_TURN
    for (let count = this.#waiting.length; count > 0 && this.#left > 0; count -= 1) {
      this.#waiting.shift()!()
    }
    if (this.#waiting.length > 0) this.#schedule()
  }
}

/** The instance of this thread. */
export const pace = new Pace()
