/** One connection to the server: a bounded set of prepared statements, and a way to stop it. */
import { Connection, type PoolClient, type QueryResult, type Submittable } from 'pg'
import { forgetPrepared, type Pipelined, pipeline } from './pipeline.js'
import type { Statement } from './sql.js'

/** What pg has and its type declarations leave out. */
interface ClientInternals {
  readonly processID: number
  readonly secretKey: number
  readonly host: string
  readonly port: number
  readonly ssl: boolean | object
  readonly connection: {
    readonly stream: { destroy(): void }
    close(message: { type: 'S'; name: string }): void
    sync(): void
  }
}
interface CancelConnection {
  connect(portOrPath: number | string, host?: string): void
  requestSsl(): void
  cancel(pid: number, key: number): void
  on(event: 'connect' | 'sslconnect' | 'end' | 'error', listener: () => void): void
  readonly stream: { destroy(): void; end(): void }
}

/** How long the server has to stop a cancelled statement before the connection is cut. */
const CANCEL_PATIENCE_MS = 2_000
/** A server that is alive keeps its own limit; one that does not answer is given up this much later. */
const SILENCE_GRACE_MS = 5_000

export class DatabaseConnection {
  readonly #client: PoolClient
  readonly #internals: ClientInternals
  readonly #capacity: number
  readonly #silenceMs: number
  /** When each name was last used, counted in uses. */
  readonly #prepared = new Map<string, number>()
  #uses = 0
  /** The reason the connection died, if it did. */
  lost: Error | undefined
  /** The server let a time limit pass without a word, so the connection was cut. */
  fellSilent = false
  /** When it was opened or last given back, in milliseconds of `performance.now`. */
  usedAtMs = performance.now()

  constructor(client: PoolClient, statementCacheCapacity: number, statementTimeoutMs: number) {
    this.#client = client
    this.#internals = client as unknown as ClientInternals
    this.#capacity = statementCacheCapacity
    this.#silenceMs = silenceOf(statementTimeoutMs)
    // A connection that dies while it is checked out says so here; without a listener Node exits.
    client.on('error', (error: Error) => (this.lost ??= error))
  }

  /** A named statement, prepared at its first use on this connection. */
  async run<Row extends object>({ name, text, values }: Statement): Promise<QueryResult<Row>> {
    if (this.#isCrowdedBy([name])) await this.#makeRoomFor([name])
    return this.#guarded(
      this.#silenceMs,
      this.#client.query<Row>({ name, text, values: values as unknown[] }),
    )
  }

  /**
   * Named statements in one round trip, prepared at their first use. Never rejects.
   * @param statementTimeoutMs the server's limit of each, where it is not the connection's. All of them together
   * get no more than that and the grace: a request cannot wait for the sum.
   */
  async pipeline(
    statements: readonly Statement[],
    statementTimeoutMs?: number,
  ): Promise<Pipelined> {
    const silenceMs =
      statementTimeoutMs === undefined ? this.#silenceMs : silenceOf(statementTimeoutMs)
    try {
      const names = statements.map(({ name }) => name)
      if (this.#isCrowdedBy(names)) await this.#makeRoomFor(names)
      const running = pipeline(this.#client, statements)
      const ran = await this.#guarded(silenceMs, running)
      if (ran.unsure.length > 0 && this.lost === undefined) await this.#close(ran.unsure)
      return ran
    } catch (error) {
      return { results: [], error: error as Error }
    }
  }

  /** Statements without parameters, in one round trip: ROLLBACK, NOTIFY and their like. */
  async control(text: string, limitMs = this.#silenceMs): Promise<void> {
    await this.#guarded(limitMs, this.#client.query(text))
  }

  /** Asks whether the connection lives. Cut on abort: there is nothing to be stopped. */
  async probe(limitMs: number, signal: AbortSignal | undefined): Promise<void> {
    const cut = () => this.cut()
    signal?.addEventListener('abort', cut, { once: true })
    try {
      await this.control('select 1', limitMs)
    } finally {
      signal?.removeEventListener('abort', cut)
    }
  }

  /** The server's own limits do not reach us through a dead network: cut the socket then. */
  async #guarded<T>(limitMs: number, running: Promise<T>): Promise<T> {
    if (limitMs === 0) return running
    const timer = setTimeout(() => {
      this.fellSilent = true
      this.cut()
    }, limitMs)
    try {
      return await running
    } finally {
      clearTimeout(timer)
    }
  }

  /** Books that the names are used: whether there are too many with them. */
  #isCrowdedBy(names: readonly string[]): boolean {
    for (const name of names) this.#prepared.set(name, (this.#uses += 1))
    return this.#prepared.size > this.#capacity
  }

  /** Closes the least used until a quarter is free, so that it is not one by one from then on. */
  async #makeRoomFor(names: readonly string[]): Promise<void> {
    const enough = this.#prepared.size - Math.floor((this.#capacity * 3) / 4)
    const leastUsed = [...this.#prepared].sort(([, one], [, other]) => one - other)
    const unused = leastUsed.slice(0, enough).map(([name]) => name)
    await this.#close(unused.filter((name) => !names.includes(name)))
  }

  async #close(names: readonly string[]): Promise<void> {
    await this.#guarded(this.#silenceMs, closeStatements(this.#client, names))
    for (const name of names) this.#prepared.delete(name)
    forgetPrepared(this.#internals.connection, names)
  }

  /**
   * Asks the server to stop the running statement, over a connection of its own as the protocol
   * wants it, and cuts the socket if that does not help.
   * @returns when the request was delivered, so that it cannot hit a later statement.
   */
  async cancel(settled: Promise<unknown>): Promise<void> {
    const timer = setTimeout(() => this.cut(), CANCEL_PATIENCE_MS)
    const stop = () => clearTimeout(timer)
    settled.then(stop, stop)
    await sendCancel(this.#internals)
  }

  /** Ends the connection without a word. What waits on it fails. */
  cut(): void {
    this.lost ??= new Error('the connection was cut')
    this.#internals.connection.stream.destroy()
  }
}

/** How long an answer may take at the server's limit; 0 is without one. */
function silenceOf(statementTimeoutMs: number): number {
  return statementTimeoutMs > 0 ? statementTimeoutMs + SILENCE_GRACE_MS : 0
}

/** Close messages and one Sync: unlike DEALLOCATE this also works in a failed transaction. */
function closeStatements(client: PoolClient, names: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    client.query({
      submit(connection: Connection) {
        const { close, sync } = connection as unknown as ClientInternals['connection']
        for (const name of names) close.call(connection, { type: 'S', name })
        sync.call(connection)
      },
      handleReadyForQuery: () => resolve(),
      handleError: (error: Error) => reject(error),
      callback: () => undefined,
    } as Submittable)
  })
}

function sendCancel({ processID, secretKey, host, port, ssl }: ClientInternals): Promise<void> {
  return new Promise((resolve) => {
    const connection = new Connection({
      ssl: ssl as boolean,
    }) as unknown as CancelConnection
    const timer = setTimeout(() => connection.stream.destroy(), CANCEL_PATIENCE_MS)
    const done = () => {
      clearTimeout(timer)
      resolve()
    }
    connection.on('connect', () => {
      if (ssl) connection.requestSsl()
      else connection.cancel(processID, secretKey)
    })
    connection.on('sslconnect', () => connection.cancel(processID, secretKey))
    // The server closes the connection once it has passed the request on.
    connection.on('end', done)
    connection.on('error', done)
    if (host.startsWith('/')) connection.connect(`${host}/.s.PGSQL.${port}`)
    else connection.connect(port, host)
  })
}
