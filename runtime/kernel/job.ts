/** One message on its way through an actor: what the asker waits on and what the handler sees. */
import {
  ActorUnavailable,
  type AskOptions,
  type MessageContext,
  type UnavailableReason,
} from './actor.js'
import type { Logger } from './log.js'
import { MailboxItem } from './mailbox.js'

/** Deadline of an ask that names none. */
export const ASK_TIMEOUT_MS = 30_000

/** What a job needs of the actor it is for; the last three are the verdicts that end it. */
export interface JobOwner {
  readonly name: string
  readonly log: Logger
  /** The handler answered. */
  replied(job: Job, reply: unknown): void
  /** There will be no answer, for this reason. */
  ended(job: Job, reason: UnavailableReason): void
  /** Another actor, asked by this one, gave no answer. The asker sees which and why. */
  passedOn(job: Job, error: ActorUnavailable): void
}

/** An ask that came from another thread: answered without a promise, given up without a signal. */
export class Inbound implements AskOptions {
  readonly deadlineMs: number
  readonly requestId: string | undefined
  readonly share: string
  readonly reply: (reply: unknown) => void
  readonly refuse: (error: unknown) => void
  /** Put in by the actor that takes the ask. */
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
 * A message in hand. It is the handler's `MessageContext`, the mailbox's item and the link between the asks
 * below it, all in one object, because one is made for every ask. The abort signal and the logger
 * are made when somebody wants them, which is seldom.
 */
export class Job extends MailboxItem implements MessageContext {
  /** Survives `{ ...context, timeoutMs }`, so that such an ask is still cancelled with this one. */
  readonly origin: Job
  readonly kind: string
  readonly requestId: string | undefined
  readonly deadlineMs: number
  message: unknown
  /** Monotonic milliseconds. */
  readonly askedMs: number
  /** Negative until the message has been started. */
  startedMs = -1
  /** The asker has had an answer or a refusal. The handler may still be running. */
  settled = false
  resolve: (reply: unknown) => void = nothing
  reject: (error: Error) => void = nothing
  /** Undoes whatever tells that the asker has left; called as the job is settled. */
  unfollow: (() => void) | undefined = undefined

  /** All jobs of one actor that are waiting or running, as a list. */
  previousLive: Job | undefined = undefined
  nextLive: Job | undefined = undefined

  /** The id under which a remote executor sent it, and how often. */
  wireId = 0
  sendings = 0

  readonly owner: JobOwner
  #controller: AbortController | undefined = undefined
  #log: Logger | undefined = undefined
  #abandoned = false
  /** Told when this job is given up: the asks made in its name, and remote runners. */
  #dependent: ((reason: UnavailableReason) => void) | undefined = undefined
  /** Those beside the one: seldom are there any. */
  #dependents: Set<(reason: UnavailableReason) => void> | undefined = undefined

  constructor(
    owner: JobOwner,
    kind: string,
    message: unknown,
    askedMs: number,
    deadlineMs: number,
    requestId: string | undefined,
  ) {
    super()
    this.origin = this
    this.owner = owner
    this.kind = kind
    this.message = message
    this.askedMs = askedMs
    this.deadlineMs = deadlineMs
    this.requestId = requestId
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

  /** Calls back when nobody waits for this job any more; the answer undoes that. */
  onAbandoned(listener: (reason: UnavailableReason) => void): () => void {
    if (this.#dependent === undefined) this.#dependent = listener
    else (this.#dependents ??= new Set()).add(listener)
    return () => {
      if (this.#dependent === listener) this.#dependent = undefined
      else this.#dependents?.delete(listener)
    }
  }

  /** Nobody waits any more: aborts the signal and everything asked in this job's name. */
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

/** The job in whose name an ask is made, when its options are a turn or a copy of one. */
export function originOf(options: AskOptions | undefined): Job | undefined {
  if (options === undefined) return undefined
  const { origin } = options as { origin?: unknown }
  return origin instanceof Job ? origin : undefined
}

/** When an ask made now is over: the earlier of its timeout and its deadline. */
export function deadlineOf(options: AskOptions | undefined, nowMs: number): number {
  if (options === undefined) return nowMs + ASK_TIMEOUT_MS
  const { timeoutMs, deadlineMs } = options
  if (deadlineMs === undefined) return nowMs + (timeoutMs ?? ASK_TIMEOUT_MS)
  return timeoutMs === undefined ? deadlineMs : Math.min(deadlineMs, nowMs + timeoutMs)
}
