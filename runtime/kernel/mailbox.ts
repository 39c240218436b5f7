/**
 * A bounded queue with lanes. Messages of one lane run one after another, in order of arrival.
 * Messages of different lanes run concurrently, at most `inflightMax` of them. At most `capacity`
 * messages wait.
 *
 *  A lane takes memory only while one of its messages waits or runs, so lanes may be as fine as
 * device codes. Waiting messages are scheduled in turn between shares (tenants), and a full mailbox
 * makes room for the share that waits with fewer messages (fair-queue.ts): a busy tenant delays
 * only its own messages. Time, promises and handlers are the endpoint's concern.
 */
import { FairQueue, FifoQueue, QueueItem } from './fairness/fair-queue.js'

/** An item of a mailbox. */
export class MailboxItem extends QueueItem {
  lane: string | undefined = undefined
}

export interface MailboxBounds {
  /** Messages that may wait. */
  readonly capacity: number
  /** Messages that may run concurrently. */
  readonly inflightMax: number
}

type Offered<Item> = 'start' | 'wait' | 'full' | { readonly tag: 'displaced'; readonly item: Item }

/** Three quarters of `inflightMax`, except for the empty share. */
export function runningPerShare(inflightMax: number): number {
  return Math.max(1, inflightMax - Math.ceil(inflightMax / 4))
}

export class Mailbox<Item extends MailboxItem> {
  readonly #capacity: number
  readonly #inflightMax: number
  /** Occupied lanes. `null` while no message waits behind the running one. */
  readonly #lanes = new Map<string, FifoQueue | null>()
  /**
   * The first message of each lane, and messages without a lane: they wait only for a free place.
   */
  readonly #ready = new FairQueue<Item>({ capacity: Number.POSITIVE_INFINITY })
  /**
   * Messages of one share that may run concurrently. The other places are reserved for other
   * shares.
   */
  readonly #runningPerShareMax: number
  readonly #runningOf = new Map<string, number>()
  /** All waiting messages by share, in order of arrival. */
  readonly #shares = new Map<string, Set<Item>>()
  #waiting = 0
  #running = 0
  #paused = false

  constructor({ capacity, inflightMax }: MailboxBounds) {
    this.#capacity = capacity
    this.#inflightMax = inflightMax
    this.#runningPerShareMax = runningPerShare(inflightMax)
  }

  get waiting(): number {
    return this.#waiting
  }

  get running(): number {
    return this.#running
  }

  /** The number of lanes with a waiting or running message. */
  get lanes(): number {
    return this.#lanes.size
  }

  /** While the mailbox is paused, no message starts. Messages still queue, up to the capacity. */
  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
  }

  /**
   * Accepts a message: `start` it now, let it `wait`, or refuse it because the mailbox is `full`.
   * `displaced`: it waits, and the newest message of the share with the most waiting messages is
   * removed for it.
   */
  offer(item: Item): Offered<Item> {
    const { lane } = item
    const held = lane === undefined ? undefined : this.#lanes.get(lane)
    if (held === undefined && this.#mayRun(item.share) && this.#isPassedOver()) {
      if (lane !== undefined) this.#lanes.set(lane, null)
      this.#begin(item)
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

  /** Removes the item from the waiting messages. */
  #left(item: Item): void {
    this.#waiting -= 1
    const sharing = this.#shares.get(item.share)
    sharing?.delete(item)
    if (sharing?.size === 0) this.#shares.delete(item.share)
  }

  /**
   * The newest message of the share with the most waiting messages, if `share` would still have
   * fewer with one more.
   */
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

  /** The next message to start, if one is ready and has a place. */
  next(): Item | undefined {
    if (!this.#canRun()) return undefined
    const item = this.#ready.shift()!
    this.#left(item)
    this.#begin(item)
    return item
  }

  /** Moves on to the next share with a ready message and a free place. False if no share has both. */
  #canRun(): boolean {
    const ready = this.#ready
    for (let passed = 0; passed < ready.keys && this.#hasRoom(); passed += 1) {
      if (this.#mayRun(ready.peek()!.share)) return true
      ready.skip()
    }
    return false
  }

  /**
   * True when every ready message waits for a place in its share: other shares may overtake it.
   */
  #isPassedOver(): boolean {
    return this.#ready.size === 0 || !this.#canRun()
  }

  #begin({ share }: Item): void {
    this.#running += 1
    if (share !== '') this.#runningOf.set(share, (this.#runningOf.get(share) ?? 0) + 1)
  }

  /** A started message has ended, with or without success. */
  finish(item: Item): void {
    this.#running -= 1
    if (item.share !== '') {
      const left = this.#runningOf.get(item.share)! - 1
      if (left === 0) this.#runningOf.delete(item.share)
      else this.#runningOf.set(item.share, left)
    }
    this.#passTurn(item.lane)
  }

  /** Removes a waiting message. False when it does not wait. */
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

  #mayRun(share: string): boolean {
    if (!this.#hasRoom()) return false
    return share === '' || (this.#runningOf.get(share) ?? 0) < this.#runningPerShareMax
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
