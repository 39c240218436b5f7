/**
 * Takes a secret out of what an upstream sends back, in every spelling of `spellings.ts`, across the borders of chunks
 * too. Every byte of every occurrence is left out; occurrences that overlap are one. The end of a chunk is held back
 * as long as it may be the beginning of an occurrence, and no longer. The work is linear in the bytes,
 * whatever the secret and the bytes are.
 *
 * It is a safety net and no boundary: an upstream that wants to give a secret away writes it in a way of its own.
 */
import { Automaton, type Place, type Reserve } from './secret-automaton.js'
import { NeedleFilter } from './secret-filter.js'
import { type Needle, needlesOf } from './secret-encodings.js'

export const REDACTED = '[redacted]'
const SHOWN = Buffer.from(REDACTED)
/** More runs than this in one chunk are handed on in one piece. */
const PARTS_MAX = 16
const NO_BYTES = Buffer.alloc(0)
/** What the automaton reads before the filter tries to skip again, the least and the most. */
const STRETCH_BYTES_MIN = 64
const STRETCH_BYTES_MAX = 8192

export interface Redactor {
  /**
   * What may go on of the bytes so far, in order.
   * @throws {NoRoom} where a long secret needs memory that is not there.
   */
  push(chunk: Uint8Array): readonly Uint8Array[]
  /** What was held back. */
  end(): readonly Uint8Array[]
  /** A field value without the secret. @throws {NoRoom} */
  text(value: string): string
  /** Occurrences so far; those that overlap are one. */
  readonly count: number
  /** Steps of work so far: of the same order as the bytes. */
  readonly steps: number
}

/** Every spelling of a secret that is looked for. One may serve many answers. */
export class Needles {
  static readonly NONE = new Needles(new Uint8Array(0), 'none')
  readonly list: readonly Needle[]
  /** Null where there is nothing to look for. */
  readonly search: { readonly automaton: Automaton; readonly filter: NeedleFilter } | null

  /** @param reserve memory for a long secret, asked for once and only when an answer contains its beginning. */
  constructor(secret: Uint8Array, authScheme: string, reserve?: Reserve) {
    this.list = needlesOf(secret, authScheme)
    if (this.list.length === 0) {
      this.search = null
      return
    }
    const automaton = new Automaton(this.list, reserve)
    this.search = { automaton, filter: new NeedleFilter(this.list, automaton.shortest) }
  }

  /** Forgets the secret. */
  wipe(): void {
    for (const { bytes } of this.list) bytes.fill(0)
    this.search?.automaton.wipe()
    this.search?.filter.wipe()
  }
}

export function createRedactor(needles: Needles): Redactor {
  return new NeedleRedactor(needles)
}

class NeedleRedactor implements Redactor {
  count = 0
  steps = 0
  readonly #needles: Needles
  #pass: Pass

  constructor(needles: Needles) {
    this.#needles = needles
    this.#pass = new Pass(needles)
  }

  push(chunk: Uint8Array): readonly Uint8Array[] {
    const out = this.#pass.push(viewOf(chunk))
    this.#counted()
    return out
  }

  end(): readonly Uint8Array[] {
    const out = this.#pass.end()
    this.#counted()
    return out
  }

  text(value: string): string {
    const pass = new Pass(this.#needles)
    const out = [...pass.push(Buffer.from(value, 'latin1')), ...pass.end()]
    this.count += pass.count
    this.steps += pass.steps
    return pass.count === 0 ? value : Buffer.concat(out).toString('latin1')
  }

  #counted(): void {
    this.count += this.#pass.count
    this.steps += this.#pass.steps
    this.#pass.count = 0
    this.#pass.steps = 0
  }
}

/** One text, from its first byte to its last. */
class Pass {
  count = 0
  steps = 0
  readonly #needles: Needles
  #place: Place = 0
  #stretch = STRETCH_BYTES_MIN
  readonly #held = new Held()
  readonly #runs = new Runs()
  /** How far the present chunk was read. */
  #readTo = 0

  constructor(needles: Needles) {
    this.#needles = needles
  }

  push(chunk: Buffer): Uint8Array[] {
    const { search } = this.#needles
    if (search === null || chunk.length === 0) return [chunk]
    this.#search(chunk)
    const open = search.automaton.levelOf(this.#place)
    const out = this.#emit(chunk, chunk.length - open)
    this.#runs.rebase(chunk.length)
    return out
  }

  end(): Uint8Array[] {
    return this.#emit(NO_BYTES, 0)
  }

  /** Takes an occurrence in. The automaton calls it, in the order of the ends. */
  add(from: number, to: number): void {
    // It was read before: the search went back.
    if (to <= this.#readTo) return
    this.#runs.add(from, to)
  }

  #search(chunk: Buffer): void {
    const { automaton, filter } = this.#needles.search!
    const before = automaton.steps + filter.steps
    const window = filter.windowBytes
    let at = 0
    this.#readTo = 0
    while (at < chunk.length) {
      let to = chunk.length
      if (window > 0) {
        if (this.#place === 0) {
          const skipped = filter.skip(chunk, at)
          // Where little is skipped, the filter is tried less often.
          const isWorthIt = skipped - at >= 2 * this.#stretch
          this.#stretch = isWorthIt
            ? STRETCH_BYTES_MIN
            : Math.min(2 * this.#stretch, STRETCH_BYTES_MAX)
          at = skipped
        }
        to = Math.min(chunk.length, at + this.#stretch)
      }
      this.#place = automaton.scan(this.#place, chunk, at, to, this)
      at = to
      // Close to the start it goes back to it: the filter finds again what may have begun.
      const level = automaton.levelOf(this.#place)
      if (at < chunk.length && level > 0 && level < window) {
        this.#readTo = at
        at -= level
        this.#place = 0
      }
    }
    this.steps += automaton.steps + filter.steps - before
  }

  /** What is decided, which is everything in front of `until`. The rest is held, except of what is left out. */
  #emit(chunk: Buffer, until: number): Uint8Array[] {
    const runs = this.#runs
    const held = this.#held
    const out =
      runs.count > PARTS_MAX ? new Joined(runs.count, held.length + chunk.length) : new Parts()
    let at = -held.length
    const plain = (to: number) => {
      if (to > at && at < 0) out.add(held.take(Math.min(to, 0) - at))
      if (to > at && to > 0) out.add(chunk.subarray(Math.max(at, 0), to))
      at = Math.max(at, to)
    }
    // Occurrences that are still to come begin at `until` or behind it.
    while (runs.count > 0 && runs.firstFrom <= until) {
      if (!runs.isFirstShown) {
        plain(runs.firstFrom)
        out.add(SHOWN)
        this.count += 1
        runs.isFirstShown = true
      }
      const to = runs.firstTo
      if (to > at) {
        if (at < 0) held.drop(Math.min(to, 0) - at)
        at = to
      }
      // One that is still to come may go on with it.
      if (to > until) break
      runs.shift()
    }
    if (!runs.isFirstShown) plain(until)
    if (at < chunk.length) held.keep(chunk.subarray(Math.max(at, 0)))
    return out.list()
  }
}

/** What goes on, piece by piece. */
class Parts {
  readonly #parts: Uint8Array[] = []

  add(bytes: Uint8Array): void {
    this.#parts.push(bytes)
  }

  list(): Uint8Array[] {
    return this.#parts
  }
}

/** What goes on in one piece, where it would be a great many small ones. */
class Joined {
  readonly #memory: Buffer
  #length = 0

  constructor(runs: number, plainBytes: number) {
    this.#memory = Buffer.allocUnsafeSlow(runs * SHOWN.length + plainBytes)
  }

  add(bytes: Uint8Array): void {
    const { length } = bytes
    let to = this.#length
    this.#length += length
    if (length > SHOWN.length) this.#memory.set(bytes, to)
    // Quicker than a call is for a few bytes.
    else for (let at = 0; at < length; at += 1) this.#memory[to++] = bytes[at]!
  }

  list(): Uint8Array[] {
    return [this.#memory.subarray(0, this.#length)]
  }
}

/** Stretches of bytes that occurrences cover, in order, apart from each other. Positions count from a chunk's start. */
class Runs {
  count = 0
  /** What stands for the first one was handed on already. */
  isFirstShown = false
  #bounds = new Float64Array(2 * PARTS_MAX)
  #first = 0

  get firstFrom(): number {
    return this.#bounds[2 * this.#first]!
  }

  get firstTo(): number {
    return this.#bounds[2 * this.#first + 1]!
  }

  /** Adds a stretch that ends behind all others, and joins it with those it overlaps. */
  add(from: number, to: number): void {
    const bounds = this.#bounds
    for (let last = 2 * (this.#first + this.count - 1); this.count > 0; last -= 2) {
      if (bounds[last + 1]! <= from) break
      const isKept = this.count === 1 && this.isFirstShown
      if (isKept || bounds[last]! <= from) {
        bounds[last + 1] = to
        return
      }
      this.count -= 1
    }
    if (this.count === 0) this.#first = 0
    this.#push(from, to)
  }

  shift(): void {
    this.#first += 1
    this.count -= 1
    this.isFirstShown = false
  }

  /** Counts from a place so many bytes later. */
  rebase(by: number): void {
    this.#bounds.copyWithin(0, 2 * this.#first, 2 * (this.#first + this.count))
    this.#first = 0
    for (let at = 0; at < 2 * this.count; at += 1) this.#bounds[at]! -= by
  }

  #push(from: number, to: number): void {
    const at = 2 * (this.#first + this.count)
    if (at === this.#bounds.length) {
      const bounds = new Float64Array(2 * at)
      bounds.set(this.#bounds)
      this.#bounds = bounds
    }
    this.#bounds[at] = from
    this.#bounds[at + 1] = to
    this.count += 1
  }
}

/** Bytes that wait, in memory of their own: each is copied in once and out once. */
class Held {
  #memory = NO_BYTES
  #from = 0
  #to = 0

  get length(): number {
    return this.#to - this.#from
  }

  /** Adds bytes at the end. The chunk belongs to its reader. */
  keep(bytes: Buffer): void {
    if (this.#to + bytes.length > this.#memory.length) {
      const memory = Buffer.allocUnsafeSlow(2 * (this.length + bytes.length))
      this.#memory.copy(memory, 0, this.#from, this.#to)
      this.#to = this.length
      this.#from = 0
      this.#memory = memory
    }
    this.#to += bytes.copy(this.#memory, this.#to)
  }

  /** Removes bytes from the beginning and answers with a copy. */
  take(count: number): Buffer {
    const taken = Buffer.from(this.#memory.subarray(this.#from, this.#from + count))
    this.drop(count)
    return taken
  }

  /** Removes bytes from the beginning. */
  drop(count: number): void {
    this.#from += count
    if (this.#from < this.#to) return
    this.#memory = NO_BYTES
    this.#from = 0
    this.#to = 0
  }
}

function viewOf(chunk: Uint8Array): Buffer {
  return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
}
