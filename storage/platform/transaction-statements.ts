/** The statements of one transaction, from its opening to the commit. */
import type { Pipelined } from './pipeline.js'
import type { DatabaseConnection } from './connection.js'
import type { Rows, Statement } from './sql.js'
import { standbyError } from './tenancy.js'
import { isConnectionLoss } from './unavailable.js'

const COMMIT: Statement = { name: 'transaction.commit', text: 'commit' }

interface Queued {
  readonly statement: Statement
  readonly resolve: (rows: Rows<never>) => void
  readonly reject: (error: unknown) => void
}

interface Deferred {
  readonly statement: Statement
  readonly onCommitted: ((rows: Rows<never>) => void) | undefined
}

/**
 * Statements that are enqueued in the same turn are sent in one round trip: the first ones after those that open
 * the transaction, and deferred ones with the commit.
 */
export class Statements {
  readonly #statementTimeoutMs: number | undefined
  readonly #signal: AbortSignal | undefined
  readonly #deferred: Deferred[] = []
  readonly #listeners: (() => void)[] = []
  /** Sent once, with the first statements. */
  #opening: readonly Statement[]
  #queue: Queued[] = []
  #connection: DatabaseConnection | undefined
  #sending: Promise<void> | undefined
  #running:
    | { readonly connection: DatabaseConnection; readonly settled: Promise<unknown> }
    | undefined
  #cancelling: Promise<void> | undefined
  #isEnded = false
  /** The first failure. The server refuses all later statements. */
  #failure: Error | null = null
  #resolveFirst: () => void = () => undefined
  /** Resolves when the first statement is enqueued. */
  readonly firstQueued: Promise<void>

  /** @param statementTimeoutMs the server's limit per statement, if it differs from the connection's. */
  constructor(
    opening: readonly Statement[],
    statementTimeoutMs: number | undefined,
    signal: AbortSignal | undefined,
  ) {
    this.#opening = opening
    this.#statementTimeoutMs = statementTimeoutMs
    this.#signal = signal
    this.firstQueued = new Promise((resolve) => (this.#resolveFirst = resolve))
    signal?.addEventListener('abort', this.#cancel, { once: true })
  }

  /** True if statements wait to be sent. */
  get hasQueued(): boolean {
    return this.#queue.length > 0
  }

  /** True if there are no statements, including deferred ones. */
  get isEmpty(): boolean {
    return !this.hasQueued && this.#deferred.length === 0
  }

  enqueue<Row>(statement: Statement): Promise<Rows<Row>> {
    if (this.#isEnded) return Promise.reject(new Error('the transaction is over'))
    const answer = new Promise<Rows<Row>>((resolve, reject) => {
      if (this.#failure !== null) return reject(this.#failure)
      this.#queue.push({ statement, resolve: resolve as Queued['resolve'], reject })
      if (this.#connection === undefined) this.#resolveFirst()
      else this.#sending ??= this.#sendSoon(this.#connection)
    })
    // The caller need not await the result, because a failure fails the transaction.
    answer.catch(() => undefined)
    return answer
  }

  /** Runs the statement with the commit, in the order of the calls. */
  defer<Row>(statement: Statement, onCommitted?: (rows: Rows<Row>) => void): void {
    if (this.#isEnded) throw new Error('the transaction is over')
    this.#deferred.push({ statement, onCommitted: onCommitted as Deferred['onCommitted'] })
  }

  /** Calls the listener after the commit. */
  afterCommit(listener: () => void): void {
    this.#listeners.push(listener)
  }

  /** @throws if the connection is dead. Nothing is committed then, and another connection can be tried. */
  async open(connection: DatabaseConnection): Promise<void> {
    let lost: Error | null = null
    this.#sending = this.#send(connection, true).then((error) => {
      lost = error
      this.#sending = undefined
      if (error !== null) return
      this.#connection = connection
      if (this.hasQueued) this.#sending = this.#sendSoon(connection)
    })
    await this.#sending
    if (lost !== null) throw lost as Error
  }

  /** Sends the remaining and the deferred statements with the commit. @throws if nothing was committed. */
  async commit(connection: DatabaseConnection): Promise<void> {
    await this.end()
    this.#signal?.throwIfAborted()
    if (this.#failure !== null) throw this.#failure
    const last = this.#deferred.map(({ statement }) => statement)
    const { results, error } = await this.#run(connection, [...last, COMMIT])
    if (error !== null) throw error
    for (const [index, { onCommitted }] of this.#deferred.entries()) onCommitted?.(results[index]!)
    for (const listener of this.#listeners) listener()
  }

  /** Accepts no more statements, and waits for those that were enqueued. */
  async end(): Promise<void> {
    this.#isEnded = true
    while (this.#sending !== undefined) await this.#sending
    await this.#cancelling
  }

  /** Rejects all enqueued statements. */
  fail(error: unknown): void {
    this.#isEnded = true
    // A batch that is on its way must not be enqueued again.
    this.#failure ??= error instanceof Error ? error : new Error(String(error))
    for (const { reject } of this.#queue.splice(0)) reject(error)
  }

  dispose(): void {
    this.#signal?.removeEventListener('abort', this.#cancel)
  }

  /** Sends in the next microtask, so that concurrent statements share a round trip. */
  async #sendSoon(connection: DatabaseConnection): Promise<void> {
    await undefined
    while (this.hasQueued) await this.#send(connection, false)
    this.#sending = undefined
  }

  /** @returns the error of a dead connection if the statements stay enqueued for another one, otherwise null. */
  async #send(connection: DatabaseConnection, mayTryAgain: boolean): Promise<Error | null> {
    if (this.#signal?.aborted || this.#failure !== null) {
      const reason: unknown = this.#signal?.aborted ? this.#signal.reason : this.#failure
      for (const { reject } of this.#queue.splice(0)) reject(reason)
      return null
    }
    const opening = this.#opening
    const batch = this.#queue.splice(0)
    const { results, error } = await this.#run(
      connection,
      batch.map(({ statement }) => statement),
    )
    const isOver = this.#failure !== null
    if (error !== null && mayTryAgain && !isOver && isConnectionLoss(error)) {
      this.#opening = opening
      this.#queue.unshift(...batch)
      return error
    }
    this.#failure ??= error
    for (const [index, { resolve, reject }] of batch.entries()) {
      if (error === null) resolve(results[index]!)
      else reject(error)
    }
    return null
  }

  /** @returns the results, without results of the opening statements. */
  async #run(connection: DatabaseConnection, statements: readonly Statement[]): Promise<Pipelined> {
    const opening = this.#opening
    this.#opening = []
    const running = connection.pipeline([...opening, ...statements], this.#statementTimeoutMs)
    this.#running = { connection, settled: running }
    const { results, error } = await running
    this.#running = undefined
    // The cancel request must not reach the next statement of this connection.
    await this.#cancelling
    return {
      results: results.slice(opening.length),
      error: error ?? standbyError(results.slice(0, opening.length)),
    }
  }

  readonly #cancel = (): void => {
    if (this.#running === undefined) return
    const { connection, settled } = this.#running
    this.#cancelling = connection.cancel(settled)
  }
}
