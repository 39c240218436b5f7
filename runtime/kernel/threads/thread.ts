/**
 * Actors on another thread, seen from outside. Each mailbox stays here, on the asking side:
 * refusals are immediate, messages that have not been started survive a crash of the thread, and at
 * most `inflightMax` messages of an actor are lost with it.
 *
 *  A thread that exits, or misses its heartbeat, is replaced after a wait. Asks in flight fail with
 * `restarted`, unless their address lists them as idempotent: those are sent once more. When a
 * thread fails too often, its actors are not ready. Restarts continue.
 */
import { MessageChannel, type MessagePort, type ResourceLimits, Worker } from 'node:worker_threads'
import { type Remote, releaseProxy, wrap } from 'comlink'
import type { ActorRef, AnyDefinition, AnyRef, SupervisionPolicy } from '../actor.js'
import { invariant } from '../assert.js'
import { ActorEndpoint, type Executor, lanesOf, refTo } from '../actor-endpoint.js'
import { type Clock, systemClock } from '../clock.js'
import type { Job } from '../job.js'
import { type AskedByName, Link } from './link.js'
import { type Logger, lineWriter, type LogLevel, silentLogger } from '../log.js'
import type { ActorStats, KernelMetrics } from '../metrics/metrics.js'
import type { MetricFamily } from '../metrics/plain-metrics.js'
import type { ThreadStart } from '../placement.js'
import type { Address, Protocol } from '../protocol.js'
import { Supervisor, SUPERVISION_DEFAULT } from '../supervisor.js'
import {
  endpointOf,
  type ThreadControl,
  type ThreadHealth,
  type ThreadPorts,
} from './thread-control.js'

const STOP_MS = 1_000
const METRICS_MS = 1_000
/** The end of a process waits this long for a thread that cannot be killed. */
const PROCESS_EXIT_MS = 2_000
/** A thread that cannot be killed gets this time for its exit. */
const EXIT_MS = 10_000

export interface ThreadOptions {
  readonly name: string
  /** A compiled module that calls `serveThread`. */
  readonly entry: URL
  /** The actors that the entry starts under this name. */
  readonly definitions: readonly AnyDefinition[]
  /** Plain data for the entry, mostly settings. */
  readonly startData?: unknown
  /**
   * Actors that the thread may ask, looked up at each ask: those that its definitions list in
   * `asks`.
   */
  readonly offers?: ((actor: string) => AnyRef | undefined) | undefined
  readonly clock?: Clock | undefined
  readonly log?: Logger | undefined
  readonly metrics?: KernelMetrics | undefined
  readonly supervision?: Partial<SupervisionPolicy> | undefined
  /** Between heartbeats. Default 2,000. */
  readonly heartbeatMs?: number | undefined
  /** A thread that has not answered for this long counts as hung. Default 15,000. */
  readonly hungMs?: number | undefined
  /**
   * `at_first_use`: the thread starts with the first message to one of its actors, and counts as ready before. A
   * failed start is repeated like a crash. Default: `at_start`.
   */
  readonly starts?: ThreadStart | undefined
  /**
   * The first use of a worker, which receives no messages: with `at_first_use` the thread also starts when this promise
   * resolves. A rejection counts as a use. The signal aborts when the wait has no purpose any more.
   */
  readonly firstUse?: ((signal: AbortSignal) => Promise<void>) | undefined
  /** From spawn until the actors are placed. Default 30,000. */
  readonly startMs?: number | undefined
  readonly resourceLimits?: ResourceLimits | undefined
  /**
   * False for a thread whose native handles only the thread can close: Node aborts the process when such a thread is
   * terminated. It ends by its own `process.exit`, and a hung one is reported as not ready and not killed. Default:
   * true.
   */
  readonly canBeKilled?: boolean | undefined
  /** Requests also arrive from outside of the process. They are finished first in a drain. Default: false. */
  readonly listens?: boolean | undefined
  /** Environment of the thread. Default: a copy of the process's. */
  readonly env?: Record<string, string> | undefined
}

export interface SpawnedThread {
  readonly name: string
  /** A reference that stays valid across restarts. Throws for an actor that does not run here. */
  ref<P extends Protocol>(address: Address<P>): ActorRef<P>
  /** Whether it is up and not failing too often, with the actors that are not ready. */
  readiness(): { ready: boolean; unready: readonly string[] }
  stats(): readonly ActorStats[]
  /** Hands new start data to the thread, now and after each restart. */
  reconfigure(data: unknown): Promise<void>
  /** Finishes what arrives from outside of the process, without a drain. False when `withinMs` was too short. */
  finishRequests(withinMs: number): Promise<boolean>
  /**
   * Accepts no more messages, finishes the accepted ones and the streams they opened, and stops.
   */
  drain(withinMs: number): Promise<boolean>
  stop(): Promise<void>
}

/**
 * Starts a thread and waits until its actors are placed, or prepares the start at the first use.
 * @throws when it cannot start.
 */
export async function spawnThread(options: ThreadOptions): Promise<SpawnedThread> {
  const host = new ThreadHost(options)
  if (options.starts === 'at_first_use') host.launchAtFirstUse()
  else await host.launch()
  return host
}

/** One worker thread: replaced as a whole after a crash. */
type Incarnation = {
  worker: Worker
  exited: Promise<void>
  /** 1 at the exit of the thread. */
  lastWord: Int32Array
  link: Link
  control: Remote<ThreadControl>
  controlPort: MessagePort
}

class ThreadHost implements SpawnedThread {
  readonly name: string
  readonly #options: ThreadOptions
  readonly #clock: Clock
  readonly #log: Logger
  readonly #supervisor: Supervisor
  readonly #placements = new Map<string, { endpoint: ActorEndpoint; executor: ThreadExecutor }>()
  readonly #excluded: (() => void) | undefined
  #startData: unknown
  #now: Incarnation | undefined = undefined
  #health: ThreadHealth | undefined = undefined
  #restarts = 0
  #hung = false
  /** A thread that starts at its first use is ready until a start fails. */
  #firstUse: 'awaited' | 'starting' | 'over' = 'over'
  readonly #used = new AbortController()
  #timer: NodeJS.Timeout | undefined = undefined
  #ending = false

  constructor(options: ThreadOptions) {
    this.name = options.name
    this.#options = options
    this.#startData = options.startData
    this.#clock = options.clock ?? systemClock
    this.#log = (options.log ?? silentLogger).child({ thread: options.name })
    this.#supervisor = new Supervisor({
      policy: { ...SUPERVISION_DEFAULT, ...options.supervision },
      clock: this.#clock,
      log: this.#log,
    })
    for (const { address, mailbox, lane } of options.definitions) {
      const endpoint = new ActorEndpoint(address.name, lanesOf(lane), mailbox, options)
      const executor = new ThreadExecutor(endpoint, address)
      endpoint.pause()
      endpoint.meter.readiness = () =>
        !this.readiness().unready.some((one) => one.split(':')[0] === address.name)
      endpoint.meter.loops = () =>
        this.#health?.loops.find(({ actor }) => actor === address.name)?.loops ?? []
      this.#placements.set(address.name, { endpoint, executor })
    }
    this.#excluded = options.metrics?.include(() => this.#families())
  }

  ref<P extends Protocol>(address: Address<P>): ActorRef<P> {
    const placement = this.#placements.get(address.name)
    invariant(placement !== undefined, `${address.name} sits on thread ${this.name}`)
    return refTo<P>(placement.endpoint)
  }

  readiness(): { ready: boolean; unready: readonly string[] } {
    if (this.#firstUse !== 'over') return { ready: true, unready: [] }
    const fit = this.#now !== undefined && this.#supervisor.ready && !this.#hung
    const unready = fit ? (this.#health?.unready ?? []) : this.#all()
    return { ready: unready.length === 0, unready }
  }

  /** The actors of the thread, or the thread when it only asks. */
  #all(): readonly string[] {
    return this.#placements.size > 0 ? [...this.#placements.keys()] : [this.name]
  }

  stats(): readonly ActorStats[] {
    const own = [...this.#placements.values()].map(({ endpoint }) => endpoint.stats())
    return [...own, ...(this.#health?.stats ?? [])]
  }

  async reconfigure(data: unknown): Promise<void> {
    this.#startData = data
    await this.#now?.control.reconfigure(data)
  }

  launchAtFirstUse(): void {
    this.#firstUse = 'awaited'
    const use = () => {
      if (this.#firstUse !== 'awaited' || this.#ending) return
      this.#firstUse = 'starting'
      this.#used.abort()
      const started = this.launch().catch((error: unknown) => this.#notStarted(error))
      void started.then(() => {
        this.#firstUse = 'over'
      })
    }
    for (const { address } of this.#options.definitions) {
      this.#placements.get(address.name)!.endpoint.onEarlyMessage = (kind) => {
        if (address.passive.includes(kind)) return false
        use()
        return true
      }
    }
    void this.#options.firstUse?.(this.#used.signal).then(use, use)
  }

  async launch(): Promise<void> {
    const incarnation = this.#incarnate()
    const { worker, link, control } = incarnation
    let failed: ((error: Error) => void) | undefined
    const died = new Promise<never>((_, reject) => {
      failed = reject
    })
    worker.on('error', (error: Error) => {
      this.#log.error({ err: error }, 'thread failed')
      failed?.(new Error(`thread ${this.name}: ${error.message}`, { cause: error }))
    })
    worker.on('exit', (code) => {
      failed?.(new Error(`thread ${this.name} exited with ${code}`))
      this.#exited(incarnation)
    })
    const startMs = this.#options.startMs ?? 30_000
    try {
      const placed = await within(startMs, Promise.race([control.start(), died]), 'not started')
      for (const actor of this.#placements.keys()) {
        invariant(placed.includes(actor), `thread ${this.name} runs ${actor}`)
      }
    } catch (error) {
      link.close('stopped')
      await this.#end(incarnation)
      throw error
    }
    failed = undefined
    if (this.#ending) {
      await this.#end(incarnation)
      return
    }
    this.#now = incarnation
    if (this.#options.canBeKilled === false) endAtProcessExit(this)
    this.#health = undefined
    for (const { endpoint, executor } of this.#placements.values()) {
      executor.attach(link)
      endpoint.resume()
    }
    this.#scheduleHeartbeat()
  }

  #incarnate(): Incarnation {
    const data = new MessageChannel()
    const commands = new MessageChannel()
    const svcThread: ThreadPorts = {
      name: this.name,
      data: this.#startData,
      logLevel: this.#log.level as LogLevel,
      link: data.port2,
      control: commands.port2,
      exited: new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT),
    }
    const { entry, resourceLimits, env } = this.#options
    const worker = new Worker(entry, {
      name: this.name,
      workerData: { svcThread },
      transferList: [data.port2, commands.port2],
      ...(resourceLimits === undefined ? {} : { resourceLimits }),
      ...(env === undefined ? {} : { env }),
    })
    const exited = new Promise<void>((resolve) => void worker.once('exit', () => resolve()))
    const link = new Link(data.port1, {
      clock: this.#clock,
      log: this.#log,
      lookup: (actor) => this.#options.offers?.(actor) as AskedByName | undefined,
      onLine: lineWriter(this.#log),
    })
    const control = wrap<ThreadControl>(endpointOf(commands.port1))
    const lastWord = new Int32Array(svcThread.exited)
    return { worker, exited, lastWord, link, control, controlPort: commands.port1 }
  }

  /** Ends a thread: by force, or where that is not possible, by its own exit. */
  async #end({ worker, control, exited }: Incarnation): Promise<void> {
    if (this.#options.canBeKilled !== false) {
      await worker.terminate()
      return
    }
    control.exit().catch(() => undefined)
    await within(EXIT_MS, exited, 'not ended').catch((error: unknown) =>
      this.#log.error({ err: error }, 'thread does not end'),
    )
  }

  /** Asks the thread to exit, and returns the word that it sets at its exit. */
  askToExit(): Int32Array | undefined {
    this.#now?.control.exit().catch(() => undefined)
    return this.#now?.lastWord
  }

  /** The thread has exited, for whatever reason. */
  #exited(incarnation: Incarnation): void {
    const unanswered = incarnation.link.close('restarted')
    incarnation.control[releaseProxy]()
    // A worker that died before it received its end of the port would keep this one open.
    incarnation.controlPort.close()
    if (this.#now !== incarnation) return
    this.#now = undefined
    this.#hung = false
    clearTimeout(this.#timer)
    for (const { endpoint } of this.#placements.values()) endpoint.pause()
    for (const job of unanswered) this.#placements.get(job.owner.name)!.executor.lost(job)
    if (this.#ending) return
    this.#log.error({ lost: unanswered.length }, 'thread exited, starting a new one')
    this.#relaunch()
  }

  #relaunch(): void {
    const verdict = this.#supervisor.failed()
    // A thread has no instance to resume: it is always replaced.
    const afterMs = verdict.tag === 'restart' ? verdict.afterMs : 0
    this.#timer = setTimeout(() => {
      this.launch().then(
        () => {
          this.#restarts += 1
          for (const { endpoint } of this.#placements.values()) endpoint.meter.restarts += 1
          this.#log.warn('thread restarted')
        },
        (error: unknown) => this.#notStarted(error),
      )
    }, afterMs)
  }

  #notStarted(error: unknown): void {
    this.#log.error({ err: error }, 'thread did not start')
    if (!this.#ending) this.#relaunch()
  }

  #scheduleHeartbeat(): void {
    const { heartbeatMs = 2_000 } = this.#options
    this.#timer = setTimeout(() => void this.#beat(), heartbeatMs).unref()
  }

  async #beat(): Promise<void> {
    const incarnation = this.#now
    if (incarnation === undefined) return
    const { hungMs = 15_000 } = this.#options
    try {
      this.#health = await within(hungMs, incarnation.control.health(), 'no heartbeat')
      if (this.#hung) this.#log.warn('thread answers again')
      this.#hung = false
      if (this.#now === incarnation && !this.#ending) this.#scheduleHeartbeat()
    } catch (error) {
      if (this.#now !== incarnation || this.#ending) return
      if (this.#options.canBeKilled === false) {
        if (!this.#hung) this.#log.error({ err: error }, 'thread is hung')
        this.#hung = true
        this.#scheduleHeartbeat()
        return
      }
      this.#log.error({ err: error }, 'thread is hung, killing it')
      // The handler of its exit does the rest.
      await incarnation.worker.terminate()
    }
  }

  async drain(withinMs: number): Promise<boolean> {
    const endMs = this.#clock.monotonicMs() + withinMs
    const leftMs = () => Math.max(0, endMs - this.#clock.monotonicMs())
    // Without requests from outside the actors refuse immediately.
    const finished = this.#options.listens === true ? await this.finishRequests(withinMs) : true
    const endpoints = [...this.#placements.values()].map(({ endpoint }) => endpoint)
    const drained = await Promise.all(endpoints.map((endpoint) => endpoint.drain(leftMs())))
    const incarnation = this.#now
    if (incarnation !== undefined) {
      while (incarnation.link.openStreams > 0 && leftMs() > 0 && this.#now === incarnation) {
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
      const closed = incarnation.control.drain(leftMs())
      await within(Math.max(leftMs(), STOP_MS), closed, 'not drained').catch((error: unknown) =>
        this.#log.warn({ err: error }, 'thread did not drain'),
      )
    }
    const clean = finished && drained.every(Boolean) && (incarnation?.link.openStreams ?? 0) === 0
    await this.stop()
    return clean
  }

  async finishRequests(withinMs: number): Promise<boolean> {
    if (this.#options.listens !== true || this.#now === undefined) return true
    const finished = this.#now.control.finishRequests(withinMs)
    return within(withinMs + STOP_MS, finished, 'not finished').catch((error: unknown) => {
      this.#log.warn({ err: error }, 'thread did not finish its requests')
      return false
    })
  }

  async stop(): Promise<void> {
    if (this.#ending) return
    this.#ending = true
    this.#used.abort()
    unkillable.delete(this)
    clearTimeout(this.#timer)
    this.#excluded?.()
    for (const { endpoint } of this.#placements.values()) endpoint.stop()
    if (this.#now !== undefined) await this.#end(this.#now)
  }

  async #families(): Promise<readonly MetricFamily[]> {
    const incarnation = this.#now
    const labels = { thread: this.name }
    const family = (type: string, name: string, help: string, value: number): MetricFamily => ({
      name,
      help,
      type,
      values: [{ labels, value }],
    })
    const own = [
      family(
        'gauge',
        'svc_thread_up',
        '1 while the thread serves, or waits for its first use.',
        incarnation || this.#firstUse === 'awaited' ? 1 : 0,
      ),
      family('counter', 'svc_thread_restarts_total', 'Fresh threads.', this.#restarts),
      family(
        'gauge',
        'svc_thread_open_streams',
        'Byte streams to and from the thread.',
        incarnation?.link.openStreams ?? 0,
      ),
      family(
        'gauge',
        'svc_thread_utilization',
        'Busy share of the event loop between heartbeats.',
        this.#health?.utilization ?? 0,
      ),
      family(
        'gauge',
        'svc_thread_heap_used_bytes',
        'JavaScript heap of the thread.',
        this.#health?.heapUsedBytes ?? 0,
      ),
    ]
    if (incarnation === undefined) return own
    // A hung thread must not block the exposition.
    const theirs = await within(METRICS_MS, incarnation.control.metrics(), 'late').catch(() => [])
    return [...own, ...theirs]
  }
}

/** Threads whose native handles must be closed before Node ends the threads of a process. */
const unkillable = new Set<ThreadHost>()
let watchesProcess = false

/** For a process that ends without a drain, such as by an error on its main thread. */
function endAtProcessExit(host: ThreadHost): void {
  unkillable.add(host)
  if (watchesProcess) return
  watchesProcess = true
  process.once('exit', () => {
    const words = [...unkillable].flatMap((one) => one.askToExit() ?? [])
    for (const word of words) Atomics.wait(word, 0, 0, PROCESS_EXIT_MS)
  })
}

/** Sends messages to the thread, and keeps those that may be sent again after a crash. */
class ThreadExecutor implements Executor {
  readonly #endpoint: ActorEndpoint
  readonly #idempotent: ReadonlySet<string>
  #link: Link | undefined = undefined
  #again: Job[] = []

  constructor(
    endpoint: ActorEndpoint,
    address: { readonly name: string; readonly idempotent: readonly string[] },
  ) {
    this.#endpoint = endpoint
    this.#idempotent = new Set(address.idempotent)
  }

  /** The thread is up: sends the messages to repeat first. */
  attach(link: Link): void {
    const again = this.#again
    this.#again = []
    if (this.#link === undefined) {
      this.#link = link
      this.#endpoint.begin(this)
    }
    this.#link = link
    for (const job of again) {
      if (job.settled) this.#endpoint.ended(job, 'restarted')
      else this.execute(job)
    }
  }

  execute(job: Job): void {
    this.#link!.execute(this.#endpoint.name, job)
  }

  abandon(job: Job): void {
    this.#link?.abandon(job)
  }

  /** The thread died with this message. */
  lost(job: Job): void {
    if (this.#idempotent.has(job.kind) && job.sendings === 1 && !job.settled) this.#again.push(job)
    else this.#endpoint.ended(job, 'restarted')
  }

  stop(): void {
    for (const job of this.#again.splice(0)) this.#endpoint.ended(job, 'stopped')
  }
}

/** The promise, or an error when it takes longer than `ms`. */
function within<T>(ms: number, promise: Promise<T>, otherwise: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${otherwise} within ${ms} ms`)), ms)
    promise.then(
      (value) => {
        clearTimeout(timer)
        resolve(value)
      },
      (error: Error) => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })
}
