/** The database of a process: connection pools and transactions. */
import { Pool, type PoolClient, type PoolConfig } from 'pg'
import type { Registry } from 'prom-client'
import { FairShare, isRefused, type Release } from '../../runtime/kernel/fairness/fair-share.js'
import type { Logger } from '../../runtime/kernel/log.js'
import { databaseMeter, type PoolStats } from './database-metrics.js'
import { PrimaryClient } from './portable/primary-client.js'
import { createTableListener } from './portable/table-listener.js'
import { createListener, type Listener } from './listen.js'
import { Notifier } from './notifier.js'
import {
  backgroundShare,
  type Plane,
  type PoolPlan,
  type PoolSettings,
  type PoolUrls,
  planPools,
  connectionOptions,
  tenantConnections,
} from './pool-plan.js'
import { DatabaseConnection } from './connection.js'
import { FrozenServerWatch, type Waiting } from './frozen-server.js'
import { STALLED_MS } from './response-limit.js'
import { Silence } from './silence.js'
import { parseTypes } from './sql-types.js'
import type {
  Database,
  PoolPurpose,
  Rows,
  Statement,
  Transaction,
  TransactionOptions,
} from './sql.js'
import { type TransactionSettings, transactionSettings } from './tenancy.js'
import {
  type ConnectionSource,
  repeated,
  runWithSettings,
  transact,
  transactAmong,
  transactTogether,
} from './transaction.js'
import {
  DatabaseUnavailable,
  DatabaseUnreachable,
  isConnectionLoss,
  isLate,
} from './unavailable.js'

/** A connection that was idle for longer is tested before use. */
const RESTED_MS = 500
/** Time limit of a probe of an unresponsive server. */
const LOOK_MS = 1_000

export interface DatabaseOptions {
  readonly settings: PoolSettings
  readonly urls: PoolUrls
  readonly plane: Plane
  readonly log: Logger
  /** Registry for the metrics of the pools. One database per registry. */
  readonly registry?: Registry | undefined
}

export interface OpenDatabase extends Database {
  /** LISTEN on a separate connection, which is opened at the first subscription. */
  readonly listener: Listener
  stats(): PoolStats[]
  /** Calls the listener with the ids of each `Transaction.forget`. The returned function ends that. */
  forgets(listener: (ids: readonly string[]) => void): () => void
  /**
   * Calls `wake` instead of sending notifications of the channel, for the worker of this thread that would receive
   * them. The returned function ends that.
   */
  wakeHere(channel: string, wake: () => void): () => void
  /**
   * One statement outside of a transaction, for tables without tenants. Row-level security hides the rows of
   * all tenants from it.
   */
  single<Row extends object = Record<string, unknown>>(
    statement: Statement,
    options?: Pick<TransactionOptions, 'pool' | 'signal'>,
  ): Promise<Rows<Row>>
}

/** Opens the pools of a plane with their minimum of connections, so that an invalid URL fails at start. */
export async function openDatabase(options: DatabaseOptions): Promise<OpenDatabase> {
  const { settings, urls, plane, log, registry } = options
  const plans = planPools(settings, urls, plane)
  const pools = Object.fromEntries(
    plans.map((plan) => [plan.name, new ConnectionPool(plan, settings, log)]),
  ) as Record<PoolPlan['name'], ConnectionPool>
  const notifier = new Notifier((channels) => {
    const text = announcement(channels, settings.announce ?? 'notify')
    return pools.plane.use(undefined, undefined, (connection) => connection.control(text), '')
  }, log)
  const { notify, forget, forgets, wakeHere } = inThisProcess(notifier)
  const backgroundMax = backgroundShare(pools.plane.plan.max, plane)
  const background = new FairShare({
    resource: 'database_background',
    total: backgroundMax,
    levels: [{ name: 'tenant', max: backgroundMax }],
    waitingPerKeyMax: Number.MAX_SAFE_INTEGER,
  })
  const sourceOf = (name: PoolPlan['name']): ConnectionSource => ({
    notify,
    forget,
    repeats: () => meter.repeated(name),
    settings: pools[name].settings,
    use: (...input) => pools[name].use(...input),
  })
  const sources: Record<PoolPurpose, ConnectionSource> = {
    identity: sourceOf('identity'),
    plane: sourceOf('plane'),
    background: {
      notify,
      forget,
      repeats: () => meter.repeated('background'),
      settings: settingsOf(settings, settings.background_statement_timeout_secs * 1000),
      async use(open, signal, work, share) {
        const release = await enter(background, share, signal, 0)
        try {
          return await pools.plane.use(open, signal, work, share)
        } finally {
          release()
        }
      },
    },
  }
  const single: OpenDatabase['single'] = (statement, options) =>
    runSingle(sources[options?.pool ?? 'plane'], isPooled(settings), statement, options?.signal)
  const listener =
    settings.announce === 'table'
      ? createTableListener({ read: single, log })
      : createListener({
          options: connectionOptions(settings, urls.listener, 0, 'svc listener'),
          log,
        })
  const allPools = Object.values(pools)
  const stats = () => allPools.map((pool) => pool.stats())
  const meter = databaseMeter(registry, stats)

  function run<T>(
    tenantId: string | null,
    work: (tx: Transaction) => Promise<T> | T,
    options: TransactionOptions = {},
  ): Promise<T> {
    const { pool = 'plane' } = options
    return meter.watch(pool, () => transact(sources[pool], tenantId, work, options))
  }

  const database: OpenDatabase = {
    listener,
    tenant: (tenantId, work, options) => run(tenantId, work, options),
    system: (work, options) => run(null, work, options),
    together: (tenantId, statements, { pool = 'plane', wakes } = {}) =>
      meter.watch(pool, async () => {
        const results = await transactTogether(sources[pool], tenantId, statements)
        if (wakes !== undefined) notify(wakes(results))
        return results
      }),
    among: (parts, { pool = 'plane', wakes, lockTimeoutMs } = {}) =>
      meter.watch(pool, async () => {
        const results = await transactAmong(sources[pool], parts, lockTimeoutMs)
        if (wakes !== undefined) notify(wakes(results.flat()))
        return results
      }),
    single,
    async ping(signal) {
      const limitMs = settings.connect_timeout_secs * 1000
      const probe = (connection: DatabaseConnection) => connection.probe(limitMs, signal)
      await sources.plane.use(probe, signal, async () => undefined, '')
    },
    stats,
    forgets,
    wakeHere,
    async close() {
      await notifier.close()
      await listener.close()
      await Promise.all(allPools.map((pool) => pool.close()))
    },
  }
  try {
    await Promise.all(allPools.map((pool) => pool.warm()))
  } catch (error) {
    await database.close()
    throw error
  }
  return database
}

/** What a commit tells this process. Channels without a worker here are sent by the notifier. */
function inThisProcess(
  notifier: Notifier,
): Pick<ConnectionSource, 'notify' | 'forget'> & Pick<OpenDatabase, 'forgets' | 'wakeHere'> {
  const wakes = new Map<string, () => void>()
  const listeners = new Set<(ids: readonly string[]) => void>()
  return {
    notify(channels) {
      const sent: string[] = []
      for (const channel of channels) {
        const wake = wakes.get(channel)
        if (wake === undefined) sent.push(channel)
        else wake()
      }
      notifier.notify(sent)
    },
    forget(ids) {
      for (const listener of listeners) listener(ids)
    },
    forgets(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    wakeHere(channel, wake) {
      wakes.set(channel, wake)
      return () => {
        if (wakes.get(channel) === wake) wakes.delete(channel)
      }
    },
  }
}

/**
 * Announces channels in one round trip that does not wait for the disk: an announcement is only a hint. Channel names are
 * validated (listen.ts), so they need no quoting.
 */
function announcement(channels: readonly string[], announce: 'notify' | 'table'): string {
  const calls = channels.map((name) => `svc_announce('${name}', '')`).join(', ')
  return `set local synchronous_commit = off; set local svc.announce = '${announce}'; select ${calls}`
}

function isPooled(settings: PoolSettings): boolean {
  return settings.prepared_statements === 'unnamed'
}

function settingsOf(settings: PoolSettings, statementTimeoutMs?: number): TransactionSettings {
  const limits = {
    ...(statementTimeoutMs === undefined ? {} : { statementTimeoutMs }),
    idleTimeoutMs: settings.idle_in_transaction_timeout_secs * 1000,
  }
  return transactionSettings(limits, isPooled(settings), settings.announce ?? 'notify')
}

/** Runs one statement. Behind a pooler the settings of its transaction are sent with it. */
function runSingle<Row extends object>(
  source: ConnectionSource,
  pooled: boolean,
  statement: Statement,
  signal: AbortSignal | undefined,
): Promise<Rows<Row>> {
  const run = async (connection: DatabaseConnection): Promise<Rows<Row>> => {
    if (pooled) return runWithSettings(connection, source.settings, statement)
    const { rows, rowCount } = await connection.run<Row>(statement)
    return { rows, rowCount: rowCount ?? 0 }
  }
  return repeated(
    () => source.use(undefined, signal, run, ''),
    'the connection was lost during a statement',
    source.repeats,
    signal,
  )
}

class WaitedTooLong extends Error {
  override readonly name = 'WaitedTooLong'
}

/**
 * Waits for a slot. Tenants take turns.
 * @param limitMs 0 is no limit.
 * @throws {WaitedTooLong} if no slot is free in time, and the reason of `signal` if it is aborted.
 */
async function enter(
  slots: FairShare,
  share: string,
  signal: AbortSignal | undefined,
  limitMs: number,
): Promise<Release> {
  signal?.throwIfAborted()
  const keys = [share]
  if (slots.waiting === 0) {
    const taken = slots.tryAcquire(keys)
    if (!isRefused(taken)) return taken
  }
  const leaving = new AbortController()
  const leave = () => leaving.abort(signal?.reason)
  signal?.addEventListener('abort', leave, { once: true })
  const tooLong = () => leaving.abort(new WaitedTooLong('no slot was free in time'))
  const timer = limitMs > 0 ? setTimeout(tooLong, limitMs) : undefined
  try {
    const taken = await slots.acquire(keys, 1, leaving.signal)
    if (isRefused(taken)) throw new WaitedTooLong(`refused by ${taken.refused}`)
    return taken
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', leave)
  }
}

/** One use of a pool, from its place in the queue to its end. */
class Use implements Waiting {
  readonly fromMs = performance.now()
  readonly #refuse: (cause: Error) => void
  #connection: DatabaseConnection | undefined
  #failure: Error | undefined

  constructor(refuse: (cause: Error) => void) {
    this.#refuse = refuse
  }

  /** Call when the use has a connection, before its first statement. @throws after `fail`. */
  hold(connection: DatabaseConnection): void {
    this.throwIfFailed()
    this.#connection = connection
  }

  throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure
  }

  fail(cause: Error): void {
    this.#failure = cause
    this.#connection?.cut()
    this.#refuse(cause)
  }
}

/** Behind a pooler each transaction asks instead (tenancy.ts), because a connection can reach several servers. */
const PRIMARY_ONLY: PoolConfig = {
  Client: PrimaryClient as unknown as NonNullable<PoolConfig['Client']>,
  onConnect: (client) => (client as unknown as PrimaryClient).requirePrimary(),
}

type Opening = ((connection: DatabaseConnection) => Promise<unknown>) | undefined

/** The connections of a plan, with the fair share of each tenant. */
class ConnectionPool implements Omit<ConnectionSource, 'notify' | 'forget' | 'repeats'> {
  readonly plan: PoolPlan
  readonly settings: TransactionSettings
  readonly #testsBeforeUse: boolean
  readonly #openingLimitMs: number
  readonly #pool: Pool
  readonly #connections = new WeakMap<PoolClient, DatabaseConnection>()
  readonly #silence: Silence
  readonly #frozen: FrozenServerWatch
  /**
   * The pool queues transactions beyond its size, first in first out. Only the pool knows its free connections, so this
   * share limits each tenant and not the total.
   */
  readonly #slots: FairShare
  /** When the server last answered, in milliseconds of `performance.now`. */
  #answeredMs = Number.NEGATIVE_INFINITY

  constructor(plan: PoolPlan, settings: PoolSettings, log: Logger) {
    const { statementTimeoutMs } = plan
    const unnamed = isPooled(settings)
    this.plan = plan
    this.settings = settingsOf(settings, unnamed ? statementTimeoutMs : undefined)
    this.#testsBeforeUse = settings.test_before_acquire
    this.#openingLimitMs = settings.connect_timeout_secs * 1000
    this.#pool = new Pool({
      ...connectionOptions(settings, plan.url, statementTimeoutMs, `svc ${plan.name}`),
      types: parseTypes,
      ...(unnamed ? {} : PRIMARY_ONLY),
      max: plan.max,
      min: plan.min,
      idleTimeoutMillis: settings.idle_timeout_secs * 1000,
      maxLifetimeSeconds: settings.max_lifetime_secs,
    })
    this.#pool.on('connect', (client) => {
      const { statement_cache_capacity: statementCacheCapacity } = settings
      const limits = { statementCacheCapacity, statementTimeoutMs, unnamed }
      this.#connections.set(client, new DatabaseConnection(client, limits))
    })
    // The pool has removed the connection already.
    this.#pool.on('error', (error) => {
      if (!this.#pool.ending)
        log.warn({ pool: plan.name, err: error }, 'an idle connection was lost')
    })
    this.#silence = new Silence({ pool: plan.name, log, look: () => this.#look() })
    this.#frozen = new FrozenServerWatch(
      plan.url,
      () => this.#answeredMs,
      (cause) => this.#silence.begin(cause),
    )
    this.#slots = new FairShare({
      resource: `database_${plan.name}`,
      total: Number.MAX_SAFE_INTEGER,
      levels: [{ name: 'tenant', max: tenantConnections(plan.max) }],
      waitingPerKeyMax: Number.MAX_SAFE_INTEGER,
    })
  }

  async use<T>(
    open: Opening,
    signal: AbortSignal | undefined,
    work: (connection: DatabaseConnection) => Promise<T>,
    share: string,
  ): Promise<T> {
    const isOver = this.#silence.isOver(signal)
    if (isOver !== true && !(await isOver)) {
      throw new DatabaseUnavailable(this.#noConnection, this.#silence.cause)
    }
    return this.#watched(async (use) => {
      const release = await this.#place(share, signal)
      try {
        use.throwIfFailed()
        return await this.#used(open, signal, work, use)
      } finally {
        release()
      }
    })
  }

  async warm(): Promise<void> {
    const connecting = await Promise.allSettled(
      Array.from({ length: this.plan.min }, () => this.#pool.connect()),
    )
    for (const result of connecting) if (result.status === 'fulfilled') result.value.release()
    const failed = connecting.find((result) => result.status === 'rejected')
    if (failed) throw new DatabaseUnreachable(this.plan.url, failed.reason)
  }

  stats(): PoolStats {
    return {
      pool: this.plan.name,
      max: this.plan.max,
      open: this.#pool.totalCount,
      idle: this.#pool.idleCount,
      waiting: this.#slots.waiting + this.#pool.waitingCount,
    }
  }

  close(): Promise<void> {
    this.#silence.close()
    this.#frozen.close()
    return this.#pool.end()
  }

  get #noConnection(): string {
    return `no connection for the ${this.plan.name} pool`
  }

  #place(share: string, signal: AbortSignal | undefined): Promise<Release> {
    return enter(this.#slots, share, signal, this.#openingLimitMs).catch((error: unknown) => {
      if (!(error instanceof WaitedTooLong)) throw error
      const { cause } = this.#silence
      throw new DatabaseUnavailable(this.#noConnection, cause ?? error, cause === undefined)
    })
  }

  async #look(): Promise<void> {
    const client = await this.#connect(AbortSignal.timeout(LOOK_MS))
    try {
      await this.#connections.get(client)!.probe(LOOK_MS, undefined)
      client.release()
    } catch (error) {
      client.release(true)
      throw error
    }
  }

  async #connect(signal: AbortSignal | undefined): Promise<PoolClient> {
    signal?.throwIfAborted()
    const connecting = this.#pool.connect()
    if (signal === undefined) return connecting
    let onAbort: (() => void) | undefined
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => reject(signal.reason)
      signal.addEventListener('abort', onAbort, { once: true })
    })
    try {
      return await Promise.race([connecting, aborted])
    } catch (error) {
      // The pool may still provide the connection later: it is returned unused.
      connecting.then(
        (client) => client.release(),
        () => undefined,
      )
      throw error
    } finally {
      signal.removeEventListener('abort', onAbort!)
    }
  }

  /**
   * Tests a connection that was idle for `RESTED_MS` (`test_before_acquire`). Other connections are tested by the
   * first statements, which commit nothing: if the connection is dead, they run again on another one. A closed
   * connection fails immediately. An unresponsive one uses up the time limit, so only one of those is tried.
   */
  async #acquire(open: Opening, signal: AbortSignal | undefined, use: Use) {
    const from = performance.now()
    for (let attempt = 0; ; attempt += 1) {
      const client = await this.#connect(signal).catch((error: unknown) => {
        // The server responds, but is slow to open a connection. Another connection may be free by now.
        const isSlow = this.#answeredMs > from && this.#pool.totalCount < this.plan.max
        // After a stall of this process the timer runs before the socket is read.
        const wasStalled = performance.now() - from > this.#openingLimitMs + STALLED_MS
        if (signal?.aborted || !isLate(error) || !(isSlow || wasStalled)) throw error
        return this.#connect(signal)
      })
      const connection = this.#connections.get(client)!
      try {
        use.hold(connection)
        const isRested = performance.now() - connection.usedAtMs > RESTED_MS
        if (this.#testsBeforeUse && isRested) await connection.probe(this.#openingLimitMs, signal)
        await open?.(connection)
        return { client, connection }
      } catch (error) {
        client.release(true)
        if (signal?.aborted) throw signal.reason
        const inTime = performance.now() - from < this.#openingLimitMs || this.#openingLimitMs === 0
        const again = this.#testsBeforeUse && attempt < this.plan.max && inTime
        if (!again || !isConnectionLoss(error)) throw error
      }
    }
  }

  async #used<T>(
    open: Opening,
    signal: AbortSignal | undefined,
    work: (connection: DatabaseConnection) => Promise<T>,
    use: Use,
  ): Promise<T> {
    const from = performance.now()
    const { client, connection } = await this.#acquire(open, signal, use).catch(
      (error: unknown) => {
        if (signal?.aborted || !isConnectionLoss(error)) throw error
        const overloaded =
          isLate(error) && (this.#answeredMs > from || this.#pool.totalCount >= this.plan.max)
        const isSilent = isLate(error) || performance.now() - from >= this.#openingLimitMs
        if (isSilent && !overloaded && this.#answeredMs <= from) this.#silence.begin(error)
        if (!isLate(error) && !overloaded) throw new DatabaseUnreachable(this.plan.url, error)
        throw new DatabaseUnavailable(this.#noConnection, error, overloaded)
      },
    )
    let broken = true
    try {
      use.throwIfFailed()
      const result = await work(connection)
      broken = connection.lost !== undefined
      return result
    } catch (error) {
      const lost = error instanceof DatabaseUnavailable || isConnectionLoss(error)
      broken = connection.lost !== undefined || lost
      if (connection.fellSilent && this.#answeredMs <= from) this.#silence.begin(error)
      throw error
    } finally {
      connection.usedAtMs = performance.now()
      if (!broken) {
        this.#answeredMs = connection.usedAtMs
        this.#silence.end()
      }
      client.release(broken)
    }
  }

  /** Runs a request, and fails it when the server is frozen. It has no effect after that. */
  #watched<T>(run: (use: Use) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const use = new Use((cause) => {
        const { name } = this.plan
        reject(new DatabaseUnavailable(`no answer for the ${name} pool`, cause, false))
      })
      this.#frozen.enter(use)
      run(use)
        .then(resolve, reject)
        .finally(() => this.#frozen.leave(use))
    })
  }
}
