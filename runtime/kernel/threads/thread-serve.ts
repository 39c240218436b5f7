/**
 * The inside of a worker thread: starts actors and serves them over the link to the main thread.
 */
import { performance } from 'node:perf_hooks'
import { workerData } from 'node:worker_threads'
import { expose } from 'comlink'
import { type ActorRef, type AnyKindRef, withMethods } from '../actor.js'
import { invariant } from '../assert.js'
import { type Clock, systemClock } from '../clock.js'
import type { ActorContext, ActorWiring } from '../wiring.js'
import type { Spawned } from '../inline.js'
import { type AskedByName, Link } from './link.js'
import { createLogger, type Logger } from '../log.js'
import { type ActorStats, createMetrics, type Metrics, unreadyOf } from '../metrics/metrics.js'
import { thread } from '../placement.js'
import type { Address, Protocol } from '../protocol.js'
import { endpointOf, type ThreadControl, type ThreadPorts } from './thread-control.js'

/** What a thread builds its actors from. */
export interface ThreadStart {
  readonly name: string
  /** The `startData` of `spawnThread`: plain data, mostly settings. */
  readonly data: unknown
  /** An actor of the main thread, or of another thread, that is offered to this one. */
  ref<P extends Protocol>(address: Address<P>): ActorRef<P>
  readonly clock: Clock
  /** Writes where the main thread's logger writes. */
  readonly log: Logger
  /** Its families appear in the exposition of the process. */
  readonly metrics: Metrics
}

export interface ThreadPlacements {
  /** In the order in which they are started; stopped in reverse. */
  readonly actors: readonly ActorWiring[]
  /** Called once the actors are started, before the thread counts as started. */
  readonly opened?: (() => Promise<void>) | undefined
  /** Closes what the actors share, after they have been drained. */
  readonly close?: (() => Promise<void>) | undefined
  readonly reconfigure?: ((data: unknown) => Promise<void>) | undefined
  /** What is not ready besides the actors above. */
  readonly unready?: (() => readonly string[]) | undefined
  /** Actors of the thread besides those above. */
  readonly stats?: (() => readonly ActorStats[]) | undefined
  /**
   * Ends what arrives from outside of the process, such as HTTP requests, before anything is drained. False at the
   * time limit.
   */
  readonly finishRequests?: ((withinMs: number) => Promise<boolean>) | undefined
}

/**
 * Serves actors to the thread that spawned this one. Call it once, from the entry given to
 * `spawnThread`. `placements` is called when the host sends the start command.
 */
export function serveThread(options: {
  placements: (start: ThreadStart) => ThreadPlacements | Promise<ThreadPlacements>
}): void {
  const ports = (workerData as { svcThread?: ThreadPorts } | null)?.svcThread
  invariant(ports !== undefined, 'this is a worker thread of spawnThread')
  const { name, data, logLevel } = ports
  process.once('exit', () => {
    const exited = new Int32Array(ports.exited)
    Atomics.store(exited, 0, 1)
    Atomics.notify(exited, 0)
  })
  // One post per line, not batched, so that the last lines of a dying thread arrive.
  const destination = { write: (line: string) => ports.link.postMessage(line) }
  const log = createLogger({ level: logLevel, destination }).child({ thread: name })
  const actors = new Map<string, Spawned<Protocol>>()
  const link = new Link(ports.link, {
    clock: systemClock,
    log,
    lookup: (actor) => actors.get(actor)?.ref as AskedByName | undefined,
  })
  const closers: (() => Promise<void>)[] = []
  const context: ActorContext = {
    ref: (address) => nearestRef(address, link.ref(address), actors),
    place: thread(name),
    onStop: (close) => void closers.push(close),
  }
  const start: ThreadStart = {
    name,
    data,
    ref: context.ref,
    clock: systemClock,
    log,
    metrics: createMetrics(),
  }
  let placed: ThreadPlacements | undefined
  let loop = performance.eventLoopUtilization()

  const control: ThreadControl = {
    async start() {
      placed = await options.placements(start)
      for (const wiring of placed.actors) {
        // No meter here: the endpoint on the asking side counts, because it sees the whole way.
        const spawned = await wiring.spawn(context, { clock: systemClock, log })
        actors.set(wiring.actor, spawned)
      }
      await placed.opened?.()
      return [...actors.keys()]
    },
    health() {
      const now = performance.eventLoopUtilization()
      const { utilization } = performance.eventLoopUtilization(now, loop)
      loop = now
      const stats = control.stats()
      return {
        utilization,
        heapUsedBytes: process.memoryUsage().heapUsed,
        unready: [...stats.flatMap(unreadyOf), ...(placed?.unready?.() ?? [])],
        stats: placed?.stats?.() ?? [],
        loops: stats.map(({ actor, loops }) => ({ actor, loops })),
      }
    },
    async reconfigure(changed) {
      await placed?.reconfigure?.(changed)
    },
    stats: () => [...actors.values()].map((actor) => actor.stats()),
    metrics: () => start.metrics.snapshot(),
    finishRequests: async (withinMs) => (await placed?.finishRequests?.(withinMs)) ?? true,
    exit: () => process.exit(),
    async drain(withinMs) {
      let drained = true
      for (const actor of [...actors.values()].toReversed()) {
        drained = (await actor.drain(withinMs)) && drained
      }
      for (const close of closers.toReversed()) await close()
      await placed?.close?.()
      return drained
    },
  }
  expose(control, endpointOf(ports.control))
}

/** Asks an actor of this thread directly, and any other one over the link. */
function nearestRef<P extends Protocol>(
  { name }: Address<P>,
  remote: ActorRef<P>,
  actors: ReadonlyMap<string, Spawned<Protocol>>,
): ActorRef<P> {
  const nearest = () => (actors.get(name)?.ref as unknown as ActorRef<P> | undefined) ?? remote
  const ref: AnyKindRef<P> = {
    name,
    ask: (kind, message, options) => nearest().ask(kind, message, options),
    send: (kind, message, options) => nearest().send(kind, message, options),
  }
  return withMethods(ref)
}
