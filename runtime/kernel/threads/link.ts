/**
 * Two threads and the port between them: asks, answers, cancellations and streams in both
 * directions. Everything that one turn of the event loop produces travels in one frame. Both ends
 * are alike.
 */
import type { MessagePort } from 'node:worker_threads'
import {
  type ActorRef,
  ActorUnavailable,
  type AskOptions,
  type UnavailableReason,
} from '../actor.js'
import { ActorEndpoint, type Executor, refTo } from '../actor-endpoint.js'
import type { Clock } from '../clock.js'
import { Inbound, type Job } from '../job.js'
import type { Logger } from '../log.js'
import type { Address, Protocol } from '../protocol.js'
import { Slots } from './slots.js'
import { type Carrier, StreamCrossing } from './stream-crossing.js'
import { FrameReader, FrameWriter, type PostedFrame } from './wire.js'

/** Asks to one actor of the other side that may be in transit at the same time. */
const OUTSTANDING_MAX = 4096

const LinkRecord = { ask: 0, reply: 1, ended: 2, cancel: 3, name: 4 } as const

interface LinkOptions {
  readonly clock: Clock
  readonly log: Logger
  /** The actors of this side that the other side may ask. */
  readonly lookup: (actor: string) => AskedByName | undefined
  /** A log line of the other side. */
  readonly onLine?: ((line: string) => void) | undefined
}

/** An actor as a link sees it: by name, without its protocol. */
export interface AskedByName {
  ask(kind: string, message: unknown, options: AskOptions): Promise<unknown>
  /** The short way, for an actor of this thread. */
  receive?(kind: string, message: unknown, inbound: Inbound): void
}

export class Link implements Carrier {
  readonly #port: MessagePort
  readonly #clock: Clock
  readonly #log: Logger
  readonly #lookup: (actor: string) => AskedByName | undefined
  readonly #onLine: ((line: string) => void) | undefined
  readonly #streams = new StreamCrossing(this)
  readonly #writer = new FrameWriter(this.#streams)
  readonly #reader = new FrameReader(this.#streams)
  /**
   * Asks of this side that the other side works on, by id. An id is reused for the next ask:
   * records about the previous one arrive before those about the next.
   */
  readonly #pending = new Slots<Job>()
  /** Asks of the other side that this side works on, by the ids of the other side. */
  readonly #inbound: (Inbound | undefined)[] = []
  /** Names of actors and messages travel once. An ask has their numbers, one table for each direction. */
  readonly #namesSent = new Map<string, number>()
  readonly #namesReceived: string[] = []
  #scheduled = false
  #closed = false

  constructor(port: MessagePort, options: LinkOptions) {
    this.#port = port
    this.#clock = options.clock
    this.#log = options.log
    this.#lookup = options.lookup
    this.#onLine = options.onLine
    port.on('message', (posted: PostedFrame | string) => {
      if (typeof posted === 'string') this.#onLine?.(posted)
      else this.#receive(posted)
    })
  }

  get openStreams(): number {
    return this.#streams.open
  }

  /** A reference to an actor of the other side. */
  ref<P extends Protocol>(address: Address<P>): ActorRef<P> {
    const bounds = { capacity: 0, inflightMax: OUTSTANDING_MAX }
    const endpoint = new ActorEndpoint(address.name, () => undefined, bounds, {
      clock: this.#clock,
      log: this.#log,
    })
    endpoint.begin(new LinkExecutor(this, address.name))
    return refTo<P>(endpoint)
  }

  /** Sends a message to the other side. Its verdict follows when the other side has answered. */
  execute(actor: string, job: Job): void {
    if (this.#closed) return job.owner.ended(job, 'stopped')
    const id = this.#pending.add(job)
    job.wireId = id
    job.sendings += 1
    const nowMs = job.sendings === 1 ? job.startedMs : this.#clock.monotonicMs()
    // A whole number takes three bytes of the frame, and a fraction nine.
    const budgetMs = Math.round(job.deadlineMs - nowMs)
    const { kind, message, requestId, share } = job
    try {
      const to = this.#numberOf(actor)
      const kindNumber = this.#numberOf(kind)
      const ask = [LinkRecord.ask, id, to, kindNumber, message, budgetMs, requestId ?? null, share]
      this.send(job.span === undefined ? ask : [...ask, job.span.traceparent])
    } catch (error) {
      this.#pending.take(id)
      job.log.error({ err: error, kind }, 'message cannot be sent')
      job.owner.ended(job, 'failed')
    }
  }

  /** The number of a name, which the other side learns before its first use. Names come from code: they are few. */
  #numberOf(name: string): number {
    const known = this.#namesSent.get(name)
    if (known !== undefined) return known
    const number = this.#namesSent.size
    this.#writer.add([LinkRecord.name, number, name])
    this.#namesSent.set(name, number)
    return number
  }

  abandon(job: Job): void {
    if (this.#pending.get(job.wireId) === job) this.send([LinkRecord.cancel, job.wireId])
  }

  send(record: readonly unknown[]): void {
    if (this.#closed) return
    this.#writer.add(record)
    this.expect()
  }

  expect(): void {
    if (this.#scheduled || this.#closed) return
    this.#scheduled = true
    setImmediate(this.#flush)
  }

  attach(chunks: readonly Uint8Array[], bytes: number): number {
    return this.#writer.attach(chunks, bytes)
  }

  /**
   * Closes the link, when the other side is gone or no longer needed. Returns the unanswered asks.
   */
  close(reason: string): Job[] {
    if (this.#closed) return []
    this.#closed = true
    this.#port.close()
    this.#streams.close(reason)
    for (const inbound of this.#inbound.splice(0)) inbound?.giveUp()
    const unanswered = this.#pending.all()
    this.#pending.clear()
    return unanswered
  }

  readonly #flush = (): void => {
    if (this.#closed) return
    this.#streams.gather()
    this.#scheduled = false
    // The frame may be empty: its stream may have been given up in the meantime.
    if (this.#writer.length === 0) return
    const { posted, transfer } = this.#writer.take()
    this.#port.postMessage(posted, transfer)
  }

  #receive(posted: PostedFrame): void {
    if (this.#closed) return
    const { records, attachments } = this.#reader.read(posted)
    const nowMs = this.#clock.monotonicMs()
    for (const record of records) {
      const [kind, id] = record as [number, number]
      if (kind === LinkRecord.ask) this.#asked(record, nowMs)
      else if (kind === LinkRecord.reply)
        this.#pendingJob(id, (job) => job.owner.replied(job, record[2]))
      else if (kind === LinkRecord.ended) this.#pendingJob(id, (job) => endJob(job, record))
      else if (kind === LinkRecord.cancel) this.#inbound[id]?.giveUp()
      else if (kind === LinkRecord.name) this.#namesReceived[id] = record[2] as string
      else this.#streams.handle(record, attachments)
    }
  }

  #pendingJob(id: number, act: (job: Job) => void): void {
    const job = this.#pending.take(id)
    if (job !== undefined) act(job)
  }

  #asked(record: readonly unknown[], nowMs: number): void {
    const [, id, to, kindNumber, message, budgetMs, requestId, share, traceparent] = record as [
      record: number,
      id: number,
      to: number,
      kindNumber: number,
      message: unknown,
      budgetMs: number,
      requestId: string | null,
      share: string,
      traceparent: string | undefined,
    ]
    const actor = this.#namesReceived[to]!
    const kind = this.#namesReceived[kindNumber]!
    const target = this.#lookup(actor)
    if (target === undefined) return this.send([LinkRecord.ended, id, 'stopped', actor, kind])
    const inbound = new Inbound(
      nowMs + budgetMs,
      requestId ?? undefined,
      share,
      (reply) => this.#answer(id, actor, kind, reply),
      (error) => this.#refuse(id, actor, kind, error),
    )
    inbound.traceparent = traceparent
    this.#inbound[id] = inbound
    if (target.receive !== undefined) {
      target.receive(kind, message, inbound)
    } else {
      // A reference of another kind, such as one into a second thread: a signal instead of the
      // short way.
      const { deadlineMs, requestId } = inbound
      const cancel = new AbortController()
      inbound.giveUp = () => cancel.abort()
      const options = { deadlineMs, requestId, share, signal: cancel.signal }
      target.ask(kind, message, options).then(inbound.reply, inbound.refuse)
    }
  }

  #answer(id: number, actor: string, kind: string, reply: unknown): void {
    this.#inbound[id] = undefined
    try {
      this.send([LinkRecord.reply, id, reply])
    } catch (error) {
      this.#refuse(id, actor, kind, error)
    }
  }

  #refuse(id: number, actor: string, kind: string, error: unknown): void {
    this.#inbound[id] = undefined
    if (error instanceof ActorUnavailable) {
      this.send([LinkRecord.ended, id, error.reason, error.actor, error.kind])
    } else {
      this.#log.error({ err: error, actor, kind }, 'reply cannot be sent')
      this.send([LinkRecord.ended, id, 'failed', actor, kind])
    }
  }
}

function endJob(job: Job, record: readonly unknown[]): void {
  const [, , reason, actor, kind] = record as [number, number, UnavailableReason, string, string]
  if (actor === job.owner.name) job.owner.ended(job, reason)
  else job.owner.passedOn(job, new ActorUnavailable(actor, kind, reason))
}

/** Runs messages on the other side of a link. The link lives as long as its actor. */
class LinkExecutor implements Executor {
  readonly #link: Link
  readonly #actor: string

  constructor(link: Link, actor: string) {
    this.#link = link
    this.#actor = actor
  }

  execute(job: Job): void {
    this.#link.execute(this.#actor, job)
  }

  abandon(job: Job): void {
    this.#link.abandon(job)
  }

  stop(): void {}
}
