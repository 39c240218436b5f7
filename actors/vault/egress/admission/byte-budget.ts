/**
 * The bytes that a running call has taken from a byte budget. They are taken in portions before they
 * flow; what is left at the end goes back. So calls that run side by side never use more than the
 * budget holds, and a process that dies has used what it had taken.
 */

/** Takes between the two numbers of bytes from the budget; 0 when not even the first is left. */
export type Refill = (bytesMin: number, bytesMax: number) => Promise<number>

/** Taken at a time. */
export const PORTION_BYTES = 1024 * 1024
/** Of a small budget no call takes more than this share at once, so that others find some. */
export const PORTION_BYTES_MIN = 16 * 1024

export class Purse {
  #leftBytes: number
  readonly #refill: Refill
  #context: Promise<unknown> = Promise.resolve()

  constructor(leftBytes: number, refill: Refill) {
    this.#leftBytes = leftBytes
    this.#refill = refill
  }

  /** Taken and not used. */
  get leftBytes(): number {
    return this.#leftBytes
  }

  /** Uses bytes that are at hand; false when there are not as many. */
  take(bytes: number): boolean {
    if (bytes > this.#leftBytes) return false
    this.#leftBytes -= bytes
    return true
  }

  /** Uses bytes, taking more from the budget when need be; false when it is spent. */
  async draw(bytes: number): Promise<boolean> {
    // In turns: both directions of a call draw from the one purse.
    const context = this.#context.then(async () => {
      if (this.take(bytes)) return true
      const missing = bytes - this.#leftBytes
      this.#leftBytes += await this.#refill(missing, Math.max(missing, PORTION_BYTES))
      return this.take(bytes)
    })
    this.#context = context.catch(() => {})
    return context
  }

  /** Everything that is left, to be put back. */
  empty(): number {
    const left = this.#leftBytes
    this.#leftBytes = 0
    return left
  }
}
