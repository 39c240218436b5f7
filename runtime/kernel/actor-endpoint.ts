/**
 * The asking side of an actor, the same for every placement: accepts asks, keeps the mailbox,
 * enforces deadlines and cancellations, and counts. An `Executor` runs the messages: it calls a
 * handler on this thread or sends the message to another thread.
 */
import {
  ActorUnavailable,
  type ActorRef,
  type AnyKindRef,
  type AskOptions,
  type Lanes,
  type Leaver,
  type UnavailableReason,
  withMethods,
} from './actor.js'
import { type Clock, systemClock } from './clock.js'
import { copyMessage, discardMessage } from './envelope.js'
import { deadlineOf, Inbound, Job, type JobOwner, originOf } from './job.js'
import { type Logger, silentLogger } from './log.js'
import { Mailbox, type MailboxBounds } from './mailbox.js'
import { ActorMeter, type ActorStats, type KernelMetrics } from './metrics/metrics.js'
import type { Protocol } from './protocol.js'
import { tracing } from './tracing.js'

/** Precision of deadlines. One timer serves all asks of an actor. */
const DEADLINE_TICK_MS = 16

export interface ActorEndpointOptions {
  readonly clock?: Clock | undefined
  readonly log?: Logger | undefined
  readonly metrics?: KernelMetrics | undefined
  /** Copies messages and replies as a thread would: for tests and development. */
  readonly cloneMessages?: boolean | undefined
}

/**
 * Runs messages that left the mailbox. It ends each of them with exactly one of the endpoint's
 * verdicts.
 */
export interface Executor {
  execute(job: Job): void
  /** No caller waits for this running message any more. The executor still owes a verdict. */
  abandon?(job: Job): void
  /** Releases what the executor owns. Running messages have been abandoned before. */
  stop(): void
}

/** The lane of a message; `undefined` where it has none. */
type LaneOf = (kind: string, message: unknown) => string | undefined

/** The lanes of a definition. */
export function lanesOf(lanes: Lanes = {}): LaneOf {
  const byKind = new Map(Object.entries(lanes))
  return (kind, message) => byKind.get(kind)?.(message as never)
}

export class ActorEndpoint implements JobOwner {
  readonly name: string
  readonly log: Logger
  readonly clock: Clock
  readonly meter: ActorMeter
  readonly #laneOf: LaneOf
  readonly #mailbox: Mailbox<Job>
  readonly #cloneMessages: boolean
  #executor: Executor | undefined = undefined
  /** Called for each message that arrives before the first executor. False refuses it. */
  onEarlyMessage: ((kind: string) => boolean) | undefined = undefined
  #accepting = true
  #stopped = false
  #firstLive: Job | undefined = undefined
  #timer: NodeJS.Timeout | undefined = undefined
  #onIdle: (() => void) | undefined = undefined

  constructor(name: string, laneOf: LaneOf, bounds: MailboxBounds, options: ActorEndpointOptions) {
    this.name = name
    this.clock = options.clock ?? systemClock
    this.log = (options.log ?? silentLogger).child({ actor: name })
    this.#laneOf = laneOf
    this.#mailbox = new Mailbox(bounds)
    this.#cloneMessages = options.cloneMessages ?? false
    this.meter = new ActorMeter(name, () => ({
      waiting: this.#mailbox.waiting,
      inflight: this.#mailbox.running,
    }))
    options.metrics?.watch(this.meter)
  }

  begin(executor: Executor): void {
    this.#executor = executor
    this.resume()
  }

  get stopped(): boolean {
    return this.#stopped
  }

  ask(kind: string, message: unknown, options?: AskOptions): Promise<unknown> {
    const origin = originOf(options)
    const nowMs = this.clock.monotonicMs()
    const requestId = options?.requestId
    const job = new Job(this, kind, message, nowMs, deadlineOf(options, nowMs))
    job.requestId = requestId
    if (options?.share !== undefined) job.share = options.share
    if (tracing !== undefined) this.#trace(job, undefined)
    const answer = new Promise<unknown>((resolve, reject) => {
      job.resolve = resolve
      job.reject = reject
    })
    if (origin !== undefined) {
      this.#followOrigin(job, origin)
    } else if (options?.leaver !== undefined) {
      this.#followLeaver(job, options.leaver)
    } else if (options?.signal !== undefined) {
      this.#followSignal(job, options.signal)
    }
    this.#admitOrReject(job, nowMs)
    return answer
  }

  /** An ask from another thread. */
  receive(kind: string, message: unknown, inbound: Inbound): void {
    const nowMs = this.clock.monotonicMs()
    const job = new Job(this, kind, message, nowMs, inbound.deadlineMs)
    job.requestId = inbound.requestId
    job.share = inbound.share
    if (tracing !== undefined) this.#trace(job, inbound.traceparent)
    job.resolve = inbound.reply
    job.reject = inbound.refuse
    inbound.giveUp = () => this.#giveUp(job, 'cancelled')
    this.#admitOrReject(job, nowMs)
  }

  /** Begins the span of a message. Messages outside of a trace, such as messages of timers, get none. */
  #trace(job: Job, parent: string | undefined): void {
    if (parent === undefined && tracing!.current() === undefined) return
    const attributes = job.requestId === undefined ? undefined : { 'svc.request_id': job.requestId }
    job.span = tracing!.begin(`${this.name}.${job.kind}`, { parent, attributes })
  }

  #admitOrReject(job: Job, nowMs: number): void {
    try {
      if (!job.settled) this.#admit(job, nowMs)
    } catch (error) {
      // The message is not plain data, or its lane function threw: a defect of the caller, not of
      // the actor.
      job.settled = true
      job.unfollow?.()
      job.reject(error as Error)
    }
  }

  send(kind: string, message: unknown, options?: AskOptions): void {
    const nowMs = this.clock.monotonicMs()
    const requestId = options?.requestId
    const job = new Job(this, kind, message, nowMs, deadlineOf(options, nowMs))
    job.requestId = requestId
    if (options?.share !== undefined) job.share = options.share
    if (tracing !== undefined) this.#trace(job, undefined)
    // A sent message has no waiting caller, so it outlives the message that sent it.
    this.#admit(job, nowMs)
  }

  #admit(job: Job, nowMs: number): void {
    if (!this.#accepting) return this.#refuse(job, 'stopped')
    if (job.deadlineMs <= nowMs) return this.#refuse(job, 'deadline')
    if (this.#cloneMessages) job.message = copyMessage(job.message)
    job.lane = this.#laneOf(job.kind, job.message)
    const verdict = this.#mailbox.offer(job)
    if (verdict === 'full') return this.#refuse(job, 'mailbox_full')
    if (typeof verdict === 'object') {
      this.#delist(verdict.item)
      this.#refuse(verdict.item, 'mailbox_full')
    }
    this.meter.accepted += 1
    this.#enlist(job)
    if (verdict === 'start') this.#start(job, nowMs)
    else if (this.#executor === undefined && this.onEarlyMessage?.(job.kind) === false) {
      // Expected, so it is not counted as unavailable.
      this.#mailbox.withdraw(job)
      this.#delist(job)
      this.#settle(job, 'stopped')
    }
  }

  #refuse(job: Job, reason: UnavailableReason): void {
    this.meter.count(reason)
    this.#settle(job, reason)
  }

  #start(job: Job, nowMs: number): void {
    job.startedMs = nowMs
    this.meter.waited(nowMs - job.askedMs)
    this.#executor!.execute(job)
  }

  replied(job: Job, reply: unknown): void {
    const nowMs = this.clock.monotonicMs()
    this.meter.served(nowMs - job.startedMs)
    if (!job.settled) {
      job.settled = true
      job.unfollow?.()
      job.span?.end()
      this.meter.answered += 1
      if (this.#cloneMessages) this.#resolveCopy(job, reply)
      else job.resolve(reply)
    } else {
      discardMessage(reply)
    }
    this.#finish(job, nowMs)
  }

  ended(job: Job, reason: UnavailableReason): void {
    const nowMs = this.clock.monotonicMs()
    this.meter.served(nowMs - job.startedMs)
    if (!job.settled) this.#refuse(job, reason)
    this.#finish(job, nowMs)
  }

  passedOn(job: Job, error: ActorUnavailable): void {
    const nowMs = this.clock.monotonicMs()
    this.meter.served(nowMs - job.startedMs)
    if (!job.settled) {
      this.meter.count(error.reason)
      job.settled = true
      job.unfollow?.()
      job.span?.end(error.reason)
      job.reject(error)
    }
    this.#finish(job, nowMs)
  }

  #resolveCopy(job: Job, reply: unknown): void {
    try {
      job.resolve(copyMessage(reply))
    } catch (error) {
      job.reject(error as Error)
    }
  }

  #finish(job: Job, nowMs: number): void {
    this.#delist(job)
    this.#mailbox.finish(job)
    this.#startNext(nowMs)
  }

  #startNext(nowMs: number): void {
    for (let job = this.#mailbox.next(); job !== undefined; job = this.#mailbox.next()) {
      if (job.deadlineMs <= nowMs) {
        // Its deadline has passed: it is not started.
        this.#refuse(job, 'deadline')
        this.#delist(job)
        this.#mailbox.finish(job)
      } else {
        this.#start(job, nowMs)
      }
    }
  }

  #settle(job: Job, reason: UnavailableReason): void {
    if (job.settled) return
    job.settled = true
    job.unfollow?.()
    job.span?.end(reason)
    job.reject(job.unavailable(reason))
    job.abandon(reason)
  }

  /** Gives up a job that is waiting, running, or not yet admitted. */
  #giveUp(job: Job, reason: UnavailableReason): void {
    if (job.settled) return
    if (this.#mailbox.withdraw(job)) {
      this.#delist(job)
      this.#refuse(job, reason)
      this.#startNext(this.clock.monotonicMs())
    } else {
      this.#refuse(job, reason)
      if (job.startedMs >= 0) this.#executor?.abandon?.(job)
    }
  }

  #followOrigin(job: Job, origin: Job): void {
    if (origin.abandoned) return this.#refuse(job, 'cancelled')
    job.unfollow = origin.onAbandoned(() => this.#giveUp(job, 'cancelled'))
  }

  #followLeaver(job: Job, leaver: Leaver): void {
    if (leaver.hasLeft) return this.#refuse(job, 'cancelled')
    job.unfollow = leaver.onLeft(() => this.#giveUp(job, 'cancelled'))
  }

  #followSignal(job: Job, signal: AbortSignal): void {
    if (signal.aborted) return this.#refuse(job, 'cancelled')
    const giveUp = () => this.#giveUp(job, 'cancelled')
    signal.addEventListener('abort', giveUp, { once: true })
    job.unfollow = () => signal.removeEventListener('abort', giveUp)
  }

  /** Holds messages back while no instance can take them. */
  pause(): void {
    this.#mailbox.pause()
  }

  resume(): void {
    this.#mailbox.resume()
    this.#startNext(this.clock.monotonicMs())
  }

  /** Accepts no more messages, and waits at most `withinMs` for those that were accepted. */
  async drain(withinMs: number): Promise<boolean> {
    this.#accepting = false
    const drained = this.#firstLive === undefined || (await this.#idleWithin(withinMs))
    this.stop()
    return drained
  }

  #idleWithin(withinMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), withinMs)
      this.#onIdle = () => {
        clearTimeout(timer)
        resolve(true)
      }
    })
  }

  /** Stops immediately: refuses waiting and running messages, and aborts their signals. */
  stop(): void {
    if (this.#stopped) return
    this.#stopped = true
    this.#accepting = false
    this.#mailbox.pause()
    for (const job of this.#live()) this.#giveUp(job, 'stopped')
    this.#executor?.stop()
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  stats(): ActorStats {
    return this.meter.stats()
  }

  #live(): Job[] {
    const jobs: Job[] = []
    for (let job = this.#firstLive; job !== undefined; job = job.nextLive) jobs.push(job)
    return jobs
  }

  #enlist(job: Job): void {
    const first = this.#firstLive
    job.nextLive = first
    if (first !== undefined) first.previousLive = job
    this.#firstLive = job
    this.#timer ??= setTimeout(this.#sweep, DEADLINE_TICK_MS)
  }

  #delist(job: Job): void {
    const { previousLive, nextLive } = job
    if (previousLive !== undefined) previousLive.nextLive = nextLive
    else if (this.#firstLive === job) this.#firstLive = nextLive
    if (nextLive !== undefined) nextLive.previousLive = previousLive
    job.previousLive = undefined
    job.nextLive = undefined
    if (this.#firstLive === undefined && this.#onIdle !== undefined) this.#onIdle()
  }

  /** Gives up expired jobs. The mailbox is bounded, so a linear scan is enough. */
  readonly #sweep = (): void => {
    this.#timer = undefined
    if (this.#firstLive === undefined) return
    const nowMs = this.clock.monotonicMs()
    let job: Job | undefined = this.#firstLive
    while (job !== undefined) {
      const next: Job | undefined = job.nextLive
      if (job.deadlineMs <= nowMs) this.#giveUp(job, 'deadline')
      job = next
    }
    if (this.#firstLive !== undefined && !this.#stopped) {
      this.#timer ??= setTimeout(this.#sweep, DEADLINE_TICK_MS)
    }
  }
}

/** The typed reference to an endpoint, and the entrance for a link. */
export function refTo<P extends Protocol>(
  endpoint: ActorEndpoint,
): ActorRef<P> & { receive: ActorEndpoint['receive'] } {
  const ref: AnyKindRef<P> & { receive: ActorEndpoint['receive'] } = {
    name: endpoint.name,
    ask: (kind, message, options) => endpoint.ask(kind, message, options),
    send: (kind, message, options) => endpoint.send(kind, message, options),
    receive: (kind, message, inbound) => endpoint.receive(kind, message, inbound),
  }
  return withMethods(ref)
}
