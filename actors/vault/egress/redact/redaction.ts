/**
 * Redacts a secret from a response, in every encoding of secret-encodings.ts and across chunk borders.
 * Every byte of every occurrence is removed; overlapping and adjacent occurrences count as one. The end of a
 * chunk is held back only while it may be the start of an occurrence. The work is linear in the bytes for any
 * secret and body.
 *
 * Redaction is a safety net, not a security boundary: a hostile upstream can use another encoding.
 */
import { type AuthScheme, readAuthScheme } from '../../../domain/vault/egress.js'
import { Automaton, type Place, type Reserve } from './secret-automaton.js'
import { SecretFilter } from './secret-filter.js'
import { type SecretEncoding, encodingsOf } from './secret-encodings.js'

export const REDACTED = '[redacted]'
const REPLACEMENT = Buffer.from(REDACTED)
/** A chunk with more runs is joined into one buffer. */
const PARTS_MAX = 16
const NO_BYTES = Buffer.alloc(0)
/** Bytes that the automaton reads before the filter tries to skip again. */
const STRETCH_BYTES_MIN = 64
const STRETCH_BYTES_MAX = 8192

export interface Redactor {
  /**
   * @returns the bytes that can be relayed, in order.
   * @throws {MemoryShareExhausted} when there is no memory for the table of a long secret.
   */
  push(chunk: Uint8Array): readonly Uint8Array[]
  /** @returns the bytes that were held back. */
  end(): readonly Uint8Array[]
  /** Redacts a field value. @throws {MemoryShareExhausted} */
  text(value: string): string
  /** Redacted occurrences; overlapping and adjacent ones count as one. */
  readonly count: number
  /** Work so far, proportional to the bytes. */
  readonly steps: number
}

/** The encodings of a secret, prepared for search. Many responses can share one. */
export class SecretEncodings {
  static readonly NONE = new SecretEncodings(new Uint8Array(0), readAuthScheme('bearer')!)
  readonly list: readonly SecretEncoding[]
  /** Null without a secret. */
  readonly search: { readonly automaton: Automaton; readonly filter: SecretFilter } | null

  /** @param reserve reserves memory for a long secret, once a response contains its beginning. */
  constructor(secret: Uint8Array | readonly Uint8Array[], scheme: AuthScheme, reserve?: Reserve) {
    this.list = encodingsOf(secret, scheme)
    if (this.list.length === 0) {
      this.search = null
      return
    }
    const automaton = new Automaton(this.list, reserve)
    this.search = { automaton, filter: new SecretFilter(this.list, automaton.shortest) }
  }

  /** Wipes the secret. */
  wipe(): void {
    for (const { bytes } of this.list) bytes.fill(0)
    this.search?.automaton.wipe()
    this.search?.filter.wipe()
  }
}

export function createRedactor(encodings: SecretEncodings): Redactor {
  return new SecretRedactor(encodings)
}

class SecretRedactor implements Redactor {
  count = 0
  steps = 0
  readonly #encodings: SecretEncodings
  #pass: Pass

  constructor(encodings: SecretEncodings) {
    this.#encodings = encodings
    this.#pass = new Pass(encodings)
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
    const { search } = this.#encodings
    if (search === null || value.length < search.automaton.shortest) return value
    // Most values are read as they are, without a copy of their bytes.
    if (!search.filter.mayOccur(value)) return value
    const pass = new Pass(this.#encodings)
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

/** The redaction of one body or field value. */
class Pass {
  count = 0
  steps = 0
  readonly #encodings: SecretEncodings
  #place: Place = 0
  #stretch = STRETCH_BYTES_MIN
  readonly #held = new Held()
  readonly #runs = new Runs()
  /** Position up to which the current chunk was read. */
  #readTo = 0
  /** End of the last run that was redacted, relative to the current chunk. */
  #redactedTo = Number.NEGATIVE_INFINITY

  constructor(encodings: SecretEncodings) {
    this.#encodings = encodings
  }

  push(chunk: Buffer): Uint8Array[] {
    const { search } = this.#encodings
    if (search === null || chunk.length === 0) return [chunk]
    this.#search(chunk)
    const open = search.automaton.levelOf(this.#place)
    if (open === 0 && this.#runs.count === 0 && this.#held.length === 0) {
      // Most chunks have no occurrence and no beginning of one.
      this.#redactedTo -= chunk.length
      return [chunk]
    }
    const out = this.#emit(chunk, chunk.length - open)
    this.#runs.rebase(chunk.length)
    this.#redactedTo -= chunk.length
    return out
  }

  end(): Uint8Array[] {
    if (this.#runs.count === 0 && this.#held.length === 0) return []
    return this.#emit(NO_BYTES, 0)
  }

  /** Records an occurrence. The automaton calls it in the order of the ends. */
  add(from: number, to: number): void {
    // Found before: the search has backtracked.
    if (to <= this.#readTo) return
    this.#runs.add(from, to)
  }

  #search(chunk: Buffer): void {
    const { automaton, filter } = this.#encodings.search!
    const before = automaton.steps + filter.steps
    const window = filter.windowBytes
    let at = 0
    this.#readTo = 0
    while (at < chunk.length) {
      let to = chunk.length
      if (window > 0) {
        if (this.#place === 0) {
          const skipped = filter.skip(chunk, at)
          // Where the filter skips little, it is tried less often.
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
      // Near the start state, reset and let the filter search the same bytes again.
      const level = automaton.levelOf(this.#place)
      if (at < chunk.length && level > 0 && level < window) {
        this.#readTo = at
        at -= level
        this.#place = 0
      }
    }
    this.steps += automaton.steps + filter.steps - before
  }

  /** Emits the decided bytes, those before `until`. The others are held, except redacted ones. */
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
    // Later occurrences start at `until` or after it.
    while (runs.count > 0 && runs.firstFrom <= until) {
      // It continues a run whose replacement was emitted with an earlier chunk.
      if (runs.firstFrom === this.#redactedTo) runs.isFirstReplaced = true
      if (!runs.isFirstReplaced) {
        plain(runs.firstFrom)
        out.add(REPLACEMENT)
        this.count += 1
        runs.isFirstReplaced = true
      }
      const to = runs.firstTo
      if (to > at) {
        if (at < 0) held.drop(Math.min(to, 0) - at)
        at = to
      }
      // A later occurrence may overlap it.
      if (to > until) break
      this.#redactedTo = to
      runs.shift()
    }
    if (!runs.isFirstReplaced) plain(until)
    if (at < chunk.length) held.keep(chunk.subarray(Math.max(at, 0)))
    return out.list()
  }
}

/** Output as separate parts. */
class Parts {
  readonly #parts: Uint8Array[] = []

  add(bytes: Uint8Array): void {
    this.#parts.push(bytes)
  }

  list(): Uint8Array[] {
    return this.#parts
  }
}

/** Output joined into one buffer, instead of many small parts. */
class Joined {
  readonly #memory: Buffer
  #length = 0

  constructor(runs: number, plainBytes: number) {
    this.#memory = Buffer.allocUnsafeSlow(runs * REPLACEMENT.length + plainBytes)
  }

  add(bytes: Uint8Array): void {
    const { length } = bytes
    let to = this.#length
    this.#length += length
    if (length > REPLACEMENT.length) this.#memory.set(bytes, to)
    // Faster than a call for a few bytes.
    else for (let at = 0; at < length; at += 1) this.#memory[to++] = bytes[at]!
  }

  list(): Uint8Array[] {
    return [this.#memory.subarray(0, this.#length)]
  }
}

const NO_BOUNDS = new Float64Array(0)

/** Disjoint ranges covered by occurrences, in order. Positions are relative to the chunk. */
class Runs {
  count = 0
  /** The replacement of the first run was emitted already. */
  isFirstReplaced = false
  /** Allocated with the first range: most bodies have none. */
  #bounds = NO_BOUNDS
  #first = 0

  get firstFrom(): number {
    return this.#bounds[2 * this.#first]!
  }

  get firstTo(): number {
    return this.#bounds[2 * this.#first + 1]!
  }

  /** Adds a range that ends after all others and merges overlapping ones. */
  add(from: number, to: number): void {
    const bounds = this.#bounds
    for (let last = 2 * (this.#first + this.count - 1); this.count > 0; last -= 2) {
      if (bounds[last + 1]! < from) break
      const isKept = this.count === 1 && this.isFirstReplaced
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
    this.isFirstReplaced = false
  }

  /** Shifts all positions by the length of a chunk. */
  rebase(by: number): void {
    this.#bounds.copyWithin(0, 2 * this.#first, 2 * (this.#first + this.count))
    this.#first = 0
    for (let at = 0; at < 2 * this.count; at += 1) this.#bounds[at]! -= by
  }

  #push(from: number, to: number): void {
    const at = 2 * (this.#first + this.count)
    if (at === this.#bounds.length) {
      const bounds = new Float64Array(Math.max(2 * PARTS_MAX, 2 * at))
      bounds.set(this.#bounds)
      this.#bounds = bounds
    }
    this.#bounds[at] = from
    this.#bounds[at + 1] = to
    this.count += 1
  }
}

/** Buffer of held-back bytes; each byte is copied in once and out once. */
class Held {
  #memory = NO_BYTES
  #from = 0
  #to = 0

  get length(): number {
    return this.#to - this.#from
  }

  /** Appends a copy: the chunk belongs to its reader. */
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

  /** Removes bytes from the start. @returns a copy. */
  take(count: number): Buffer {
    const taken = Buffer.from(this.#memory.subarray(this.#from, this.#from + count))
    this.drop(count)
    return taken
  }

  /** Removes bytes from the start. */
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
