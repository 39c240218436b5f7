/**
 * All actors of a process: an actor starts after the actors that it asks, and stops before them.
 */
import { type ActorRef, type AnyKindRef, withMethods } from './actor.js'
import { invariant } from './assert.js'
import { type Clock, systemClock } from './clock.js'
import { type ActorWiring, wiringOf, type ActorContext } from './wiring.js'
import type { Spawned } from './inline.js'
import { type Logger, silentLogger } from './log.js'
import { type ActorStats, type KernelMetrics, unreadyOf } from './metrics/metrics.js'
import {
  askCycles,
  inOrderOfAsks,
  type Placement,
  placementsOf,
  strandedAsks,
} from './placement.js'
import type { Address, Protocol } from './protocol.js'
import { type SpawnedThread, spawnThread, type ThreadOptions } from './threads/thread.js'

export interface SystemOptions<Plane extends string> {
  readonly placements: readonly Placement<Plane>[]
  /** The planes that this process serves. */
  readonly planes: readonly NoInfer<Plane>[]
  /** One for each actor that runs inline or in a pool here. */
  readonly actorWirings: readonly ActorWiring[]
  /** How to start a worker thread. `name` is the one in `thread(name)`. */
  readonly thread?:
    | ((name: string) => Pick<ThreadOptions, 'entry'> &
        Partial<Omit<ThreadOptions, 'name' | 'definitions' | 'offers'>> & {
          /** Actors that the thread asks for requests from outside, besides those that its actors ask. */
          readonly asks?: readonly { readonly name: string }[] | undefined
        })
    | undefined
  /**
   * The reference, where an actor runs elsewhere in the process, such as on the main thread. Undefined: it is started
   * here.
   */
  readonly elsewhere?: ((placement: Placement<Plane>) => ActorRef<Protocol> | undefined) | undefined
  readonly clock?: Clock | undefined
  readonly log?: Logger | undefined
  readonly metrics?: KernelMetrics | undefined
  /** Copies the messages of inline asks, for tests and development. */
  readonly cloneMessages?: boolean | undefined
}

type SystemReadiness = { readonly ready: boolean; readonly unready: readonly string[] }

export interface System {
  ref<P extends Protocol>(address: Address<P>): ActorRef<P>
  /** Whether all actors are ready, with the names of those that are not. */
  readiness(): SystemReadiness
  stats(): readonly ActorStats[]
  /** Hands new start data to a running thread. */
  reconfigureThread(name: string, data: unknown): Promise<void>
  /** Finishes the requests that its threads have accepted from outside of the process. */
  finishRequests(withinMs: number): Promise<boolean>
  /** Stops askers first and finishes accepted messages. False when `withinMs` was too short. */
  drain(withinMs: number): Promise<boolean>
  stop(): Promise<void>
}

/**
 * Starts the actors of these planes.
 * @throws when the target of an ask does not run in the plane, when asks form a cycle, or when an
 * actor does not start. Actors that were started by then are stopped.
 */
export async function startSystem<Plane extends string>(
  options: SystemOptions<Plane>,
): Promise<System> {
  const system = new ActorSystem()
  try {
    await system.start(options)
  } catch (error) {
    await system.stop()
    throw error
  }
  return system
}

type Started = Pick<SpawnedThread, 'drain' | 'stop' | 'readiness'>

class ActorSystem implements System {
  readonly #refs = new Map<string, ActorRef<Protocol>>()
  readonly #stats: (() => readonly ActorStats[])[] = []
  readonly #threads = new Map<string, SpawnedThread>()
  /** In the order of their start. */
  readonly #started: Started[] = []
  #clock: Clock = systemClock
  #stopping = false

  async start<Plane extends string>(options: SystemOptions<Plane>): Promise<void> {
    const placements = inOrderOfAsks(placementsOf(options.placements, options.planes))
    refuse('asks without a target', strandedAsks(options.placements))
    refuse(
      'asks in a cycle',
      askCycles(placements).map((names) => names.join(' -> ')),
    )
    this.#clock = options.clock ?? systemClock
    for (const placement of placements) {
      const elsewhere = options.elsewhere?.(placement)
      if (elsewhere !== undefined) {
        this.#refs.set(placement.definition.address.name, elsewhere)
        continue
      }
      if (placement.place.tag !== 'thread') await this.#startHere(placement, options)
      else if (!this.#threads.has(placement.place.name)) {
        await this.#startThread(placement.place.name, placements, options)
      }
    }
  }

  async #startHere<Plane extends string>(
    { definition, place }: Placement<Plane>,
    { actorWirings, clock, log = silentLogger, metrics, cloneMessages }: SystemOptions<Plane>,
  ): Promise<void> {
    const { name } = definition.address
    const closers: (() => Promise<void>)[] = []
    const context: ActorContext = {
      ref: (address) => this.ref(address),
      place,
      onStop: (close) => void closers.push(close),
    }
    const close = async () => {
      for (const end of closers.splice(0).toReversed()) await end()
    }
    let actor: Spawned<Protocol>
    try {
      const wiring = wiringOf(actorWirings, name)
      actor = await wiring.spawn(context, { clock, log, metrics, cloneMessages })
    } catch (error) {
      await close()
      throw error
    }
    this.#refs.set(name, actor.ref)
    this.#stats.push(() => [actor.stats()])
    this.#started.push({
      drain: (withinMs) => actor.drain(withinMs).finally(close),
      stop: () => actor.stop().finally(close),
      readiness: () => {
        const unready = unreadyOf(actor.stats())
        return { ready: unready.length === 0, unready }
      },
    })
  }

  async #startThread<Plane extends string>(
    name: string,
    placements: readonly Placement<Plane>[],
    options: SystemOptions<Plane>,
  ): Promise<void> {
    const { thread, clock, log, metrics } = options
    invariant(thread !== undefined, `the system knows how to start thread ${name}`)
    const { asks: more = [], ...own } = thread(name)
    const definitions = placements
      .filter(({ place }) => place.tag === 'thread' && place.name === name)
      .map(({ definition }) => definition)
    const asked = new Set(
      [...definitions.flatMap(({ asks }) => Object.values(asks)), ...more].map(
        (address) => address.name,
      ),
    )
    const spawned = await spawnThread({
      clock,
      log,
      metrics,
      ...own,
      name,
      definitions,
      // Only the actors that its own list in `asks`: a thread cannot reach further than the table
      // says.
      offers: (actor) => (asked.has(actor) ? this.#refs.get(actor) : undefined),
    })
    this.#threads.set(name, spawned)
    this.#started.push(spawned)
    this.#stats.push(() => spawned.stats())
    for (const { address } of definitions) {
      this.#refs.set(address.name, spawned.ref(address as Address<Protocol>))
    }
  }

  ref<P extends Protocol>({ name }: Address<P>): ActorRef<P> {
    const find = () => {
      const ref = this.#refs.get(name)
      invariant(ref !== undefined, `${name} sits in this process and has been started`)
      return ref as unknown as ActorRef<P>
    }
    // Once the actor has started, its own reference: no detour on the hot path.
    if (this.#refs.has(name)) return find()
    const ref: AnyKindRef<P> = {
      name,
      ask: async (kind, message, options) => find().ask(kind, message, options),
      send: (kind, message, options) => find().send(kind, message, options),
    }
    return withMethods(ref)
  }

  readiness(): SystemReadiness {
    const unready = this.#started.flatMap((started) => started.readiness().unready)
    return { ready: unready.length === 0 && !this.#stopping, unready }
  }

  stats(): readonly ActorStats[] {
    return this.#stats.flatMap((stats) => stats())
  }

  async reconfigureThread(name: string, data: unknown): Promise<void> {
    const thread = this.#threads.get(name)
    invariant(thread !== undefined, `thread ${name} has been started`)
    await thread.reconfigure(data)
  }

  async finishRequests(withinMs: number): Promise<boolean> {
    const threads = [...this.#threads.values()]
    const finished = await Promise.all(threads.map((thread) => thread.finishRequests(withinMs)))
    return finished.every(Boolean)
  }

  async drain(withinMs: number): Promise<boolean> {
    this.#stopping = true
    const endMs = this.#clock.monotonicMs() + withinMs
    let drained = true
    for (const started of this.#started.splice(0).toReversed()) {
      const leftMs = Math.max(0, endMs - this.#clock.monotonicMs())
      drained = (await started.drain(leftMs)) && drained
    }
    return drained
  }

  async stop(): Promise<void> {
    this.#stopping = true
    for (const started of this.#started.splice(0).toReversed()) await started.stop()
  }
}

function refuse(what: string, faults: readonly string[]): void {
  invariant(faults.length === 0, `no ${what} (${faults.join('; ')})`)
}
