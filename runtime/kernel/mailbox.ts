/**
 * A bounded queue with lanes: messages of one lane run in turn and in order of arrival, messages of
 * different lanes side by side, at most `inflightMax` at once, at most `capacity` waiting.
 *
 * A lane exists while one of its messages waits or runs and takes no memory afterwards, so lanes may
 * be as fine as device codes. Lanes that have more to do queue up behind each other, so a busy lane
 * cannot starve a quiet one. Nothing here knows time, promises or handlers.
 */

/** What can wait in a mailbox. The links are part of the item: leaving the middle costs nothing. */
export class MailboxItem {
  lane: string | undefined = undefined
  /** The queue this item waits in. */
  queue: WaitingQueue | undefined = undefined
  before: MailboxItem | undefined = undefined
  after: MailboxItem | undefined = undefined
}

class WaitingQueue {
  #first: MailboxItem | undefined = undefined
  #last: MailboxItem | undefined = undefined

  get empty(): boolean {
    return this.#first === undefined
  }

  push(item: MailboxItem): void {
    item.queue = this
    item.before = this.#last
    item.after = undefined
    if (this.#last === undefined) this.#first = item
    else this.#last.after = item
    this.#last = item
  }

  shift(): MailboxItem | undefined {
    const item = this.#first
    if (item !== undefined) this.remove(item)
    return item
  }

  remove(item: MailboxItem): void {
    if (item.before === undefined) this.#first = item.after
    else item.before.after = item.after
    if (item.after === undefined) this.#last = item.before
    else item.after.before = item.before
    item.queue = undefined
    item.before = undefined
    item.after = undefined
  }
}

export interface MailboxBounds {
  /** Messages that may wait. */
  readonly capacity: number
  /** Messages that may run side by side. */
  readonly inflightMax: number
}

export class Mailbox<Item extends MailboxItem> {
  readonly #capacity: number
  readonly #inflightMax: number
  /** Held lanes. `null` while nobody waits behind the holder. */
  readonly #lanes = new Map<string, WaitingQueue | null>()
  /** First of their lane, and messages without one, waiting only for a free place. */
  readonly #ready = new WaitingQueue()
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

  /** Takes a message in: `start` it now, let it `wait`, or refuse it because the mailbox is `full`. */
  offer(item: Item): 'start' | 'wait' | 'full' {
    const { lane } = item
    const held = lane === undefined ? undefined : this.#lanes.get(lane)
    if (held === undefined && this.#hasRoom() && this.#ready.empty) {
      if (lane !== undefined) this.#lanes.set(lane, null)
      this.#running += 1
      return 'start'
    }
    if (this.#waiting >= this.#capacity) return 'full'
    this.#waiting += 1
    if (lane === undefined) {
      this.#ready.push(item)
    } else if (held === undefined) {
      this.#lanes.set(lane, null)
      this.#ready.push(item)
    } else if (held === null) {
      const queue = new WaitingQueue()
      queue.push(item)
      this.#lanes.set(lane, queue)
    } else {
      held.push(item)
    }
    return 'wait'
  }

  /** The next message to start, if there is one and there is room for it. */
  next(): Item | undefined {
    if (!this.#hasRoom()) return undefined
    const item = this.#ready.shift()
    if (item === undefined) return undefined
    this.#waiting -= 1
    this.#running += 1
    return item as Item
  }

  /** A message that was started has come to its end, well or badly. */
  finish(item: Item): void {
    this.#running -= 1
    this.#passTurn(item.lane)
  }

  /** Takes a waiting message out; false when it was not waiting. */
  withdraw(item: Item): boolean {
    const { queue } = item
    if (queue === undefined) return false
    queue.remove(item)
    this.#waiting -= 1
    if (queue === this.#ready) this.#passTurn(item.lane)
    else if (queue.empty && item.lane !== undefined) this.#lanes.set(item.lane, null)
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
    this.#ready.push(follower)
  }
}
