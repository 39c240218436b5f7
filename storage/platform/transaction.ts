/** Runs transactions: bounded in time, cancellable, rolled back on failure. */
import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DatabaseConnection } from './connection.js'
import { Statements } from './transaction-statements.js'
import type { Rows, Statement, TenantsPart, Transaction, TransactionOptions } from './sql.js'
import {
  lockTimeoutStatement,
  openingStatements,
  partStatement,
  sightStatement,
  standbyError,
  type TransactionSettings,
} from './tenancy.js'
import { asUnavailable, isSerializationFailure } from './unavailable.js'

const ATTEMPTS_MAX = 6
const RETRY_DELAY_MS = 10

/** Provides a connection for the duration of `use`. */
export interface ConnectionSource {
  /**
   * @param open runs first and commits nothing. If it fails because the connection is dead, it runs again on
   * another one.
   */
  use<T>(
    open: ((connection: DatabaseConnection) => Promise<unknown>) | undefined,
    signal: AbortSignal | undefined,
    work: (connection: DatabaseConnection) => Promise<T>,
    /** Fair-share key: a tenant's id, or empty for the service. */
    share: string,
  ): Promise<T>
  readonly settings: TransactionSettings
  /** Notifies the channels soon. */
  notify(channels: Iterable<string>): void
  /** Tells this process that tokens depend on what has changed. */
  forget(ids: readonly string[]): void
  /** Counts a transaction that runs again. */
  readonly repeats: () => void
}

/** The channels to notify after the commit of a transaction. */
const wakeUps = new WeakMap<Transaction, Set<string>>()

/**
 * Notifies the channel after the commit, and never after a rollback. A crash can lose the notification, so
 * listeners must also poll.
 */
export function notifyAfterCommit(tx: Transaction, channel: string): void {
  wakeUps.get(tx)?.add(channel)
}

/**
 * Runs `work` in a transaction. After a serialization failure or a deadlock it runs again, so `work` must have no effects
 * outside of the database.
 */
export async function transact<T>(
  source: ConnectionSource,
  tenantId: string | null,
  work: (tx: Transaction) => Promise<T> | T,
  { signal, isolation }: TransactionOptions = {},
): Promise<T> {
  const opening = openingStatements(tenantId, isolation, source.settings)
  const once = () => attempt(source, opening, tenantId, work, signal)
  return repeated(once, 'a transaction was lost or cancelled', source.repeats, signal)
}

/**
 * Runs it again after a serialization failure or a deadlock (SQLSTATE 40001, 40P01), when nothing was committed. On some
 * engines any transaction can fail so.
 * @throws {DatabaseUnavailable} after six attempts, and when the database is unavailable.
 */
export async function repeated<T>(
  run: () => Promise<T>,
  message: string,
  repeats: () => void,
  signal?: AbortSignal,
): Promise<T> {
  for (let attempts = 1; ; attempts += 1) {
    try {
      return await run()
    } catch (error) {
      if (attempts >= ATTEMPTS_MAX || !isSerializationFailure(error)) {
        throw asUnavailable(error, message)
      }
      repeats()
      await sleep(randomInt(RETRY_DELAY_MS * attempts * attempts) + 1, undefined, { signal })
    }
  }
}

/** Runs independent statements as one transaction, in one round trip. */
export async function transactTogether(
  source: ConnectionSource,
  tenantId: string | null,
  statements: readonly Statement[],
): Promise<readonly Rows<Record<string, unknown>>[]> {
  const opening = [sightStatement(tenantId), ...source.settings.statements]
  return sendTogether(source, opening, statements, tenantId ?? '')
}

/** Runs the parts of several tenants as one transaction, in one round trip. @returns the results of each part. */
export async function transactAmong(
  source: ConnectionSource,
  parts: readonly TenantsPart[],
  lockTimeoutMs: number | undefined,
): Promise<readonly (readonly Rows<Record<string, unknown>>[])[]> {
  const patience = lockTimeoutMs === undefined ? [] : [lockTimeoutStatement(lockTimeoutMs)]
  const opening = [...source.settings.statements, ...patience]
  const statements = parts.flatMap((part) => [partStatement(part.tenantIds), ...part.statements])
  // The transaction is of no tenant's share: it takes one connection for all of them.
  const results = await sendTogether(source, opening, statements, '')
  let from = 0
  return parts.map((part) => {
    const begin = from + 1
    from = begin + part.statements.length
    return results.slice(begin, from)
  })
}

function sendTogether(
  source: ConnectionSource,
  opening: readonly Statement[],
  statements: readonly Statement[],
  share: string,
): Promise<readonly Rows<Record<string, unknown>>[]> {
  const work = (connection: DatabaseConnection) => runAfter(connection, opening, statements)
  return repeated(
    () => source.use(undefined, undefined, work, share),
    'the connection was lost during a transaction',
    source.repeats,
  )
}

/** Runs one statement after the settings of its pool's transactions, in one round trip. */
export async function runWithSettings<Row>(
  connection: DatabaseConnection,
  { statements }: TransactionSettings,
  statement: Statement,
): Promise<Rows<Row>> {
  const [result] = await runAfter(connection, statements, [statement])
  return result as Rows<Row>
}

/** Runs statements as one implicit transaction. @returns the results, without results of `opening`. */
async function runAfter(
  connection: DatabaseConnection,
  opening: readonly Statement[],
  statements: readonly Statement[],
): Promise<readonly Rows<Record<string, unknown>>[]> {
  const { results, error } = await connection.pipeline([...opening, ...statements])
  const failure = error ?? standbyError(results.slice(0, opening.length))
  if (failure !== null) throw failure
  return results.slice(opening.length)
}

/**
 * One attempt. It acquires the connection at the first statement, which is sent with the opening statements. If the
 * connection is dead, both are sent again on another one, because nothing is committed yet. Work without
 * statements needs no transaction.
 */
async function attempt<T>(
  source: ConnectionSource,
  opening: readonly Statement[],
  tenantId: string | null,
  work: (tx: Transaction) => Promise<T> | T,
  signal: AbortSignal | undefined,
): Promise<T> {
  signal?.throwIfAborted()
  const statements = new Statements(opening, source.settings.statementTimeoutMs, signal)
  const tx: Transaction = {
    tenantId,
    query: (statement) => statements.enqueue(statement),
    atCommit: (statement, onCommitted) => statements.defer(statement, onCommitted),
    afterCommit: (listener) => statements.afterCommit(listener),
    forget: (ids) => statements.afterCommit(() => source.forget(ids)),
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
