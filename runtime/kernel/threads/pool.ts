/**
 * CPU work off the event loop: the pure functions of one `compute.ts`, run on a few threads by
 * Piscina. The actor that uses them stays inline; the pool is one of its needs.
 *
 *     // actors/agents/proof-of-work/compute.ts: exported functions of one argument, plain data in and out, no state
 *     const pool = openPool<typeof import('./compute.js')>({
 *       name: 'pow', module: new URL('./compute.js', import.meta.url), threadsMax: 2,
 *     })
 *     const verdict = await pool.run('verify', { challenge, nonce }, turn)
 *
 * Calls of one tick travel together in one frame (wire.ts), and so do their results. What queues up while all threads are busy makes the next
 * batches larger. A batch whose thread died is run again call by call, which purity allows, and a call
 * whose thread died is run once more, so only the call that kills is lost.
 */
import { Piscina } from 'piscina'
import { ActorUnavailable, type AskOptions, type UnavailableReason } from '../actor.js'
import { FairQueue, QueueItem } from '../fairness/fair-queue.js'
import type { ShareCounts } from '../fairness/fair-share.js'
import { originOf } from '../job.js'
import { type Logger, silentLogger } from '../log.js'
import type { KernelMetrics } from '../metrics/metrics.js'
import type { MetricFamily } from '../metrics/plain-metrics.js'
import type { ThreadStart } from '../placement.js'
import type { Call, Result } from './pool-worker.js'
import { packFrame, unpackFrame } from './wire.js'

type Functions<M> = {
  [K in keyof M as M[K] extends (input: never) => unknown ? K & string : never]: M[K] extends (
    ...inputs: infer I
  ) => infer O
    ? { input: I[0]; output: Awaited<O> }
    : never
}

/** A thread may die of a cause other than its current call, but hardly twice. */
const ATTEMPTS_ALONE_MAX = 2

/** The functions of a compute module, on any thread. */
export interface Compute<M> {
  /**
   * @throws {ActorUnavailable} `mailbox_full` when too many calls wait, `cancelled` when the caller
   * gave up, `stopped` when the pool is closed.
   * @throws {ComputeFailed} when the function threw, or when its thread died or hung.
   */
  run<K extends keyof Functions<M> & string>(
    name: K,
    input: Functions<M>[K]['input'],
    options?: Pick<AskOptions, 'signal' | 'share'>,
  ): Promise<Functions<M>[K]['output']>
}

export class ComputeFailed extends Error {
  override readonly name = 'ComputeFailed'
}

export interface PoolOptions {
  readonly name: string
  /** `new URL('./compute.js', import.meta.url)` */
  readonly module: URL
  readonly threadsMax: number
  /** Kept alive when idle. Default 1. */
  readonly threadsMin?: number | undefined
  /** When the first threads start. Default: `at_start`. */
  readonly starts?: ThreadStart | undefined
  /** Calls that may wait for a thread. Default 1024. Shares take turns (fair-queue.ts). */
  readonly queueMax?: number | undefined
  /** Waiting calls of one share. Default: only `queueMax` applies. */
  readonly queuePerShareMax?: number | undefined
  /** Most calls that are sent in one batch. Default 64. Use 1 for calls that take milliseconds. */
  readonly batchMax?: number | undefined
  /** A batch that takes longer counts as hung: its thread is killed. Default 30,000. */
  readonly batchMsMax?: number | undefined
  /** Lowers the priority of the threads, 0 to 19. Default 0. */
  readonly nice?: number | undefined
  /**
   * For work on secrets: an idle thread keeps nothing of its last batch. By default Piscina halts
   * the thread in the loop with the batch, which saves a turn of its event
   * loop.
   */
  readonly forgets?: boolean | undefined
  readonly log?: Logger | undefined
  readonly metrics?: KernelMetrics | undefined
}

type PoolStats = {
  readonly pool: string
  readonly waiting: number
  readonly running: number
  readonly completed: number
  readonly failed: number
  readonly rejected: number
  readonly crashes: number
  readonly threads: number
}

export interface Pool<M> extends Compute<M> {
  stats(): PoolStats
  /** Refuses new calls, finishes the accepted ones within `withinMs`, and ends the threads. */
  close(withinMs?: number): Promise<void>
}

/** The same functions on this thread, for tests and for cheap work. */
export function inlineCompute<M>(module: M): Compute<M> {
  return {
    run: async (name, input) =>
      (module as Record<string, (input: unknown) => unknown>)[name]!(input) as never,
  }
}

export function openPool<M>(options: PoolOptions): Pool<M> {
  return new PiscinaPool(options) as unknown as Pool<M>
}

class Work extends QueueItem {
  readonly name: string
  readonly input: unknown
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
  settled = false
  /** How often it has been sent alone in a batch. */
  alone = 0

  constructor(
    name: string,
    input: unknown,
    resolve: (value: unknown) => void,
    reject: (error: Error) => void,
  ) {
    super()
    this.name = name
    this.input = input
    this.resolve = resolve
    this.reject = reject
  }
}

/**
 * Piscina loads its module by `require` first. A thread that ends while it requires an ES module aborts the process (a fault of Node
 * 20), and one that imports it does not.
 */
const THREAD_FLAGS = [
  ...process.execArgv.filter((flag) => flag === '--enable-source-maps'),
  '--no-experimental-require-module',
]

class PiscinaPool {
  readonly #name: string
  readonly #options: PoolOptions
  #piscina: Piscina<ArrayBuffer, ArrayBuffer> | undefined = undefined
  readonly #log: Logger
  readonly #batchMax: number
  readonly #batchMsMax: number
  readonly #batchesMax: number
  readonly #excluded: (() => void) | undefined
  readonly #queue: FairQueue<Work>
  readonly #shares: ShareCounts | undefined
  #batches = 0
  #running = 0
  #completed = 0
  #failed = 0
  #rejected = 0
  #crashes = 0
  #scheduled = false
  #closed = false
  #onIdle: (() => void) | undefined = undefined

  constructor(options: PoolOptions) {
    const { name, threadsMax } = options
    this.#name = name
    this.#log = (options.log ?? silentLogger).child({ pool: name })
    this.#queue = new FairQueue({
      capacity: options.queueMax ?? 1024,
      perKeyMax: options.queuePerShareMax,
    })
    this.#shares = options.metrics?.shares
    this.#batchMax = options.batchMax ?? 64
    this.#batchMsMax = options.batchMsMax ?? 30_000
    // Small calls: keep the next batch ready for when a thread becomes free. Long calls: keep them
    // here, where they can still be cancelled.
    this.#batchesMax = this.#batchMax > 1 ? threadsMax * 2 : threadsMax
    this.#options = options
    if (options.starts !== 'at_first_use') this.#startThreads()
    this.#excluded = options.metrics?.include(async () => poolFamilies(this.stats()))
  }

  #startThreads(): Piscina<ArrayBuffer, ArrayBuffer> {
    const { module, threadsMax, threadsMin = 1, nice = 0, forgets } = this.#options
    const piscina = new Piscina<ArrayBuffer, ArrayBuffer>({
      filename: new URL('./pool-worker.js', import.meta.url).href,
      name: 'runBatch',
      minThreads: Math.min(threadsMin, threadsMax),
      maxThreads: threadsMax,
      idleTimeout: 30_000,
      niceIncrement: nice,
      atomics: forgets === true ? 'disabled' : 'sync',
      recordTiming: false,
      workerData: { module: module.href },
      execArgv: THREAD_FLAGS,
    })
    // Tasks report their own failures. This is a worker that died without reporting one.
    piscina.on('error', (error: Error) => this.#log.error({ err: error }, 'pool thread died'))
    this.#piscina = piscina
    return piscina
  }

  run(name: string, input: unknown, options?: AskOptions): Promise<unknown> {
    if (this.#closed) return Promise.reject(this.#unavailable(name, 'stopped'))
    const origin = originOf(options)
    const signal = origin === undefined ? options?.signal : undefined
    if (origin?.abandoned === true || signal?.aborted === true) {
      return Promise.reject(this.#unavailable(name, 'cancelled'))
    }
    return new Promise((resolve, reject) => {
      let forget = () => {}
      const work = new Work(
        name,
        input,
        (value) => {
          forget()
          resolve(value)
        },
        (error) => {
          forget()
          reject(error)
        },
      )
      work.share = options?.share ?? ''
      const pushed = this.#queue.push(work)
      if (pushed === 'full' || pushed === 'key_full') return this.#rejectWork(work)
      if (pushed !== 'queued') this.#rejectWork(pushed.item)
      const cancel = () => {
        if (work.settled) return
        work.settled = true
        this.#queue.remove(work)
        work.reject(this.#unavailable(name, 'cancelled'))
        this.#reportIdle()
      }
      if (origin !== undefined) forget = origin.onAbandoned(cancel)
      else if (signal !== undefined) {
        signal.addEventListener('abort', cancel, { once: true })
        forget = () => signal.removeEventListener('abort', cancel)
      }
      this.#schedule()
    })
  }

  /** The queue is full, or another share with fewer waiting calls takes the place. */
  #rejectWork(work: Work): void {
    this.#rejected += 1
    this.#shares?.count(this.#name)
    work.settled = true
    work.reject(this.#unavailable(work.name, 'mailbox_full'))
  }

  /** After this tick, so that its calls are sent together. */
  #schedule(): void {
    if (this.#scheduled || this.#batches >= this.#batchesMax) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#dispatch()
    })
  }

  #dispatch(): void {
    while (this.#queue.size > 0 && this.#batches < this.#batchesMax) {
      const free = this.#batchesMax - this.#batches
      const size = Math.min(this.#batchMax, Math.ceil(this.#queue.size / free))
      const batch: Work[] = []
      for (let count = 0; count < size; count += 1) batch.push(this.#queue.shift()!)
      void this.#runBatch(batch)
    }
  }

  async #runBatch(batch: readonly Work[]): Promise<void> {
    this.#batches += 1
    this.#running += batch.length
    try {
      await this.#send(batch)
    } finally {
      this.#batches -= 1
      this.#running -= batch.length
      this.#dispatch()
      this.#reportIdle()
    }
  }

  async #send(batch: readonly Work[]): Promise<void> {
    if (batch.length === 1) batch[0]!.alone += 1
    const hung = new AbortController()
    const timer = setTimeout(() => hung.abort(), this.#batchMsMax)
    try {
      const frame = packFrame(batch.map(({ name, input }): Call => [name, input]))
      const piscina = this.#piscina ?? this.#startThreads()
      const answer = await piscina.run(frame, { signal: hung.signal, transferList: [frame] })
      const results = unpackFrame(answer) as Result[]
      for (const [index, work] of batch.entries()) this.#settle(work, results[index]!)
    } catch (error) {
      await this.#recover(batch, error as Error, hung.signal.aborted)
    } finally {
      clearTimeout(timer)
    }
  }

  /**
   * The thread died, or a value cannot be in a frame: run the calls one by one to find the culprit.
   */
  async #recover(batch: readonly Work[], error: Error, hung: boolean): Promise<void> {
    const [only] = batch
    const again = batch.length > 1 || (!hung && only!.alone < ATTEMPTS_ALONE_MAX)
    if (again && !this.#closed) {
      for (const work of batch) if (!work.settled) await this.#send([work])
      return
    }
    this.#crashes += 1
    this.#log.error({ err: error, kind: only!.name }, 'compute function ended without a result')
    this.#settle(only!, [false, error.message])
  }

  #settle(work: Work, [ok, value]: Result): void {
    this.#completed += ok ? 1 : 0
    this.#failed += ok ? 0 : 1
    if (work.settled) return
    work.settled = true
    if (ok) work.resolve(value)
    else work.reject(new ComputeFailed(`${this.#name}.${work.name}: ${String(value)}`))
  }

  #unavailable(kind: string, reason: UnavailableReason): ActorUnavailable {
    return new ActorUnavailable(this.#name, kind, reason)
  }

  #reportIdle(): void {
    if (this.#queue.size === 0 && this.#batches === 0) this.#onIdle?.()
  }

  stats(): PoolStats {
    return {
      pool: this.#name,
      waiting: this.#queue.size,
      running: this.#running,
      completed: this.#completed,
      failed: this.#failed,
      rejected: this.#rejected,
      crashes: this.#crashes,
      threads: this.#piscina?.threads.length ?? 0,
    }
  }

  async close(withinMs = 0): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    if (withinMs > 0 && (this.#queue.size > 0 || this.#batches > 0)) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, withinMs)
        this.#onIdle = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    for (let work = this.#queue.shift(); work !== undefined; work = this.#queue.shift()) {
      work.settled = true
      work.reject(this.#unavailable(work.name, 'stopped'))
    }
    this.#excluded?.()
    await this.#piscina?.destroy()
  }
}

function poolFamilies(stats: PoolStats): MetricFamily[] {
  const labels = { pool: stats.pool }
  const family = (type: string, name: string, help: string, value: number): MetricFamily => ({
    name,
    help,
    type,
    values: [{ labels, value }],
  })
  return [
    family('gauge', 'svc_pool_waiting', 'Calls waiting for a thread.', stats.waiting),
    family('gauge', 'svc_pool_running', 'Calls sent to a thread.', stats.running),
    family('gauge', 'svc_pool_threads', 'Threads alive.', stats.threads),
    family('counter', 'svc_pool_completed_total', 'Calls with a result.', stats.completed),
    family('counter', 'svc_pool_failed_total', 'Calls that threw or died.', stats.failed),
    family('counter', 'svc_pool_rejected_total', 'Calls refused, queue full.', stats.rejected),
    family('counter', 'svc_pool_crashes_total', 'Threads lost to a call.', stats.crashes),
  ]
}
