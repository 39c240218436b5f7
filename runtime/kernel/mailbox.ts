/**
 * A bounded queue with lanes: messages of one lane run in turn and in order of arrival, messages of
 * different lanes side by side, at most `inflightMax` at once, at most `capacity` waiting.
 *
 * A lane exists while one of its messages waits or runs and takes no memory afterwards, so lanes may
 * be as fine as device codes. What waits for a place is served in turn between shares (tenants), and a
 * full mailbox makes room for a share that waits less (fair-queue.ts), so a tenant with much to do
 * delays only itself. Nothing here knows time, promises or handlers.
 */
import { FairQueue, FifoQueue, QueueItem } from './fair-queue.js'

/** What can wait in a mailbox. */
export class MailboxItem extends QueueItem {
  lane: string | undefined = undefined
}

export interface MailboxBounds {
  /** Messages that may wait. */
  readonly capacity: number
  /** Messages that may run side by side. */
  readonly inflightMax: number
}

export type Offered<Item> =
  | 'start'
  | 'wait'
  | 'full'
  | { readonly tag: 'displaced'; readonly item: Item }

export class Mailbox<Item extends MailboxItem> {
  readonly #capacity: number
  readonly #inflightMax: number
  /** Held lanes. `null` while nobody waits behind the holder. */
  readonly #lanes = new Map<string, FifoQueue | null>()
  /** First of their lane, and messages without one, waiting only for a free place. */
  readonly #ready = new FairQueue<Item>({ capacity: Number.POSITIVE_INFINITY })
  /** Everything that waits, by share, in order of arrival. */
  readonly #shares = new Map<string, Set<Item>>()
  #waiting = 0
  #running = 0
  #paused = false

  constructor({ capacity, inflightMax }: MailboxBounds) {
    this.#capacity = capacity
    this.#inflightMax = inflightMax
  }

  get waiting(): number {
    return this.#waiting
  }

  get running(): number {
    return this.#running
  }

  /** Lanes with a message waiting or running. */
  get lanes(): number {
    return this.#lanes.size
  }

  /** While paused nothing starts; messages still queue up to the capacity. */
  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
  }

  /**
   * Takes a message in: `start` it now, let it `wait`, or refuse it because the mailbox is `full`.
   * `displaced`: it waits in the place of the newest message of the share that waited with the most.
   */
  offer(item: Item): Offered<Item> {
    const { lane } = item
    const held = lane === undefined ? undefined : this.#lanes.get(lane)
    if (held === undefined && this.#hasRoom() && this.#ready.size === 0) {
      if (lane !== undefined) this.#lanes.set(lane, null)
      this.#running += 1
      return 'start'
    }
    let displaced: Item | undefined
    if (this.#waiting >= this.#capacity) {
      displaced = this.#newestOfLargest(item.share)
      if (displaced === undefined) return 'full'
      this.withdraw(displaced)
    }
    this.#wait(item)
    return displaced === undefined ? 'wait' : { tag: 'displaced', item: displaced }
  }

  #wait(item: Item): void {
    const { lane, share } = item
    this.#waiting += 1
    const sharing = this.#shares.get(share)
    if (sharing === undefined) this.#shares.set(share, new Set([item]))
    else sharing.add(item)
    const held = lane === undefined ? undefined : this.#lanes.get(lane)
    if (lane === undefined) {
      this.#ready.push(item)
    } else if (held === undefined) {
      this.#lanes.set(lane, null)
      this.#ready.push(item)
    } else if (held === null) {
      const queue = new FifoQueue()
      queue.push(item)
      this.#lanes.set(lane, queue)
    } else {
      held.push(item)
    }
  }

  /** The item waits no longer. */
  #left(item: Item): void {
    this.#waiting -= 1
    const sharing = this.#shares.get(item.share)
    sharing?.delete(item)
    if (sharing?.size === 0) this.#shares.delete(item.share)
  }

  /** The newest message of the share with the most, if one more of `share` would still be fewer. */
  #newestOfLargest(share: string): Item | undefined {
    let largest: Set<Item> | undefined
    let most = (this.#shares.get(share)?.size ?? 0) + 1
    for (const sharing of this.#shares.values()) {
      if (sharing.size <= most) continue
      largest = sharing
      most = sharing.size
    }
    return largest === undefined ? undefined : [...largest].at(-1)
  }

  /** The next message to start, if there is one and there is room for it. */
  next(): Item | undefined {
    if (!this.#hasRoom()) return undefined
    const item = this.#ready.shift()
    if (item === undefined) return undefined
    this.#left(item)
    this.#running += 1
    return item
  }

  /** A message that was started has come to its end, well or badly. */
  finish(item: Item): void {
    this.#running -= 1
    this.#passTurn(item.lane)
  }

  /** Takes a waiting message out; false when it was not waiting. */
  withdraw(item: Item): boolean {
    const { queue, lane } = item
    if (queue === undefined) return false
    this.#left(item)
    if (this.#ready.remove(item)) {
      this.#passTurn(lane)
    } else {
      queue.remove(item)
      if (queue.empty && lane !== undefined) this.#lanes.set(lane, null)
    }
    return true
  }

  #hasRoom(): boolean {
    return this.#running < this.#inflightMax && !this.#paused
  }

  #passTurn(lane: string | undefined): void {
    if (lane === undefined) return
    const queue = this.#lanes.get(lane)
    const follower = queue?.shift()
    if (follower === undefined) {
      this.#lanes.delete(lane)
      return
    }
    if (queue!.empty) this.#lanes.set(lane, null)
    this.#ready.push(follower as Item)
  }
}
