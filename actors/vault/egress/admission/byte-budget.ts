/**
 * The bytes that a running call has taken from its grant or lease. A call takes portions before it
 * relays them and returns the unused rest at its end. So concurrent calls never exceed the budget, and
 * the bytes taken by a killed process count as used.
 */

import { PORTION_BYTES_MIN, PORTION_PART } from '../../../../storage/vault/egress-authorities.js'

/** Takes `bytesMin` to `bytesMax` bytes from the stored budget; 0 when fewer than `bytesMin` are left. */
type Refill = (bytesMin: number, bytesMax: number) => Promise<number>

/** The largest portion. */
export const PORTION_BYTES = 1024 * 1024

/** The portion of a call, beyond what it needs, when this many bytes are left. */
export function portionOf(leftBytes: number): number {
  return Math.min(PORTION_BYTES, Math.max(PORTION_BYTES_MIN, Math.ceil(leftBytes / PORTION_PART)))
}

export class ByteBudget {
  #leftBytes: number
  readonly #refill: Refill
  #queue: Promise<unknown> = Promise.resolve()
  #isSpent = false

  constructor(leftBytes: number, refill: Refill) {
    this.#leftBytes = leftBytes
    this.#refill = refill
  }

  /** Bytes taken and not used. */
  get leftBytes(): number {
    return this.#leftBytes
  }

  /** A draw found too little left: the call is cut, which spends the stored budget. */
  get isSpent(): boolean {
    return this.#isSpent
  }

  /** Uses bytes that are taken already; false when they do not suffice. */
  take(bytes: number): boolean {
    if (bytes > this.#leftBytes) return false
    this.#leftBytes -= bytes
    return true
  }

  /** Uses bytes and takes another portion if necessary; false when the budget is exhausted. */
  async draw(bytes: number): Promise<boolean> {
    // Serialised, because both directions of a call draw from one budget.
    const drawn = this.#queue.then(async () => {
      if (this.take(bytes)) return true
      const missing = bytes - this.#leftBytes
      this.#leftBytes += await this.#refill(missing, Math.max(missing, PORTION_BYTES))
      if (this.take(bytes)) return true
      this.#isSpent = true
      return false
    })
    this.#queue = drawn.catch(() => {})
    return drawn
  }

  /** Empties it. @returns the bytes to return to the stored budget. */
  empty(): number {
    const left = this.#leftBytes
    this.#leftBytes = 0
    return left
  }
}
