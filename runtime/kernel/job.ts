/** One message on its way through an actor: what the caller waits for and what the handler sees. */
import {
  ActorUnavailable,
  type AskOptions,
  type MessageContext,
  type UnavailableReason,
} from './actor.js'
import type { Logger } from './log.js'
import { MailboxItem } from './mailbox.js'
import type { Span } from './tracing.js'

const ASK_TIMEOUT_MS = 30_000

/** What a job needs of its actor. The last three members are the verdicts that end a job. */
export interface JobOwner {
  readonly name: string
  readonly log: Logger
  /** The handler answered. */
  replied(job: Job, reply: unknown): void
  /** There will be no answer, for this reason. */
  ended(job: Job, reason: UnavailableReason): void
  /** An actor that this one asked was unavailable. The caller sees which one and why. */
  passedOn(job: Job, error: ActorUnavailable): void
}

/** An ask from another thread: answered without a promise and cancelled without a signal. */
export class Inbound implements AskOptions {
  readonly deadlineMs: number
  readonly requestId: string | undefined
  readonly share: string
  /** The span of the asking side. Undefined without tracing. */
  traceparent: string | undefined = undefined
  readonly reply: (reply: unknown) => void
  readonly refuse: (error: unknown) => void
  /** Set by the actor that accepts the ask. */
  giveUp: () => void = nothing

  constructor(
    deadlineMs: number,
    requestId: string | undefined,
    share: string,
    reply: (reply: unknown) => void,
    refuse: (error: unknown) => void,
  ) {
    this.deadlineMs = deadlineMs
    this.requestId = requestId
    this.share = share
    this.reply = reply
    this.refuse = refuse
  }
}

/**
 * A message in progress. One object is the handler's `MessageContext`, the mailbox's item and the
 * parent of the handler's own asks, because one is allocated for every ask. The abort
 * signal and the logger are created on first use, which is rare.
 */
export class Job extends MailboxItem implements MessageContext {
  /** Survives `{ ...context, timeoutMs }`, so that cancelling this job also cancels such an ask. */
  readonly origin: Job
  readonly kind: string
  requestId: string | undefined = undefined
  readonly deadlineMs: number
  message: unknown
  /** Monotonic milliseconds. */
  readonly askedMs: number
  /** Negative until the message has been started. */
  startedMs = -1
  /** The caller has an answer or a refusal. The handler may still be running. */
  settled = false
  resolve: (reply: unknown) => void = nothing
  reject: (error: Error) => void = nothing
  /** Removes the listener for the caller's departure. Called when the job is settled. */
  unfollow: (() => void) | undefined = undefined

  /** A list of all jobs of one actor that are waiting or running. */
  previousLive: Job | undefined = undefined
  nextLive: Job | undefined = undefined

  /** Its step of the trace. Undefined without tracing. */
  span: Span | undefined = undefined

  /** The id under which a remote executor sent the job, and how often it was sent. */
  wireId = 0
  sendings = 0

  readonly owner: JobOwner
  #controller: AbortController | undefined = undefined
  #log: Logger | undefined = undefined
  #abandoned = false
  /** Called when this job is given up: the asks made for it, and remote executors. */
  #dependent: ((reason: UnavailableReason) => void) | undefined = undefined
  /** More listeners than one are rare. */
  #dependents: Set<(reason: UnavailableReason) => void> | undefined = undefined

  constructor(
    owner: JobOwner,
    kind: string,
    message: unknown,
    askedMs: number,
    deadlineMs: number,
  ) {
    super()
    this.origin = this
    this.owner = owner
    this.kind = kind
    this.message = message
    this.askedMs = askedMs
    this.deadlineMs = deadlineMs
  }

  get abandoned(): boolean {
    return this.#abandoned
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#abandoned) this.#controller.abort(this.unavailable('cancelled'))
    }
    return this.#controller.signal
  }

  get log(): Logger {
    this.#log ??=
      this.requestId === undefined
        ? this.owner.log
        : this.owner.log.child({ request_id: this.requestId })
    return this.#log
  }

  /** Calls the listener when this job is given up. Returns a function that removes the listener. */
  onAbandoned(listener: (reason: UnavailableReason) => void): () => void {
    if (this.#dependent === undefined) this.#dependent = listener
    else (this.#dependents ??= new Set()).add(listener)
    return () => {
      if (this.#dependent === listener) this.#dependent = undefined
      else this.#dependents?.delete(listener)
    }
  }

  /** Gives the job up: aborts its signal and every ask that was made for it. */
  abandon(reason: UnavailableReason): void {
    if (this.#abandoned) return
    this.#abandoned = true
    this.#controller?.abort(this.unavailable(reason))
    const dependent = this.#dependent
    const dependents = this.#dependents
    this.#dependent = undefined
    this.#dependents = undefined
    dependent?.(reason)
    if (dependents !== undefined) for (const tell of dependents) tell(reason)
  }

  unavailable(reason: UnavailableReason): ActorUnavailable {
    return new ActorUnavailable(this.owner.name, this.kind, reason)
  }
}

function nothing(): void {}

/**
 * The job for which an ask is made: its options are that job's `MessageContext`, or a copy of it.
 */
export function originOf(options: AskOptions | undefined): Job | undefined {
  if (options === undefined) return undefined
  const { origin } = options as { origin?: unknown }
  return origin instanceof Job ? origin : undefined
}

/** When an ask made now expires: the earlier of its timeout and its deadline. */
export function deadlineOf(options: AskOptions | undefined, nowMs: number): number {
  if (options === undefined) return nowMs + ASK_TIMEOUT_MS
  const { timeoutMs, deadlineMs } = options
  if (deadlineMs === undefined) return nowMs + (timeoutMs ?? ASK_TIMEOUT_MS)
  return timeoutMs === undefined ? deadlineMs : Math.min(deadlineMs, nowMs + timeoutMs)
}
