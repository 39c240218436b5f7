/**
 * Time limit for a response of another process. A stalled event loop runs its timers before it reads its sockets, so a
 * plain timer reports a response as late that arrived long ago.
 */

/** A timer that fires this late, in milliseconds, shows a stalled event loop. */
export const STALLED_MS = 100

export class ResponseLimit {
  readonly #limitMs: number
  readonly #onLate: () => void
  #dueMs: number
  #timer: NodeJS.Timeout
  #isExtended = false
  #hasEnded = false

  /**
   * @param limitMs after a stall of this process the response has as long again as the stall was, at most `limitMs`.
   * @param onLate called once, unless `end` is called before.
   */
  constructor(limitMs: number, onLate: () => void) {
    this.#limitMs = limitMs
    this.#onLate = onLate
    this.#dueMs = performance.now() + limitMs
    this.#timer = setTimeout(this.#check, limitMs)
  }

  /** Call when the response has arrived. */
  end(): void {
    this.#hasEnded = true
    clearTimeout(this.#timer)
  }

  readonly #check = (): void => {
    const stalledMs = performance.now() - this.#dueMs
    if (stalledMs > STALLED_MS && !this.#isExtended) {
      this.#isExtended = true
      const moreMs = Math.min(stalledMs, this.#limitMs)
      this.#dueMs += stalledMs + moreMs
      this.#timer = setTimeout(this.#check, moreMs)
      return
    }
    // The sockets are read before this callback.
    setImmediate(() => {
      if (this.#hasEnded) return
      this.#hasEnded = true
      this.#onLate()
    })
  }
}
