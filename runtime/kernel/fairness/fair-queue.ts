/**
 * A queue that takes turns between keys, so that the key with the most to do delays only itself.
 * Weighted round robin between keys, first in first out within a key (RFC 970 describes the idea for
 * packets). The key is the tenant nearly everywhere; an empty key stands for the service itself.
 *
 * When the whole queue is full, the key that holds the most gives up its newest item for a key that
 * holds less. One key alone can therefore use the whole capacity, and still cannot shut others out.
 */

/** What can wait in a queue. The links are part of the item: to leave from the middle costs nothing. */
export class QueueItem {
  /** Whose turn this item takes. */
  share = ''
  queue: FifoQueue | undefined = undefined
  before: QueueItem | undefined = undefined
  after: QueueItem | undefined = undefined
}

/** First in, first out. */
export class FifoQueue {
  #first: QueueItem | undefined = undefined
  #last: QueueItem | undefined = undefined

  get empty(): boolean {
    return this.#first === undefined
  }

  get oldest(): QueueItem | undefined {
    return this.#first
  }

  get newest(): QueueItem | undefined {
    return this.#last
  }

  push(item: QueueItem): void {
    item.queue = this
    item.before = this.#last
    item.after = undefined
    if (this.#last === undefined) this.#first = item
    else this.#last.after = item
    this.#last = item
  }

  shift(): QueueItem | undefined {
    const item = this.#first
    if (item !== undefined) this.remove(item)
    return item
  }

  remove(item: QueueItem): void {
    if (item.before === undefined) this.#first = item.after
    else item.before.after = item.after
    if (item.after === undefined) this.#last = item.before
    else item.after.before = item.before
    item.queue = undefined
    item.before = undefined
    item.after = undefined
  }
}

/** The items of one key, and its place in the ring of keys that have any. */
class Lane extends FifoQueue {
  readonly key: string
  size = 0
  /** Items that this key may still send in its present turn. */
  credit = 0
  next: Lane = this
  previous: Lane = this

  constructor(key: string) {
    super()
    this.key = key
  }
}

export interface FairQueueOptions {
  /** Items in all. */
  readonly capacity: number
  /** Items of one key, the empty key excepted. Default: `capacity` bounds them all. */
  readonly perKeyMax?: number | undefined
  /** Items that a key sends in one turn, at least 1. Default 1. */
  readonly weightOf?: ((key: string) => number) | undefined
}

/**
 * What became of a push. `full`: the whole queue is full, and no key holds more than this one.
 * `displaced`: the item is in, and the named one, the newest of the largest key, is out for it.
 */
export type Pushed<Item> =
  | 'queued'
  | 'key_full'
  | 'full'
  | { readonly tag: 'displaced'; readonly item: Item }

export class FairQueue<Item extends QueueItem> {
  readonly #capacity: number
  readonly #perKeyMax: number
  readonly #weightOf: (key: string) => number
  readonly #lanes = new Map<string, Lane>()
  /** The lane whose turn it is. */
  #current: Lane | undefined = undefined
  #size = 0

  constructor({
    capacity,
    perKeyMax = Number.POSITIVE_INFINITY,
    weightOf = () => 1,
  }: FairQueueOptions) {
    this.#capacity = capacity
    this.#perKeyMax = perKeyMax
    this.#weightOf = weightOf
  }

  get size(): number {
    return this.#size
  }

  /** Keys that have an item here. */
  get keys(): number {
    return this.#lanes.size
  }

  sizeOf(key: string): number {
    return this.#lanes.get(key)?.size ?? 0
  }

  /** Takes the item in under `item.share`. */
  push(item: Item): Pushed<Item> {
    const held = this.sizeOf(item.share)
    if (item.share !== '' && held >= this.#perKeyMax) return 'key_full'
    let displaced: Item | undefined
    if (this.#size >= this.#capacity) {
      displaced = this.#newestOfLargest(held + 1)
      if (displaced === undefined) return 'full'
      this.remove(displaced)
    }
    const lane = this.#laneOf(item.share)
    lane.push(item)
    lane.size += 1
    this.#size += 1
    return displaced === undefined ? 'queued' : { tag: 'displaced', item: displaced }
  }

  /** The next item in turn. */
  shift(): Item | undefined {
    const lane = this.#current
    if (lane === undefined) return undefined
    if (lane.credit <= 0) lane.credit = Math.max(1, this.#weightOf(lane.key))
    lane.credit -= 1
    const item = lane.shift() as Item
    lane.size -= 1
    this.#size -= 1
    if (lane.size === 0) this.#drop(lane)
    else if (lane.credit === 0) this.#current = lane.next
    return item
  }

  /** What `shift` would answer. */
  peek(): Item | undefined {
    return this.#current?.oldest as Item | undefined
  }

  /** Gives the turn to the next key; what this one has waits for its next turn. */
  skip(): void {
    if (this.#current === undefined) return
    this.#current.credit = 0
    this.#current = this.#current.next
  }

  /** Takes a waiting item out; false when it does not wait here. */
  remove(item: Item): boolean {
    const lane = this.#lanes.get(item.share)
    if (lane === undefined || item.queue !== lane) return false
    lane.remove(item)
    lane.size -= 1
    this.#size -= 1
    if (lane.size === 0) this.#drop(lane)
    return true
  }

  /** Every item, in no order. */
  *[Symbol.iterator](): Generator<Item> {
    for (const lane of this.#lanes.values()) {
      let item = lane.newest
      while (item !== undefined) {
        const { before }: QueueItem = item
        yield item as Item
        item = before
      }
    }
  }

  /** The newest item of the key that holds the most, if it holds more than `more`. */
  #newestOfLargest(more: number): Item | undefined {
    let largest: Lane | undefined
    for (const lane of this.#lanes.values()) {
      if (lane.size > (largest?.size ?? more)) largest = lane
    }
    return largest?.newest as Item | undefined
  }

  #laneOf(key: string): Lane {
    const known = this.#lanes.get(key)
    if (known !== undefined) return known
    const lane = new Lane(key)
    this.#lanes.set(key, lane)
    const current = this.#current
    if (current === undefined) {
      this.#current = lane
    } else {
      // Last in the ring: every key that waits already has its turn first.
      lane.next = current
      lane.previous = current.previous
      current.previous.next = lane
      current.previous = lane
    }
    return lane
  }

  #drop(lane: Lane): void {
    this.#lanes.delete(lane.key)
    if (this.#current === lane) this.#current = lane.next === lane ? undefined : lane.next
    lane.previous.next = lane.next
    lane.next.previous = lane.previous
  }
}
