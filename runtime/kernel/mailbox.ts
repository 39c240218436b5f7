/**
 * A bounded queue with lanes: messages of one lane run in turn and in order of arrival, messages of
 * different lanes side by side, at most `inflightMax` at once, at most `capacity` waiting.
 *
 * A lane exists while one of its messages waits or runs and takes no memory afterwards, so lanes may
 * be as fine as device codes. What waits for a place is served in turn between shares (tenants), and a
 * full mailbox makes room for a share that waits less (fair-queue.ts), so a tenant with much to do
 * delays only itself. Nothing here knows time, promises or handlers.
 */
import { FairQueue, FifoQueue, QueueItem } from './fairness/fair-queue.js'

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

/** Three quarters of the places, the empty share excepted. */
export function runningPerShare(inflightMax: number): number {
  return Math.max(1, inflightMax - Math.ceil(inflightMax / 4))
}

export class Mailbox<Item extends MailboxItem> {
  readonly #capacity: number
  readonly #inflightMax: number
  /** Held lanes. `null` while nobody waits behind the holder. */
  readonly #lanes = new Map<string, FifoQueue | null>()
  /** First of their lane, and messages without one, waiting only for a free place. */
  readonly #ready = new FairQueue<Item>({ capacity: Number.POSITIVE_INFINITY })
  /** Messages of one share that may run side by side: what is left is for the others. */
  readonly #runningPerShareMax: number
  readonly #runningOf = new Map<string, number>()
  /** Everything that waits, by share, in order of arrival. */
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
    if (!this.#canRun()) return undefined
    const item = this.#ready.shift()!
    this.#left(item)
    this.#begin(item)
    return item
  }

  /** Turns to the next share that has something ready and a place for it; false where there is none. */
  #canRun(): boolean {
    const ready = this.#ready
    for (let passed = 0; passed < ready.keys && this.#hasRoom(); passed += 1) {
      if (this.#mayRun(ready.peek()!.share)) return true
      ready.skip()
    }
    return false
  }

  /** What is ready, if anything, waits for a place of its own share: others may go past it. */
  #isPassedOver(): boolean {
    return this.#ready.size === 0 || !this.#canRun()
  }

  #begin({ share }: Item): void {
    this.#running += 1
    if (share !== '') this.#runningOf.set(share, (this.#runningOf.get(share) ?? 0) + 1)
  }

  /** A message that was started has come to its end, well or badly. */
  finish(item: Item): void {
    this.#running -= 1
    if (item.share !== '') {
      const left = this.#runningOf.get(item.share)! - 1
      if (left === 0) this.#runningOf.delete(item.share)
      else this.#runningOf.set(item.share, left)
    }
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
