/** What an actor is: a protocol, its lanes and bounds, and a factory for its handlers. */
import type { Logger } from './log.js'
import type { Loop } from './loops.js'
import type { Address, Protocol } from './protocol.js'

/** What a handler knows about the message in hand. It is also an `AskOptions`: pass it on. */
export interface MessageContext {
  /** Aborted when the caller gave up, disconnected or the deadline passed. */
  readonly signal: AbortSignal
  /** What `signal` tells, for a fraction of what one costs. */
  readonly abandoned: boolean
  /** Calls back when nobody waits any more; the answer undoes that. */
  onAbandoned(listener: () => void): () => void
  /** Milliseconds on the monotonic clock after which nobody waits for the answer. */
  readonly deadlineMs: number
  /** The x-request-id of the request this message serves, where there is one. */
  readonly requestId: string | undefined
  /** Whose turn this message takes: `AskOptions.share` of the ask. */
  readonly share: string
  /** Logs with the request id and the actor's name. */
  readonly log: Logger
}

/**
 * Whoever asks and may leave before the answer. What an AbortSignal tells, for a fraction of what one
 * costs: for callers that ask for every request and are seldom left.
 */
export interface Leaver {
  readonly hasLeft: boolean
  /** Calls back once when it leaves; the answer undoes that. */
  onLeft(listener: () => void): () => void
}

export interface AskOptions {
  /** From now; the earlier of this and `deadlineMs` counts. Default 30,000. */
  readonly timeoutMs?: number | undefined
  readonly deadlineMs?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** In place of `signal`. */
  readonly leaver?: Leaver | undefined
  readonly requestId?: string | undefined
  /**
   * Whose turn the message takes where it must wait: a tenant's id. Asks made with a turn have that
   * turn's share. Default: the empty share, of the service itself.
   */
  readonly share?: string | undefined
}

export type Handlers<P extends Protocol> = {
  [K in keyof P]: (message: P[K]['message'], context: MessageContext) => Promise<P[K]['reply']>
}

type AskKind<P extends Protocol> = {
  [K in keyof P]: P[K]['reply'] extends undefined ? never : K
}[keyof P] &
  string

type SendKind<P extends Protocol> = Exclude<keyof P, AskKind<P>> & string

/** A handle on an actor, the same wherever the actor runs. */
export interface ActorRef<P extends Protocol> {
  readonly name: string
  /**
   * Sends a message and waits for its outcome.
   * @throws {ActorUnavailable} when there will be no outcome; the reason says why.
   */
  ask<K extends AskKind<P>>(
    kind: K,
    message: P[K]['message'],
    options?: AskOptions,
  ): Promise<P[K]['reply']>
  /** Sends a message nobody waits for. A full mailbox drops it and counts the drop. */
  send<K extends SendKind<P>>(kind: K, message: P[K]['message'], options?: AskOptions): void
}

/** Why an ask has no outcome. */
export type UnavailableReason =
  | 'mailbox_full'
  | 'deadline'
  | 'cancelled'
  | 'restarted'
  | 'dependency'
  | 'overloaded'
  | 'failed'
  | 'stopped'

/** Thrown by `ask` when the actor gives no outcome. The gateway maps the reason to 503 or 500. */
export class ActorUnavailable extends Error {
  override readonly name = 'ActorUnavailable'
  readonly actor: string
  readonly kind: string
  readonly reason: UnavailableReason

  constructor(actor: string, kind: string, reason: UnavailableReason) {
    super(`${actor}.${kind}: ${reason}`)
    this.actor = actor
    this.kind = kind
    this.reason = reason
  }
}

/** Every actor that `Needs` refers to, as an address: what the definition must list in `asks`. */
export type Asked<Needs> = {
  [K in keyof Needs as Needs[K] extends { ask: unknown } ? K : never]: Needs[K] extends ActorRef<
    infer P
  >
    ? Address<P>
    : never
}

export interface ActorDefinition<P extends Protocol, Needs> {
  readonly address: Address<P>
  /** Every actor this one may ask. Complete by type, checked for cycles and stranded asks at start. */
  readonly asks: Asked<Needs>
  /** `capacity` messages may wait, `inflightMax` run side by side. */
  readonly mailbox: { readonly capacity: number; readonly inflightMax: number }
  /**
   * The lane of a message: messages of one lane run one after another. A message kind without an entry
   * has no lane, nor has a message whose function returns `undefined`.
   */
  readonly lane?: { readonly [K in keyof P]?: (message: P[K]['message']) => string | undefined }
  /** A fresh instance; called again after a restart. */
  readonly create: (needs: Needs, lifecycle: Lifecycle) => Handlers<P>
  /** What follows a failure; see `supervisor.ts` for the values taken where this says nothing. */
  readonly supervision?: Partial<SupervisionPolicy>
}

/** What an instance knows about its own life, for work that is not the answer to a message. */
export interface Lifecycle {
  /** Aborted when this instance is replaced or the actor stops: end loops and timers then. */
  readonly signal: AbortSignal
  /** Logs with the actor's name. */
  readonly log: Logger
  /**
   * A background loop of the actor, by a name that says what it does. Report every round: a loop that has
   * only failed for a minute makes the process not ready (`loops.ts`).
   */
  loop(name: string): Loop
  /** Work of the instance's own failed: treated as a message that failed in the same way. */
  failed(error: unknown): void
}

/** How much failure is normal, and what to do about it. */
export interface SupervisionPolicy {
  /** `restart`: a fresh instance after each failure. `resume`: keep the instance, count the failure. */
  readonly onFailure: 'restart' | 'resume'
  /** More failures than this within the window turn readiness off. */
  readonly restartsMax: number
  readonly windowMs: number
  /** Wait before the second attempt in a row; doubled up to `backoffMsMax`. */
  readonly backoffMs: number
  readonly backoffMsMax: number
}

/** Message kind -> its lane, for a kind that has lanes. */
export type Lanes = Readonly<Record<string, ((message: never) => string | undefined) | undefined>>

/** A definition of any protocol and needs: what the machinery around an actor uses. */
export interface AnyDefinition {
  readonly address: { readonly name: string; readonly idempotent: readonly string[] }
  readonly asks: Readonly<Record<string, { readonly name: string }>>
  readonly mailbox: { readonly capacity: number; readonly inflightMax: number }
  readonly lane?: Lanes
  readonly supervision?: Partial<SupervisionPolicy>
}

/** A reference of whatever protocol. */
export interface AnyRef {
  readonly name: string
  ask(...input: never): Promise<unknown>
}

export function defineActor<P extends Protocol, Needs>(
  definition: ActorDefinition<P, Needs>,
): ActorDefinition<P, Needs> {
  return definition
}
