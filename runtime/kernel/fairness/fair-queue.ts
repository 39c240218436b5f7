/**
 * A queue that takes turns between keys, so that the key with the most items delays only its own.
 * Weighted round robin between keys, first in first out within a key (RFC 970 describes the idea
 * for packets). The key is nearly always a tenant. The empty key is the service itself.
 *
 *  When the whole queue is full, the key with the most items gives up its newest one for a key with
 * fewer. A single key can therefore use the whole capacity without shutting others out.
 */

/**
 * An item of a queue. It holds the links itself, so removal from the middle takes constant time.
 */
export class QueueItem {
  /** The key that this item counts against. */
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

/** The items of one key, and its place in the ring of non-empty keys. */
class Lane extends FifoQueue {
  readonly key: string
  size = 0
  /** Items that this key may still send in its current turn. */
  credit = 0
  next: Lane = this
  previous: Lane = this

  constructor(key: string) {
    super()
    this.key = key
  }
}

interface FairQueueOptions {
  /** Items of all keys together. */
  readonly capacity: number
  /** Items of one key, the empty key excepted. Default: `capacity` bounds them all. */
  readonly perKeyMax?: number | undefined
  /** Items that a key sends in one turn, at least 1. Default 1. */
  readonly weightOf?: ((key: string) => number) | undefined
}

/**
 * The result of a push. `full`: the whole queue is full, and no key has more items than this one.
 * `displaced`: the item was accepted, and the named one, the newest of the largest key, was removed
 * for it.
 */
type Pushed<Item> =
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

  /** The number of non-empty keys. */
  get keys(): number {
    return this.#lanes.size
  }

  sizeOf(key: string): number {
    return this.#lanes.get(key)?.size ?? 0
  }

  /** Adds the item under the key `item.share`. */
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

  /** What `shift` would return. */
  peek(): Item | undefined {
    return this.#current?.oldest as Item | undefined
  }

  /** Ends the turn of the current key. Its items wait for its next turn. */
  skip(): void {
    if (this.#current === undefined) return
    this.#current.credit = 0
    this.#current = this.#current.next
  }

  /** Removes a waiting item. False when it does not wait here. */
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

  /** The newest item of the key with the most items, if it has more than `more`. */
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
      // Last in the ring: every waiting key has its turn first.
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
