/**
 * Finds many byte strings in a stream, in time linear in the stream for any input (A. Aho, M. Corasick,
 * "Efficient string matching", CACM 18, 1975).
 *
 * The first levels of the automaton are a full transition table: one look-up per byte, without branches.
 * Below them a node has one successor (the next node), a few branches, and a failure link: at most two
 * steps per byte, amortised. These levels are built on demand, in portions, so that a long secret costs
 * nothing until a response contains its beginning.
 */
import type { SecretEncoding } from './secret-encodings.js'

/** Levels in the table: as many as fit, within these bounds. */
const TABLE_LEVELS_MAX = 16
const TABLE_LEVELS_MIN = 8
const TABLE_ENTRIES_MAX = 64 * 1024
/** Levels built at a time. */
const PORTION_LEVELS = 256
/** Size of a node below the table: edge, failure link and output. */
const NODE_BYTES = 8

/** Bits of an edge; the lowest eight are the byte of the transition to the next node. */
const HAS_NEXT = 0x100
const NEXT_HAS_OUTPUT = 0x200
const BRANCHES = 0x400
const BUILT = 0x800

/** State of the automaton: a table row, or the complement of a node below the table. 0 is the start. */
export type Place = number

interface Occurrences {
  /** Records an occurrence, or several overlapping ones, in the order of their ends. */
  add(from: number, to: number): void
}

/** Thrown when the memory share has no room for the levels below the table. */
export class MemoryShareExhausted extends Error {
  override readonly name = 'MemoryShareExhausted'

  constructor() {
    super('no memory left to search for a long secret')
  }
}

/** Reserves bytes; false when there are not enough. */
export type Reserve = (bytes: number) => boolean

export class Automaton {
  /** Work so far: transitions, failure links and nodes built. */
  steps = 0
  /** The length of the shortest occurrence. */
  readonly shortest: number
  readonly #encodings: readonly SecretEncoding[]
  readonly #reserve: Reserve
  readonly #classes = new Uint8Array(256)
  readonly #classCount: number
  readonly #levels: number
  /** By row and class: the next row (premultiplied), or the complement of an index into the next two. */
  readonly #table: Int32Array
  readonly #specialNext: number[] = []
  readonly #specialOutput: number[] = []
  /** By row: level, failure link, and length of the longest occurrence that ends there. */
  readonly #rowLevel: Uint8Array
  readonly #rowFailure: Int32Array
  readonly #rowOutput: Int32Array
  /** By encoding, in byte order: length of the common prefix with its predecessor. */
  readonly #shared: number[] = []
  /** By encoding: its first node below the table and the level above that node. */
  readonly #base: number[] = []
  readonly #from: number[] = []
  readonly #nodeCount: number
  #edges = new Uint16Array(0)
  #failures = new Int32Array(0)
  #outputs = new Uint16Array(0)
  /** By output: its length. Output 0 means none. */
  readonly #lengths: number[] = [0]
  readonly #branches = new Map<number, number>()
  #builtLevel: number

  /** @param encodings distinct ones. */
  constructor(encodings: readonly SecretEncoding[], reserve: Reserve = () => true) {
    this.#encodings = [...encodings].sort((a, b) => Buffer.compare(a.bytes, b.bytes))
    this.#reserve = reserve
    this.shortest = Math.min(...encodings.map(({ ends }) => ends[0]!))
    this.#classCount = this.#classify()
    for (const [index, { bytes }] of this.#encodings.entries()) {
      this.#shared.push(index === 0 ? 0 : commonLength(this.#encodings[index - 1]!.bytes, bytes))
    }
    this.#levels = this.#levelsThatFit()
    this.#builtLevel = this.#levels
    const rows = this.#rowsOf(this.#levels)
    this.#table = new Int32Array(rows * this.#classCount)
    this.#rowLevel = new Uint8Array(rows)
    this.#rowFailure = new Int32Array(rows)
    this.#rowOutput = new Int32Array(rows)
    this.#nodeCount = this.#numberNodes()
    this.#fillTable()
  }

  /** Memory of the levels below the table, in bytes. */
  get deepBytes(): number {
    return this.#nodeCount * NODE_BYTES
  }

  /** Number of last bytes that may be the start of an occurrence. */
  levelOf(place: Place): number {
    if (place >= 0) return this.#rowLevel[place / this.#classCount]!
    const node = ~place
    let low = 0
    let high = this.#base.length - 1
    // Binary search for the last encoding with a base at or before the node.
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (this.#base[middle]! <= node) low = middle
      else high = middle - 1
    }
    return node - this.#base[low]! + this.#from[low]! + 1
  }

  /**
   * Reads `bytes` from `from` to `to` and records the longest occurrence at each end position.
   * @throws {MemoryShareExhausted}
   */
  scan(start: Place, bytes: Uint8Array, from: number, to: number, found: Occurrences): Place {
    const table = this.#table
    const classes = this.#classes
    let place = start
    let at = from
    while (at < to) {
      if (place < 0) {
        const node = this.#scanDeep(~place, bytes, at, to, found)
        at = this.#at
        place = node
        continue
      }
      const before = at
      while (at < to) {
        const next = table[place + classes[bytes[at]!]!]!
        at += 1
        if (next >= 0) {
          place = next
          continue
        }
        place = this.#specialNext[~next]!
        let length = this.#specialOutput[~next]!
        if (place < 0) {
          if (this.#builtLevel === this.#levels) this.#build()
          length = this.#lengths[this.#outputs[~place]!]!
        }
        if (place >= 0 && length > 1) {
          // A repeated byte, as in `aaaa`: each occurrence overlaps the previous one.
          const byte = bytes[at - 1]!
          if (table[place + classes[byte]!] === next) {
            const first = at - length
            while (at < to && bytes[at] === byte) at += 1
            found.add(first, at)
            continue
          }
        }
        if (length > 0) found.add(at - length, at)
        if (place < 0) break
      }
      this.steps += at - before
    }
    return place
  }

  /** Wipes the encodings. */
  wipe(): void {
    for (const { bytes } of this.#encodings) bytes.fill(0)
    for (const each of [this.#table, this.#classes, this.#edges]) each.fill(0)
    this.#branches.clear()
  }

  /** Position where the scan below the table stopped. */
  #at = 0

  /** Scans below the table. @returns the state at which it left the table levels or the bytes ended. */
  #scanDeep(start: number, bytes: Uint8Array, from: number, to: number, found: Occurrences): Place {
    const edges = this.#edges
    const failures = this.#failures
    let node = start
    let at = from
    let failed = 0
    let origin = -1
    while (at < to) {
      const byte = bytes[at]!
      const edge = edges[node]!
      if ((edge & 0x1ff) === (byte | HAS_NEXT)) {
        node += 1
        at += 1
        const end = at
        if (origin === node) {
          // The failure link led back here with the same byte, so skip its repetitions.
          while (at < to && bytes[at] === byte) at += 1
        }
        if ((edge & NEXT_HAS_OUTPUT) !== 0) this.#report(node, end, at, found)
        origin = -1
        continue
      }
      if ((edge & BUILT) === 0) {
        this.#build()
        continue
      }
      if ((edge & BRANCHES) !== 0) {
        const branch = this.#branches.get(node * 256 + byte)
        if (branch !== undefined) {
          node = branch
          at += 1
          origin = -1
          this.#report(node, at, at, found)
          continue
        }
      }
      failed += 1
      if (origin < 0) origin = node
      node = failures[node]!
      if (node < 0) {
        this.steps += at - from + failed
        this.#at = at
        return ~node
      }
    }
    this.steps += at - from + failed
    this.#at = at
    return ~node
  }

  /** Records the overlapping occurrences that end from `first` to `last`. */
  #report(node: number, first: number, last: number, found: Occurrences): void {
    const length = this.#lengths[this.#outputs[node]!]!
    if (length > 0) found.add(first - length, last)
  }

  /** Byte classes; all bytes that occur in no encoding are one class. */
  #classify(): number {
    let count = 1
    for (const { bytes } of this.#encodings) {
      for (let at = 0; at < bytes.length; at += 1) {
        const byte = bytes[at]!
        if (this.#classes[byte] !== 0) continue
        // If all 256 bytes occur, the last byte takes the class of the others.
        if (count < 256) this.#classes[byte] = count
        count += 1
      }
    }
    return Math.min(count, 256)
  }

  #levelsThatFit(): number {
    let levels = TABLE_LEVELS_MAX
    while (
      levels > TABLE_LEVELS_MIN &&
      this.#rowsOf(levels) * this.#classCount > TABLE_ENTRIES_MAX
    ) {
      levels -= 1
    }
    return levels
  }

  #rowsOf(levels: number): number {
    let rows = 1
    for (const [index, { bytes }] of this.#encodings.entries()) {
      rows += Math.max(0, Math.min(levels, bytes.length) - this.#shared[index]!)
    }
    return rows
  }

  #numberNodes(): number {
    let next = 0
    for (const [index, { bytes }] of this.#encodings.entries()) {
      const from = Math.max(this.#shared[index]!, this.#levels)
      this.#base.push(next)
      this.#from.push(from)
      next += Math.max(0, bytes.length - from)
    }
    return next
  }

  /** Builds the rows as a trie, then completes them from their failure links, level by level. */
  #fillTable(): void {
    const table = this.#table
    const width = this.#classCount
    const entries: [entry: number, node: number][] = []
    let rows = 1
    for (const [index, { bytes, ends }] of this.#encodings.entries()) {
      const levels = Math.min(this.#levels, bytes.length)
      let row = 0
      for (let level = 0; level < levels; level += 1) {
        const entry = row * width + this.#classes[bytes[level]!]!
        if (table[entry] === 0) {
          table[entry] = rows
          this.#rowLevel[rows] = level + 1
          rows += 1
        }
        row = table[entry]!
        if (ends.includes(level + 1)) this.#rowOutput[row] = level + 1
      }
      if (bytes.length > this.#levels && this.#shared[index]! <= this.#levels) {
        entries.push([row * width + this.#classes[bytes[levels]!]!, this.#base[index]!])
      }
    }
    this.#complete()
    const special = new Map<number, number>()
    for (let entry = 0; entry < table.length; entry += 1) {
      const row = table[entry]!
      const length = this.#rowOutput[row]!
      if (length === 0) {
        table[entry] = row * width
        continue
      }
      let index = special.get(row)
      if (index === undefined) {
        index = this.#special(row * width, length)
        special.set(row, index)
      }
      table[entry] = ~index
    }
    for (const [entry, node] of entries) table[entry] = ~this.#special(~node, 0)
  }

  #complete(): void {
    const table = this.#table
    const width = this.#classCount
    const queue = [0]
    for (let head = 0; head < queue.length; head += 1) {
      const row = queue[head]!
      const failure = this.#rowFailure[row]!
      for (let each = 0; each < width; each += 1) {
        const next = table[row * width + each]!
        const beyond = row === 0 ? 0 : table[failure * width + each]!
        if (next === 0) {
          table[row * width + each] = beyond
          continue
        }
        this.#rowFailure[next] = beyond
        this.#rowOutput[next] ||= this.#rowOutput[beyond]!
        queue.push(next)
      }
    }
  }

  #special(next: Place, output: number): number {
    this.#specialNext.push(next)
    this.#specialOutput.push(output)
    return this.#specialNext.length - 1
  }

  /** Builds the next levels below the table. */
  #build(): void {
    if (this.#edges.length === 0) this.#allocate()
    const end = this.#builtLevel + PORTION_LEVELS
    for (; this.#builtLevel < end; this.#builtLevel += 1) this.#buildLevel(this.#builtLevel)
  }

  #allocate(): void {
    if (!this.#reserve(this.deepBytes)) throw new MemoryShareExhausted()
    this.#edges = new Uint16Array(this.#nodeCount)
    this.#failures = new Int32Array(this.#nodeCount)
    this.#outputs = new Uint16Array(this.#nodeCount)
    const outputs = new Map<number, number>()
    for (const [index, { bytes, ends }] of this.#encodings.entries()) {
      const shared = this.#shared[index]!
      if (shared > this.#levels && bytes.length > shared) {
        const branching = this.#nodeAt(index - 1, shared)
        this.#edges[branching]! |= BRANCHES
        this.#branches.set(branching * 256 + bytes[shared]!, this.#base[index]!)
      }
      for (const end of ends) {
        if (end > this.#levels) this.#outputs[this.#nodeAt(index, end)] = this.#output(end, outputs)
      }
    }
    for (const length of new Set(this.#rowOutput)) this.#output(length, outputs)
    this.#outputOfLength = outputs
  }

  #outputOfLength = new Map<number, number>()

  #output(length: number, outputs: Map<number, number>): number {
    if (length === 0) return 0
    const known = outputs.get(length)
    if (known !== undefined) return known
    this.#lengths.push(length)
    outputs.set(length, this.#lengths.length - 1)
    return this.#lengths.length - 1
  }

  /** The node below the table for the first `level` bytes of an encoding. */
  #nodeAt(encoding: number, level: number): number {
    let owner = encoding
    while (this.#from[owner]! >= level) owner -= 1
    return this.#base[owner]! + level - this.#from[owner]! - 1
  }

  /** Builds the edges to the next level, with the failure links and outputs of its nodes. */
  #buildLevel(level: number): void {
    for (let index = 0; index < this.#encodings.length; index += 1) {
      const { bytes } = this.#encodings[index]!
      const from = this.#from[index]!
      if (from >= bytes.length || level < from || level > bytes.length) continue
      this.steps += 1
      const last = this.#base[index]! + level - from - 1
      if (level === bytes.length) {
        this.#edges[last]! |= BUILT
        continue
      }
      const node = last + 1
      const byte = bytes[level]!
      const failure = this.#next(this.#failureAbove(index, level), byte)
      this.#failures[node] = ~failure
      if (this.#outputs[node] === 0) this.#outputs[node] = this.#outputAt(failure)
      if (level === from) continue
      const output = this.#outputs[node] === 0 ? 0 : NEXT_HAS_OUTPUT
      this.#edges[last]! |= byte | HAS_NEXT | BUILT | output
    }
    for (let index = 0; index < this.#encodings.length; index += 1) {
      const from = this.#from[index]!
      if (level > from && level < this.#encodings[index]!.bytes.length) {
        this.#shorten(this.#base[index]! + level - from - 1)
      }
    }
  }

  /** Skips a failure link that fails for the same byte (the stronger links of Knuth-Morris-Pratt). */
  #shorten(node: number): void {
    const failure = this.#failures[node]!
    if (failure < 0 || (this.#edges[node]! & BRANCHES) !== 0) return
    const isSame = ((this.#edges[node]! ^ this.#edges[failure]!) & 0x1ff) === 0
    if (isSame && (this.#edges[failure]! & BRANCHES) === 0) {
      this.#failures[node] = this.#failures[failure]!
    }
  }

  /** The failure link of the state after the first `level` bytes of an encoding. */
  #failureAbove(encoding: number, level: number): Place {
    if (level > this.#levels) return ~this.#failures[this.#nodeAt(encoding, level)]!
    const { bytes } = this.#encodings[encoding]!
    let row = 0
    for (let at = 0; at < level; at += 1) row = this.#rowBehind(row, bytes[at]!)
    return this.#rowFailure[row]! * this.#classCount
  }

  #rowBehind(row: number, byte: number): number {
    const next = this.#table[row * this.#classCount + this.#classes[byte]!]!
    return (next >= 0 ? next : this.#specialNext[~next]!) / this.#classCount
  }

  /** The transition of a byte from a built state. */
  #next(start: Place, byte: number): Place {
    let place = start
    for (;;) {
      this.steps += 1
      if (place >= 0) {
        const next = this.#table[place + this.#classes[byte]!]!
        return next >= 0 ? next : this.#specialNext[~next]!
      }
      const node = ~place
      const edge = this.#edges[node]!
      if ((edge & 0x1ff) === (byte | HAS_NEXT)) return ~(node + 1)
      const branch = (edge & BRANCHES) === 0 ? undefined : this.#branches.get(node * 256 + byte)
      if (branch !== undefined) return ~branch
      place = ~this.#failures[node]!
    }
  }

  #outputAt(place: Place): number {
    if (place < 0) return this.#outputs[~place]!
    const length = this.#rowOutput[place / this.#classCount]!
    return length === 0 ? 0 : this.#outputOfLength.get(length)!
  }
}

function commonLength(left: Buffer, right: Buffer): number {
  const max = Math.min(left.length, right.length)
  let length = 0
  while (length < max && left[length] === right[length]) length += 1
  return length
}
