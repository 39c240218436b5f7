/**
 * Skips bytes where no encoding can start. Most responses contain no secret, so most of their bytes need
 * no comparison (S. Wu, U. Manber, "A fast algorithm for multi-pattern searching", 1994). The filter
 * reads the last two bytes of a window and shifts the window as far as this pair allows.
 */
import type { SecretEncoding } from './secret-encodings.js'

const WINDOW_BYTES_MAX = 16
const WINDOW_BYTES_MIN = 4
const PAIRS = 1 << 14

export class SecretFilter {
  /** Window size: first bytes of each encoding. 0 disables the filter for short encodings. */
  readonly windowBytes: number
  /** Work so far. */
  steps = 0
  readonly #shift = new Uint8Array(PAIRS)

  /** @param shortest the length of the shortest occurrence. */
  constructor(encodings: readonly SecretEncoding[], shortest: number) {
    this.windowBytes = shortest < WINDOW_BYTES_MIN ? 0 : Math.min(shortest, WINDOW_BYTES_MAX)
    if (this.windowBytes === 0) return
    this.#shift.fill(this.windowBytes - 1)
    for (const { bytes } of encodings) {
      for (let last = 1; last < this.windowBytes; last += 1) {
        const pair = pairOf(bytes[last - 1]!, bytes[last]!)
        this.#shift[pair] = Math.min(this.#shift[pair]!, this.windowBytes - 1 - last)
      }
    }
  }

  /** The first position from `from` on where an occurrence may start. */
  skip(bytes: Uint8Array, from: number): number {
    const shift = this.#shift
    const back = this.windowBytes - 1
    const end = bytes.length
    let last = from + back
    let steps = 0
    while (last < end) {
      const by = shift[((bytes[last - 1]! << 6) ^ bytes[last]!) & (PAIRS - 1)]!
      steps += 1
      if (by === 0) break
      last += by
    }
    this.steps += steps
    return last - back
  }

  /** False if no encoding occurs in a field value. Its characters are bytes (latin-1). */
  mayOccur(value: string): boolean {
    if (this.windowBytes === 0) return true
    let last = this.windowBytes - 1
    while (last < value.length) {
      const by = this.#shift[pairOf(value.charCodeAt(last - 1), value.charCodeAt(last))]!
      if (by === 0) return true
      last += by
    }
    return false
  }

  /** Wipes the table. */
  wipe(): void {
    this.#shift.fill(0)
  }
}

function pairOf(first: number, second: number): number {
  return (((first & 0xff) << 6) ^ (second & 0xff)) & (PAIRS - 1)
}
