/** What the database tells of itself in the metrics. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
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

export interface TransactionMeter {
  /** Runs a transaction and notes how long it took and how it ended. */
  watch<T>(pool: PoolPurpose, transaction: () => Promise<T>): Promise<T>
}

/** Seconds: a round trip over a socket is well under one of the first, a limit is ten. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Without a registry, nothing is noted. */
export function databaseMeter(
  registry: Registry | undefined,
  stats: () => PoolStats[],
): TransactionMeter {
  if (registry === undefined) return { watch: (_, transaction) => transaction() }
  const registers = [registry]
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
  const seconds = new Histogram({
    name: 'svc_database_transaction_seconds',
    help: 'From asking for a connection to the end of the transaction.',
    labelNames: ['pool'],
    buckets: BUCKETS,
    registers,
  })
  const ended = new Counter({
    name: 'svc_database_transactions_total',
    help: 'Transactions, by how they ended.',
    labelNames: ['pool', 'outcome'],
    registers,
  })
  return {
    async watch(pool, transaction) {
      const stop = seconds.startTimer({ pool })
      try {
        const result = await transaction()
        ended.inc({ pool, outcome: 'committed' })
        return result
      } catch (error) {
        const unavailable = error instanceof DatabaseUnavailable
        ended.inc({ pool, outcome: unavailable ? 'unavailable' : 'rolled_back' })
        throw error
      } finally {
        stop()
      }
    },
  }
}
