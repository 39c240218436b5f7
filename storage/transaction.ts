/** One way to run a transaction: bound, cancellable, rolled back on any failure. */
import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Session } from './session.js'
import type { Rows, Statement, Transaction, TransactionOptions } from './sql.js'
import { openingStatements, sightStatement } from './tenancy.js'
import {
  DatabaseUnavailable,
  isConnectionLoss,
  isGivenUp,
  isSerializationFailure,
} from './unavailable.js'

const SERIALIZABLE_ATTEMPTS_MAX = 6
const RETRY_DELAY_MS = 10

/** Where a transaction runs: a connection for as long as `use` takes. */
export interface SessionSource {
  /** @param opening runs first; a connection on which it fails for being dead is replaced. */
  use<T>(
    opening: string | undefined,
    signal: AbortSignal | undefined,
    work: (session: Session) => Promise<T>,
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
  source: SessionSource,
  tenantId: string | null,
  work: (tx: Transaction) => Promise<T>,
  { signal, isolation }: TransactionOptions = {},
): Promise<T> {
  const opening = openingStatements(tenantId, isolation, source.statementTimeoutMs)
  const attemptsMax = isolation === 'serializable' ? SERIALIZABLE_ATTEMPTS_MAX : 1
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await source.use(opening, signal, (session) =>
        inTransaction(session, tenantId, work, source, signal),
      )
    } catch (error) {
      if (attempt >= attemptsMax || !isSerializationFailure(error)) {
        if (!isGivenUp(error)) throw error
        throw new DatabaseUnavailable('the server gave a transaction up', error)
      }
      await sleep(randomInt(RETRY_DELAY_MS * attempt * attempt) + 1, undefined, { signal })
    }
  }
}

/** Runs statements that need not wait for one another as one transaction, in one round trip. */
export async function transactTogether(
  source: SessionSource,
  tenantId: string | null,
  statements: readonly Statement[],
): Promise<readonly Rows<Record<string, unknown>>[]> {
  const all = [sightStatement(tenantId), ...statements]
  return source.use(undefined, undefined, async (session) => {
    try {
      const [, ...results] = await session.together(all)
      return results.map(({ rows, rowCount }) => ({ rows, rowCount: rowCount ?? 0 }))
    } catch (error) {
      if (!isConnectionLoss(error) && !isGivenUp(error)) throw error
      throw new DatabaseUnavailable('a transaction got no answer', error)
    }
  })
}

async function inTransaction<T>(
  session: Session,
  tenantId: string | null,
  work: (tx: Transaction) => Promise<T>,
  source: SessionSource,
  signal: AbortSignal | undefined,
): Promise<T> {
  const statements = new Statements(session, source.statementTimeoutMs, signal)
  const tx: Transaction = { tenantId, query: (statement) => statements.run(statement) }
  const channels = new Set<string>()
  wakeUps.set(tx, channels)
  try {
    const result = await work(tx)
    await statements.close()
    signal?.throwIfAborted()
    const { command } = await session.control('commit')
    // The server answers COMMIT with ROLLBACK when a statement had failed and nobody minded.
    if (command !== 'COMMIT') throw new Error('the transaction had failed and was rolled back')
    source.notify(channels)
    return result
  } catch (error) {
    await statements.close()
    await session.control('rollback').catch(() => session.cut())
    if (signal?.aborted) throw signal.reason
    if (isConnectionLoss(error)) {
      throw new DatabaseUnavailable('the connection was lost in a transaction', error)
    }
    throw error
  } finally {
    statements.dispose()
  }
}

/** The statements of one transaction, one after another, until it is over. */
class Statements {
  readonly #session: Session
  readonly #limitMs: number | undefined
  readonly #signal: AbortSignal | undefined
  #last: Promise<unknown> = Promise.resolve()
  #running: Promise<unknown> | undefined
  #cancelling: Promise<void> | undefined
  #over = false

  constructor(session: Session, limitMs: number | undefined, signal: AbortSignal | undefined) {
    this.#session = session
    this.#limitMs = limitMs === undefined ? undefined : limitMs + 5_000
    this.#signal = signal
    signal?.addEventListener('abort', this.#cancel, { once: true })
  }

  run<Row>(statement: Statement): Promise<Rows<Row>> {
    if (this.#over) return Promise.reject(new Error('the transaction is over'))
    const mine = this.#last.then(async () => {
      this.#signal?.throwIfAborted()
      const running = this.#session.run<Row & object>(statement, this.#limitMs)
      this.#running = running
      try {
        const { rows, rowCount } = await running
        return { rows, rowCount: rowCount ?? 0 }
      } finally {
        this.#running = undefined
      }
    })
    this.#last = mine.catch(() => undefined)
    return mine
  }

  /** No statement starts from here on; waits for those that have. */
  async close(): Promise<void> {
    this.#over = true
    await this.#last
    await this.#cancelling
  }

  dispose(): void {
    this.#signal?.removeEventListener('abort', this.#cancel)
  }

  readonly #cancel = (): void => {
    if (this.#running) this.#cancelling = this.#session.cancel(this.#running)
  }
}
