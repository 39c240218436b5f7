/** Metrics of the database. */
import { Gauge, type Registry } from 'prom-client'
import { Durations, registerPlain } from '../../runtime/kernel/metrics/plain-metrics.js'
import type { PoolPlan } from './pool-plan.js'
import type { PoolPurpose } from './sql.js'
import { DatabaseUnavailable } from './unavailable.js'

export interface PoolStats {
  readonly pool: PoolPlan['name']
  readonly max: number
  readonly open: number
  readonly idle: number
  readonly waiting: number
}

interface TransactionMeter {
  /** Runs a transaction and records its duration and outcome. */
  watch<T>(pool: PoolPurpose, transaction: () => Promise<T>): Promise<T>
  /** Counts a transaction that runs again after a serialization failure or a deadlock. */
  repeated(pool: PoolPurpose): void
}

/** In seconds. A round trip over a socket is below the first bound, the statement limit is 10. */
const BOUNDS_SECS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

const SECONDS = 'svc_database_transaction_seconds'

type Figures = {
  readonly took: Durations
  readonly ends: { committed: number; rolled_back: number; unavailable: number }
}

/** Without a registry nothing is recorded. */
export function databaseMeter(
  registry: Registry | undefined,
  stats: () => PoolStats[],
): TransactionMeter {
  if (registry === undefined) {
    return { watch: (_, transaction) => transaction(), repeated: () => undefined }
  }
  const own = { registers: [] }
  registry.registerMetric(
    new Gauge({
      name: 'svc_db_pool_connections',
      help: 'Connections of a pool, by state: idle or busy.',
      labelNames: ['pool', 'state'],
      ...own,
      collect() {
        for (const { pool, open, idle } of stats()) {
          this.set({ pool, state: 'idle' }, idle)
          this.set({ pool, state: 'busy' }, open - idle)
        }
      },
    }),
  )
  registry.registerMetric(
    new Gauge({
      name: 'svc_db_pool_connections_max',
      help: 'The most connections that a pool opens.',
      labelNames: ['pool'],
      ...own,
      collect() {
        for (const { pool, max } of stats()) this.set({ pool }, max)
      },
    }),
  )
  registry.registerMetric(
    new Gauge({
      name: 'svc_db_pool_waiting',
      help: 'Transactions that wait for a connection.',
      labelNames: ['pool'],
      ...own,
      collect() {
        for (const { pool, waiting } of stats()) this.set({ pool }, waiting)
      },
    }),
  )
  const figures = new Map<PoolPurpose, Figures>()
  const figuresOf = (pool: PoolPurpose) => {
    let known = figures.get(pool)
    if (known === undefined) {
      const ends = { committed: 0, rolled_back: 0, unavailable: 0 }
      known = { took: new Durations(BOUNDS_SECS), ends }
      figures.set(pool, known)
    }
    return known
  }
  registerPlain(registry, {
    name: SECONDS,
    help: 'From asking for a connection to the end of the transaction.',
    type: 'histogram',
    read: () => [...figures].flatMap(([pool, { took }]) => took.samples(SECONDS, { pool })),
  })
  registerPlain(registry, {
    name: 'svc_database_transactions_total',
    help: 'Transactions, by how they ended.',
    type: 'counter',
    read: () =>
      [...figures].flatMap(([pool, { ends }]) =>
        Object.entries(ends)
          .filter(([, value]) => value > 0)
          .map(([outcome, value]) => ({ labels: { pool, outcome }, value })),
      ),
  })
  const repeats = new Map<PoolPurpose, number>()
  registerPlain(registry, {
    name: 'svc_database_repeated_transactions_total',
    help: 'Transactions that ran again after a serialization failure or a deadlock.',
    type: 'counter',
    read: () => [...repeats].map(([pool, value]) => ({ labels: { pool }, value })),
  })
  return {
    repeated: (pool) => void repeats.set(pool, (repeats.get(pool) ?? 0) + 1),
    async watch(pool, transaction) {
      const { took, ends } = figuresOf(pool)
      const fromMs = performance.now()
      try {
        const result = await transaction()
        ends.committed += 1
        return result
      } catch (error) {
        ends[error instanceof DatabaseUnavailable ? 'unavailable' : 'rolled_back'] += 1
        throw error
      } finally {
        took.add(performance.now() - fromMs)
      }
    },
  }
}
