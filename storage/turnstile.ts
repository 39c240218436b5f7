/** Lets a limited number in at once, in order of arrival. */
export class Turnstile {
  readonly #limit: number
  readonly #waiting: (() => void)[] = []
  #inside = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  async pass<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    await this.#enter(signal)
    try {
      return await work()
    } finally {
      this.#inside -= 1
      this.#waiting.shift()?.()
    }
  }

  #enter(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted()
    if (this.#inside < this.#limit) {
      this.#inside += 1
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      const enter = () => {
        signal?.removeEventListener('abort', leave)
        this.#inside += 1
        resolve()
      }
      const leave = () => {
        const place = this.#waiting.indexOf(enter)
        if (place >= 0) this.#waiting.splice(place, 1)
        reject(signal?.reason)
      }
      this.#waiting.push(enter)
      signal?.addEventListener('abort', leave, { once: true })
    })
  }
}
