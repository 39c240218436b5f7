/** One way to run a transaction: bound, cancellable, rolled back on any failure. */
import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DatabaseConnection } from './connection.js'
import { Statements } from './transaction-statements.js'
import type { Rows, Statement, Transaction, TransactionOptions } from './sql.js'
import { openingStatements, sightStatement } from './tenancy.js'
import { asUnavailable, isSerializationFailure } from './unavailable.js'

const SERIALIZABLE_ATTEMPTS_MAX = 6
const RETRY_DELAY_MS = 10

/** Where a transaction runs: a connection for as long as `use` takes. */
export interface ConnectionSource {
  /**
   * @param open runs first and commits nothing; where it fails because the connection is dead, it runs
   * again on another one.
   */
  use<T>(
    open: ((connection: DatabaseConnection) => Promise<unknown>) | undefined,
    signal: AbortSignal | undefined,
    work: (connection: DatabaseConnection) => Promise<T>,
    /** Whose turn for a connection this is: a tenant's id, or empty for the service itself. */
    share: string,
  ): Promise<T>
  /** Set for background work on the pool of requests. */
  readonly statementTimeoutMs: number | undefined
  /** Wakes the listeners of the channels, soon. */
  notify(channels: Iterable<string>): void
}

/** The channels to wake once a transaction has committed. */
const wakeUps = new WeakMap<Transaction, Set<string>>()

/**
 * Wakes whoever listens on the channel after the commit, and not at all after a rollback. The
 * wake-up may be lost in a crash: it is a hint to look, not the news.
 */
export function notifyAfterCommit(tx: Transaction, channel: string): void {
  wakeUps.get(tx)?.add(channel)
}

/**
 * Runs `work` in a transaction. A serializable one that lost a race is run again from its start,
 * so its `work` must have no effect outside of the database.
 */
export async function transact<T>(
  source: ConnectionSource,
  tenantId: string | null,
  work: (tx: Transaction) => Promise<T> | T,
  { signal, isolation }: TransactionOptions = {},
): Promise<T> {
  const opening = openingStatements(tenantId, isolation, source.statementTimeoutMs)
  const attemptsMax = isolation === 'serializable' ? SERIALIZABLE_ATTEMPTS_MAX : 1
  for (let attempts = 1; ; attempts += 1) {
    try {
      return await attempt(source, opening, tenantId, work, signal)
    } catch (error) {
      if (attempts >= attemptsMax || !isSerializationFailure(error)) {
        throw asUnavailable(error, 'a transaction was lost or given up')
      }
      await sleep(randomInt(RETRY_DELAY_MS * attempts * attempts) + 1, undefined, { signal })
    }
  }
}

/** Runs statements that need not wait for one another as one transaction, in one round trip. */
export async function transactTogether(
  source: ConnectionSource,
  tenantId: string | null,
  statements: readonly Statement[],
): Promise<readonly Rows<Record<string, unknown>>[]> {
  const all = [sightStatement(tenantId), ...statements]
  return source.use(
    undefined,
    undefined,
    async (connection) => {
      const { results, error } = await connection.pipeline(all)
      if (error !== null) throw asUnavailable(error, 'a transaction got no answer')
      return results.slice(1)
    },
    tenantId ?? '',
  )
}

/**
 * One attempt. The connection is taken as the first statement is asked for: it goes out with what opens
 * the transaction, and where the connection turns out to be dead, both are sent again on another one,
 * because nothing is committed yet. Work that asks for nothing needs no transaction.
 */
async function attempt<T>(
  source: ConnectionSource,
  opening: readonly Statement[],
  tenantId: string | null,
  work: (tx: Transaction) => Promise<T> | T,
  signal: AbortSignal | undefined,
): Promise<T> {
  signal?.throwIfAborted()
  const statements = new Statements(opening, source.statementTimeoutMs, signal)
  const tx: Transaction = {
    tenantId,
    query: (statement) => statements.enqueue(statement),
    atCommit: (statement, onCommitted) => statements.defer(statement, onCommitted),
  }
  const channels = new Set<string>()
  wakeUps.set(tx, channels)
  const working = (async () => work(tx))()
  try {
    await Promise.race([working, statements.firstQueued])
    if (statements.isEmpty) {
      await statements.end()
      return await working
    }
    const open = statements.hasQueued
      ? (connection: DatabaseConnection) => statements.open(connection)
      : undefined
    const work = (connection: DatabaseConnection) => committed(connection, statements, working)
    const result = await source.use(open, signal, work, tenantId ?? '')
    source.notify(channels)
    return result
  } catch (error) {
    statements.fail(error)
    await working.catch(() => undefined)
    if (signal?.aborted) throw signal.reason
    throw error
  } finally {
    statements.dispose()
  }
}

async function committed<T>(
  connection: DatabaseConnection,
  statements: Statements,
  working: Promise<T>,
): Promise<T> {
  try {
    const result = await working
    await statements.commit(connection)
    return result
  } catch (error) {
    await statements.end()
    await connection.control('rollback').catch(() => connection.cut())
    throw error
  }
}
