/** The statements of one transaction, from the one that opens it to the commit. */
import type { Pipelined } from './pipeline.js'
import type { DatabaseConnection } from './connection.js'
import type { Rows, Statement } from './sql.js'
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
 * What is asked for at once goes out at once, in one write and one answer: the first statements behind
 * those that open the transaction, and what was deferred with the commit.
 */
export class Statements {
  readonly #statementTimeoutMs: number | undefined
  readonly #signal: AbortSignal | undefined
  readonly #deferred: Deferred[] = []
  /** Sent with the first statements, and then no more. */
  #opening: readonly Statement[]
  #queue: Queued[] = []
  #connection: DatabaseConnection | undefined
  #sending: Promise<void> | undefined
  #running:
    | { readonly connection: DatabaseConnection; readonly settled: Promise<unknown> }
    | undefined
  #cancelling: Promise<void> | undefined
  #isEnded = false
  /** Why the first that failed did: from there on the server would refuse every other. */
  #failure: Error | null = null
  #resolveFirst: () => void = () => undefined
  /** When something has been asked for. */
  readonly firstQueued: Promise<void>

  /** @param statementTimeoutMs the server's limit of each, where it is not the connection's. */
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

  /** Whether something waits to be sent. */
  get hasQueued(): boolean {
    return this.#queue.length > 0
  }

  /** Whether there is nothing to be sent, now or with the commit. */
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
    // Nobody has to wait for it: the transaction fails by it as well.
    answer.catch(() => undefined)
    return answer
  }

  /** For the end of the transaction, in the order of the calls. */
  defer<Row>(statement: Statement, onCommitted?: (rows: Rows<Row>) => void): void {
    if (this.#isEnded) throw new Error('the transaction is over')
    this.#deferred.push({ statement, onCommitted: onCommitted as Deferred['onCommitted'] })
  }

  /** @throws when the connection is dead: nothing has come of it, and another one may be tried. */
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

  /** Sends what is left, what was deferred and the commit. @throws when nothing was committed. */
  async commit(connection: DatabaseConnection): Promise<void> {
    await this.end()
    this.#signal?.throwIfAborted()
    if (this.#failure !== null) throw this.#failure
    const last = this.#deferred.map(({ statement }) => statement)
    const { results, error } = await this.#run(connection, [...last, COMMIT])
    if (error !== null) throw error
    for (const [at, { onCommitted }] of this.#deferred.entries()) onCommitted?.(results[at]!)
  }

  /** No statement is asked for from here on; waits for those that were. */
  async end(): Promise<void> {
    this.#isEnded = true
    while (this.#sending !== undefined) await this.#sending
    await this.#cancelling
  }

  /** Nothing will be sent any more. */
  fail(error: unknown): void {
    this.#isEnded = true
    for (const { reject } of this.#queue.splice(0)) reject(error)
  }

  dispose(): void {
    this.#signal?.removeEventListener('abort', this.#cancel)
  }

  /** In the next turn of the microtasks, for those who ask side by side. */
  async #sendSoon(connection: DatabaseConnection): Promise<void> {
    await undefined
    while (this.hasQueued) await this.#send(connection, false)
    this.#sending = undefined
  }

  /** @returns why the connection died with nothing done, where those who asked are to wait on. */
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
    if (error !== null && mayTryAgain && isConnectionLoss(error)) {
      this.#opening = opening
      this.#queue.unshift(...batch)
      return error
    }
    this.#failure ??= error
    for (const [at, { resolve, reject }] of batch.entries()) {
      if (error === null) resolve(results[at]!)
      else reject(error)
    }
    return null
  }

  /** @returns what the statements answered, without those of the opening. */
  async #run(connection: DatabaseConnection, statements: readonly Statement[]): Promise<Pipelined> {
    const opening = this.#opening
    this.#opening = []
    const running = connection.pipeline([...opening, ...statements], this.#statementTimeoutMs)
    this.#running = { connection, settled: running }
    const { results, error } = await running
    this.#running = undefined
    // The next statement of this connection is not the one to be stopped.
    await this.#cancelling
    return { results: results.slice(opening.length), error }
  }

  readonly #cancel = (): void => {
    if (this.#running === undefined) return
    const { connection, settled } = this.#running
    this.#cancelling = connection.cancel(settled)
  }
}
