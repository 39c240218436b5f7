/**
 * The due deliveries of one lane that this process knows: from the last read of the database, and created here since. A
 * created delivery needs no read, and must not be queued twice: a read that ended while the delivery was created may
 * have returned it.
 */
import type { DueDelivery } from '../../../storage/webhooks/deliveries.js'

/** A lane keeps at most this many deliveries. The database has the rest. */
const QUEUED_MAX = 256
/** Reads that are remembered, for creations that began before they ended. */
const READS_KEPT = 4

/** Orders the beginnings of creations and the ends of reads of one worker. */
export class EventOrder {
  #last = 0

  next(): number {
    this.#last += 1
    return this.#last
  }
}

type Queued = { readonly delivery: DueDelivery; readonly queuedMs: number }
type EndedRead = { readonly endedAt: number; readonly ids: ReadonlySet<string> }

export class DueQueue {
  readonly #order: EventOrder
  #waiting: Queued[] = []
  /** Deliveries that were created during the current read. */
  #createdDuringRead: DueDelivery[] = []
  #isReading = false
  /** False after a full read: newer deliveries must not overtake those that are still to be read. */
  #acceptsCreated = true
  #reads: EndedRead[] = []
  /** Creations that began before are left to the next read. */
  #forgottenAt = 0

  /**
   * @param due the first read.
   * @param isFull more may be due than was read.
   * @param nowMs monotonic, as in the other methods.
   */
  constructor(order: EventOrder, due: readonly DueDelivery[], isFull: boolean, nowMs: number) {
    this.#order = order
    this.endRead(due, isFull, new Set(), nowMs)
    // The lane before this one may have sent what was created until now.
    this.#forgottenAt = order.next()
  }

  get size(): number {
    return this.#waiting.length
  }

  /** When the first of the queue was read or created. Undefined if the queue is empty. */
  get firstQueuedMs(): number | undefined {
    return this.#waiting[0]?.queuedMs
  }

  shift(): DueDelivery | undefined {
    return this.#waiting.shift()?.delivery
  }

  /** A read begins: it returns whatever waits in the queue again. */
  beginRead(): void {
    this.#waiting = []
    this.#createdDuringRead = []
    this.#isReading = true
    this.#acceptsCreated = true
  }

  /** @param inProgress attempts that ran when the read began. The result may have their deliveries. */
  endRead(
    due: readonly DueDelivery[],
    isFull: boolean,
    inProgress: ReadonlySet<string>,
    nowMs: number,
  ): void {
    const ids = new Set(due.map(({ id }) => id))
    this.#reads.push({ endedAt: this.#order.next(), ids })
    if (this.#reads.length > READS_KEPT) this.#forgottenAt = this.#reads.shift()!.endedAt
    this.#waiting = []
    this.#queue(
      due.filter(({ id }) => !inProgress.has(id)),
      nowMs,
    )
    if (!isFull) {
      this.#queue(
        this.#createdDuringRead.filter(({ id }) => !ids.has(id)),
        nowMs,
      )
    }
    this.#createdDuringRead = []
    this.#isReading = false
    this.#acceptsCreated &&= !isFull
  }

  /**
   * Queues deliveries that this worker created and committed, as far as there is room.
   * @param begunAt when their creation began, by the same order.
   */
  add(created: readonly DueDelivery[], begunAt: number, nowMs: number): void {
    if (!this.#acceptsCreated || begunAt < this.#forgottenAt) return
    const room = QUEUED_MAX - this.#waiting.length - this.#createdDuringRead.length
    if (created.length > room) {
      this.#acceptsCreated = false
      return
    }
    const overlapping = this.#reads.filter(({ endedAt }) => endedAt > begunAt)
    const unknown = created.filter(({ id }) => !overlapping.some(({ ids }) => ids.has(id)))
    if (this.#isReading) this.#createdDuringRead.push(...unknown)
    else this.#queue(unknown, nowMs)
  }

  #queue(deliveries: readonly DueDelivery[], queuedMs: number): void {
    for (const delivery of deliveries) this.#waiting.push({ delivery, queuedMs })
  }
}
