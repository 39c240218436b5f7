/** The definition of an actor: a protocol, its lanes and bounds, and a factory for its handlers. */
import type { Logger } from './log.js'
import type { Loop } from './loops.js'
import type { Address, Protocol } from './protocol.js'

/**
 * What a handler knows about its message. It is also an `AskOptions`: pass it to the asks that the
 * handler makes.
 */
export interface MessageContext {
  /** Aborted when the caller gives up, disconnects, or the deadline passes. */
  readonly signal: AbortSignal
  /** `signal.aborted` without the cost of creating a signal. */
  readonly abandoned: boolean
  /**
   * Calls the listener when the caller no longer waits. Returns a function that removes the
   * listener.
   */
  onAbandoned(listener: () => void): () => void
  /** The deadline, in milliseconds of the monotonic clock. */
  readonly deadlineMs: number
  /** The x-request-id of the HTTP request that this message serves, if there is one. */
  readonly requestId: string | undefined
  /** The share that this message counts against: `AskOptions.share` of the ask. */
  readonly share: string
  /** Logs with the request id and the actor's name. */
  readonly log: Logger
}

/**
 * A caller that may leave before the answer arrives. A cheap replacement for an AbortSignal, for
 * callers that ask on every request and rarely leave.
 */
export interface Leaver {
  readonly hasLeft: boolean
  /**
   * Calls the listener once when the caller leaves. Returns a function that removes the listener.
   */
  onLeft(listener: () => void): () => void
}

export interface AskOptions {
  /** From now; the earlier of this and `deadlineMs` applies. Default 30,000. */
  readonly timeoutMs?: number | undefined
  readonly deadlineMs?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Replaces `signal`. */
  readonly leaver?: Leaver | undefined
  readonly requestId?: string | undefined
  /**
   * The tenant's id that a waiting message counts against, for fair scheduling. An ask that is made
   * with a `MessageContext` inherits its share. Default: the empty share, which belongs to the
   * service.
   */
  readonly share?: string | undefined
}

export type Handlers<P extends Protocol> = {
  [K in keyof P]: (message: P[K]['message'], context: MessageContext) => Promise<P[K]['reply']>
}

/** A handler as a function of what its actor needs. */
export type Handler<Needs, P extends Protocol, K extends keyof P> = (
  needs: Needs,
  message: P[K]['message'],
  context: MessageContext,
) => Promise<P[K]['reply']>

type AskKind<P extends Protocol> = {
  [K in keyof P]: P[K]['reply'] extends undefined ? never : K
}[keyof P] &
  string

type SendKind<P extends Protocol> = Exclude<keyof P, AskKind<P>> & string

/**
 * A reference to an actor, the same wherever the actor runs. Each message with an outcome is a
 * method: `tokens.verify(message, context)` asks the actor `tokens`. The method leads an editor to
 * the message in `protocol.ts`.
 */
export type ActorRef<P extends Protocol> = AnyKindRef<P> & {
  /** @throws {ActorUnavailable} when there will be no outcome. Its `reason` says why. */
  readonly [K in keyof P as P[K]['reply'] extends undefined ? never : K]: (
    message: P[K]['message'],
    options?: AskOptions,
  ) => Promise<P[K]['reply']>
}

/** A reference for messages whose kind is a value. `ActorRef` has the typed methods. */
export interface AnyKindRef<P extends Protocol> {
  readonly name: string
  /** Carries the protocol as a phantom type. */
  readonly protocol?: P
  /**
   * Sends a message and waits for its outcome.
   * @throws {ActorUnavailable} when there will be no outcome. Its `reason` says why.
   */
  ask<K extends AskKind<P>>(
    kind: K,
    message: P[K]['message'],
    options?: AskOptions,
  ): Promise<P[K]['reply']>
  /**
   * Sends a message without waiting for an answer. A full mailbox drops the message and counts the
   * drop.
   */
  send<K extends SendKind<P>>(kind: K, message: P[K]['message'], options?: AskOptions): void
}

/**
 * Adds the typed methods to a reference. A method is made when it is first called and then kept on
 * the reference, so a later call costs no more than `ask`.
 */
export function withMethods<P extends Protocol, Ref extends AnyKindRef<P>>(
  ref: Ref,
): Ref & ActorRef<P> {
  return Object.setPrototypeOf(ref, METHODS) as Ref & ActorRef<P>
}

const METHODS: object = new Proxy(Object.prototype, {
  get(target, kind, ref: AnyKindRef<Record<string, { message: unknown; reply: { tag: string } }>>) {
    // An object with `then` is a promise to `await`. Symbols and `toString` are not messages.
    if (typeof kind === 'symbol' || kind === 'then' || kind === 'protocol' || kind in target)
      return Reflect.get(target, kind, ref)
    const method = (message: unknown, options?: AskOptions) => ref.ask(kind, message, options)
    Object.defineProperty(ref, kind, { value: method })
    return method
  },
})

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

/** Every actor that `Needs` refers to, as an address: the definition must list them in `asks`. */
export type Asked<Needs> = {
  [K in keyof Needs as NonNullable<Needs[K]> extends { ask: unknown } ? K : never]-?: NonNullable<
    Needs[K]
  > extends AnyKindRef<infer P>
    ? Address<P>
    : never
}

interface ActorFacts<P extends Protocol, Needs> {
  readonly address: Address<P>
  /**
   * Every actor that this one may ask. The type makes the list complete. `startSystem` checks it
   * for cycles and for actors that are missing.
   */
  readonly asks: Asked<Needs>
  /** At most `capacity` messages wait, and at most `inflightMax` run concurrently. */
  readonly mailbox: { readonly capacity: number; readonly inflightMax: number }
  /**
   * The lane of a message: messages of one lane run one after another. A message kind without an entry
   * has no lane, nor has a message whose function returns `undefined`.
   */
  readonly lane?: { readonly [K in keyof P]?: (message: P[K]['message']) => string | undefined }
  /** The reaction to a failure. `supervisor.ts` has the defaults. */
  readonly supervision?: Partial<SupervisionPolicy>
}

export interface ActorDefinition<P extends Protocol, Needs> extends ActorFacts<P, Needs> {
  /** Creates an instance, at the start and after a restart. */
  readonly create: (needs: Needs, lifecycle: Lifecycle) => Handlers<P>
}

/** An actor whose handlers are functions of its needs, and that keeps nothing in memory. */
interface ActorTable<P extends Protocol, Needs> extends ActorFacts<P, Needs> {
  readonly handlers: { readonly [K in keyof P]: Handler<Needs, P, K> }
}

/** The lifetime of an instance, for work that is not the answer to a message. */
export interface Lifecycle {
  /**
   * Aborted when this instance is replaced or the actor stops. Loops and timers of the instance
   * must end then.
   */
  readonly signal: AbortSignal
  /** Logs with the actor's name. */
  readonly log: Logger
  /**
   * A background loop of the actor. The name says what the loop does. Report every round: after a
   * minute of nothing but failures the process is not ready (`loops.ts`).
   */
  loop(name: string): Loop
  /**
   * Reports that background work of the instance failed: treated like a message that failed in the
   * same way.
   */
  failed(error: unknown): void
}

/** How many failures are normal, and the reaction to more. */
export interface SupervisionPolicy {
  /**
   * `restart`: a fresh instance after each failure. `resume`: keep the instance and count the
   * failure.
   */
  readonly onFailure: 'restart' | 'resume'
  /** More failures than this within `windowMs` make the actor not ready. */
  readonly restartsMax: number
  readonly windowMs: number
  /**
   * Wait before the second restart in a row. Doubled for each further one, up to `backoffMsMax`.
   */
  readonly backoffMs: number
  readonly backoffMsMax: number
}

/** Message kind -> its lane, for a kind that has lanes. */
export type Lanes = Readonly<Record<string, ((message: never) => string | undefined) | undefined>>

/** A definition of any protocol and needs: what the machinery around an actor uses. */
export interface AnyDefinition {
  readonly address: {
    readonly name: string
    readonly idempotent: readonly string[]
    readonly passive: readonly string[]
  }
  readonly asks: Readonly<Record<string, { readonly name: string }>>
  readonly mailbox: { readonly capacity: number; readonly inflightMax: number }
  readonly lane?: Lanes
  readonly supervision?: Partial<SupervisionPolicy>
}

/** A reference of any protocol. */
export interface AnyRef {
  readonly name: string
  ask(...input: never): Promise<unknown>
}

export function defineActor<P extends Protocol, Needs>(
  definition: ActorDefinition<P, Needs> | ActorTable<P, Needs>,
): ActorDefinition<P, Needs> {
  if ('create' in definition) return definition
  const { handlers, ...facts } = definition
  return { ...facts, create: (needs) => boundHandlers(handlers, needs) }
}

/** The handlers of a table with what they need: for an actor that makes some of it in `create`. */
export function boundHandlers<P extends Protocol, Needs>(
  handlers: ActorTable<P, Needs>['handlers'],
  needs: Needs,
): Handlers<P> {
  const bound =
    <K extends keyof P>(kind: K): Handlers<P>[K] =>
    (message, context) =>
      handlers[kind](needs, message, context)
  const kinds = Object.keys(handlers) as (keyof P & string)[]
  return Object.fromEntries(kinds.map((kind) => [kind, bound(kind)])) as Handlers<P>
}
