/**
 * Skips bytes in which no needle can begin: most answers hold no secret, and most of their bytes need not be looked at
 * (S. Wu, U. Manber, "A fast algorithm for multi-pattern searching", 1994). It looks at pairs of bytes at the end of
 * a window and moves the window as far as the pair allows.
 */
import type { Needle } from './secret-encodings.js'

const WINDOW_BYTES_MAX = 16
const WINDOW_BYTES_MIN = 4
const PAIRS = 1 << 14

export class NeedleFilter {
  /** How many first bytes of each needle are looked for. 0: the needles are too short, nothing is skipped. */
  readonly windowBytes: number
  /** Steps so far. */
  steps = 0
  readonly #shift = new Uint8Array(PAIRS)

  /** @param shortest the length of the shortest occurrence. */
  constructor(needles: readonly Needle[], shortest: number) {
    this.windowBytes = shortest < WINDOW_BYTES_MIN ? 0 : Math.min(shortest, WINDOW_BYTES_MAX)
    if (this.windowBytes === 0) return
    this.#shift.fill(this.windowBytes - 1)
    for (const { bytes } of needles) {
      for (let last = 1; last < this.windowBytes; last += 1) {
        const pair = pairOf(bytes[last - 1]!, bytes[last]!)
        this.#shift[pair] = Math.min(this.#shift[pair]!, this.windowBytes - 1 - last)
      }
    }
  }

  /** The first place at or behind `from` where an occurrence may begin, or may begin behind the bytes. */
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

  /** Forgets the needles. */
  wipe(): void {
    this.#shift.fill(0)
  }
}

function pairOf(one: number, other: number): number {
  return ((one << 6) ^ other) & (PAIRS - 1)
}
