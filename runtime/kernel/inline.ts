/** An actor on this thread: an ask is a function call and a microtask, nothing is serialised. */
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
import { Supervisor, SUPERVISION_DEFAULT } from './supervisor.js'

export interface SpawnOptions extends ActorEndpointOptions {
  /** In logs, metrics and errors instead of the address. */
  readonly name?: string | undefined
}

/** An actor that runs, in whatever place. */
export interface Spawned<P extends Protocol> {
  readonly ref: ActorRef<P>
  /** Ends at once: waiting and running messages are refused with `stopped`, signals aborted. */
  stop(): Promise<void>
  /** Takes no more messages, finishes those taken, and stops; false when `withinMs` were too short. */
  drain(withinMs: number): Promise<boolean>
  stats(): ActorStats
}

/**
 * Starts an actor on this thread.
 * @throws what `create` throws: an actor that cannot begin is a start-up failure, not a restart.
 */
export function spawnInline<P extends Protocol, Needs>(
  definition: ActorDefinition<P, Needs>,
  needs: Needs,
  options: SpawnOptions = {},
): Spawned<P> {
  const name = options.name ?? definition.address.name
  const cell = new ActorEndpoint(name, lanesOf(definition.lane), definition.mailbox, options)
  cell.begin(new InlineExecutor(cell, definition, needs))
  return {
    ref: refTo<P>(cell),
    stop: async () => cell.stop(),
    drain: (withinMs) => cell.drain(withinMs),
    stats: () => cell.stats(),
  }
}

type AnyHandlers = Record<string, (message: unknown, context: Job) => Promise<unknown>>

class InlineExecutor<P extends Protocol, Needs> implements Executor {
  readonly #cell: ActorEndpoint
  readonly #definition: ActorDefinition<P, Needs>
  readonly #needs: Needs
  readonly #supervisor: Supervisor
  readonly #loops: Loops
  #handlers: AnyHandlers
  #lifecycle: AbortController
  #restart: NodeJS.Timeout | undefined = undefined
  #stopped = false

  constructor(cell: ActorEndpoint, definition: ActorDefinition<P, Needs>, needs: Needs) {
    this.#cell = cell
    this.#definition = definition
    this.#needs = needs
    this.#supervisor = new Supervisor({
      policy: { ...SUPERVISION_DEFAULT, ...definition.supervision },
      clock: cell.clock,
      log: cell.log,
    })
    this.#loops = new Loops(cell.clock)
    cell.meter.readiness = () => this.#supervisor.ready && this.#loops.failing().length === 0
    cell.meter.loops = () => this.#loops.stats()
    const { handlers, lifecycle } = this.#create()
    this.#handlers = handlers
    this.#lifecycle = lifecycle
  }

  execute(job: Job): void {
    let reply: Promise<unknown>
    try {
      reply = this.#handlers[job.kind]!(job.message, job)
    } catch (error) {
      // Not within `ask`: the asker must have its promise first.
      reply = Promise.reject(error)
    }
    reply.then(
      (value) => this.#cell.replied(job, value),
      (error: unknown) => this.#failed(job, error),
    )
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#restart)
    this.#lifecycle.abort()
  }

  #failed(job: Job, error: unknown): void {
    if (error instanceof ActorUnavailable) {
      this.#cell.passedOn(job, error)
      return
    }
    if (job.settled) {
      // Given up before: the error is most likely the abort that followed.
      job.log.debug({ err: error, kind: job.kind }, 'abandoned message ended with an error')
      this.#cell.ended(job, 'cancelled')
      return
    }
    if (error instanceof DependencyUnavailable) {
      const why = error.overloaded ? 'is overloaded' : 'gives no answer'
      job.log.warn({ err: error, kind: job.kind }, `message failed: a dependency ${why}`)
      this.#cell.ended(job, error.overloaded ? 'overloaded' : 'dependency')
      return
    }
    job.log.error({ err: error, kind: job.kind }, 'message failed')
    this.#cell.ended(job, 'failed')
    this.#supervise()
  }

  /** Replaces the instance, now or later. Messages that run stay with the old one to their end. */
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
      this.#cell.meter.restarts += 1
      this.#cell.log.warn('restarted')
    } catch (error) {
      this.#cell.log.error({ err: error }, 'restart failed, the instance stays')
      this.#supervise()
    }
  }

  #create(): { handlers: AnyHandlers; lifecycle: AbortController } {
    const controller = new AbortController()
    const lifecycle: Lifecycle = {
      signal: controller.signal,
      log: this.#cell.log,
      loop: (name) => this.#loops.open(name),
      failed: (error) => {
        if (controller.signal.aborted) return
        if (error instanceof DependencyUnavailable) {
          this.#cell.log.warn({ err: error }, 'background work: a dependency gives no answer')
          return
        }
        this.#cell.log.error({ err: error }, 'background work failed')
        this.#supervise()
      },
    }
    const handlers: Handlers<P> = this.#definition.create(this.#needs, lifecycle)
    return { handlers: handlers as AnyHandlers, lifecycle: controller }
  }
}
