/** An actor on this thread: an ask is a function call and a microtask, without serialisation. */
import {
  type ActorDefinition,
  type ActorRef,
  ActorUnavailable,
  type Handlers,
  type Lifecycle,
} from './actor.js'
import {
  ActorEndpoint,
  type ActorEndpointOptions,
  type Executor,
  lanesOf,
  refTo,
} from './actor-endpoint.js'
import { DependencyUnavailable } from './dependency.js'
import type { Job } from './job.js'
import { Loops } from './loops.js'
import type { ActorStats } from './metrics/metrics.js'
import type { Protocol } from './protocol.js'
import { tracing } from './tracing.js'
import { Supervisor, SUPERVISION_DEFAULT } from './supervisor.js'

export interface SpawnOptions extends ActorEndpointOptions {
  /** Replaces the address in logs, metrics and errors. */
  readonly name?: string | undefined
}

/** A running actor, in any placement. */
export interface Spawned<P extends Protocol> {
  readonly ref: ActorRef<P>
  /**
   * Stops immediately: refuses waiting and running messages with `stopped`, and aborts their signals.
   */
  stop(): Promise<void>
  /**
   * Accepts no more messages, finishes those that were accepted, and stops. False when `withinMs`
   * was too short.
   */
  drain(withinMs: number): Promise<boolean>
  stats(): ActorStats
}

/**
 * Starts an actor on this thread.
 * @throws what `create` throws: an actor that cannot start is a start-up failure, not a restart.
 */
export function spawnInline<P extends Protocol, Needs>(
  definition: ActorDefinition<P, Needs>,
  needs: Needs,
  options: SpawnOptions = {},
): Spawned<P> {
  const name = options.name ?? definition.address.name
  const endpoint = new ActorEndpoint(name, lanesOf(definition.lane), definition.mailbox, options)
  endpoint.begin(new InlineExecutor(endpoint, definition, needs))
  return {
    ref: refTo<P>(endpoint),
    stop: async () => endpoint.stop(),
    drain: (withinMs) => endpoint.drain(withinMs),
    stats: () => endpoint.stats(),
  }
}

type AnyHandlers = Record<string, (message: unknown, context: Job) => Promise<unknown>>

class InlineExecutor<P extends Protocol, Needs> implements Executor {
  readonly #endpoint: ActorEndpoint
  readonly #definition: ActorDefinition<P, Needs>
  readonly #needs: Needs
  readonly #supervisor: Supervisor
  readonly #loops: Loops
  #handlers: AnyHandlers
  #lifecycle: AbortController
  #restart: NodeJS.Timeout | undefined = undefined
  #stopped = false

  constructor(endpoint: ActorEndpoint, definition: ActorDefinition<P, Needs>, needs: Needs) {
    this.#endpoint = endpoint
    this.#definition = definition
    this.#needs = needs
    this.#supervisor = new Supervisor({
      policy: { ...SUPERVISION_DEFAULT, ...definition.supervision },
      clock: endpoint.clock,
      log: endpoint.log,
    })
    this.#loops = new Loops(endpoint.clock)
    endpoint.meter.readiness = () => this.#supervisor.ready && this.#loops.failing().length === 0
    endpoint.meter.loops = () => this.#loops.stats()
    const { handlers, lifecycle } = this.#create()
    this.#handlers = handlers
    this.#lifecycle = lifecycle
  }

  execute(job: Job): void {
    let reply: Promise<unknown>
    try {
      reply = this.#handle(job)
    } catch (error) {
      // Not synchronously within `ask`: the caller must get its promise first.
      reply = Promise.reject(error)
    }
    reply.then(
      (value) => this.#endpoint.replied(job, value),
      (error: unknown) => this.#failed(job, error),
    )
  }

  #handle(job: Job): Promise<unknown> {
    const handler = this.#handlers[job.kind]!
    if (job.span === undefined || tracing === undefined) return handler(job.message, job)
    return tracing.within(job.span, () => handler(job.message, job))
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#restart)
    this.#lifecycle.abort()
  }

  #failed(job: Job, error: unknown): void {
    if (error instanceof ActorUnavailable) {
      this.#endpoint.passedOn(job, error)
      return
    }
    if (job.settled) {
      // The caller gave up before: the error is most likely the abort that followed.
      job.log.debug({ err: error, kind: job.kind }, 'abandoned message ended with an error')
      this.#endpoint.ended(job, 'cancelled')
      return
    }
    if (error instanceof DependencyUnavailable) {
      const why = error.overloaded ? 'overloaded' : 'unavailable'
      job.log.warn({ err: error, kind: job.kind }, `message failed: a dependency is ${why}`)
      this.#endpoint.ended(job, error.overloaded ? 'overloaded' : 'dependency')
      return
    }
    job.log.error({ err: error, kind: job.kind }, 'message failed')
    this.#endpoint.ended(job, 'failed')
    this.#supervise()
  }

  /**
   * Replaces the instance, now or after a wait. Running messages stay with the old instance until
   * they end.
   */
  #supervise(): void {
    if (this.#stopped) return
    const verdict = this.#supervisor.failed()
    if (verdict.tag === 'resume' || this.#restart !== undefined) return
    if (verdict.afterMs === 0) this.#replace()
    else {
      this.#restart = setTimeout(() => {
        this.#restart = undefined
        this.#replace()
      }, verdict.afterMs).unref()
    }
  }

  #replace(): void {
    try {
      const { handlers, lifecycle } = this.#create()
      this.#lifecycle.abort()
      this.#handlers = handlers
      this.#lifecycle = lifecycle
      this.#endpoint.meter.restarts += 1
      this.#endpoint.log.warn('restarted')
    } catch (error) {
      this.#endpoint.log.error({ err: error }, 'restart failed, the instance stays')
      this.#supervise()
    }
  }

  #create(): { handlers: AnyHandlers; lifecycle: AbortController } {
    const controller = new AbortController()
    const lifecycle: Lifecycle = {
      signal: controller.signal,
      log: this.#endpoint.log,
      loop: (name) => this.#loops.open(name),
      failed: (error) => {
        if (controller.signal.aborted) return
        if (error instanceof DependencyUnavailable) {
          this.#endpoint.log.warn(
            { err: error },
            'background work failed: a dependency is unavailable',
          )
          return
        }
        this.#endpoint.log.error({ err: error }, 'background work failed')
        this.#supervise()
      },
    }
    const handlers: Handlers<P> = this.#definition.create(this.#needs, lifecycle)
    return { handlers: handlers as AnyHandlers, lifecycle: controller }
  }
}
