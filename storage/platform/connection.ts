/** One connection to the server, with a bounded set of prepared statements and cancellation. */
import { createHash } from 'node:crypto'
import { Connection, type PoolClient, type QueryResult, type Submittable } from 'pg'
import { type Span, tracing } from '../../runtime/kernel/tracing.js'
import { forgetPrepared, type Pipelined, pipeline } from './pipeline.js'
import type { Statement } from './sql.js'
import { CommitNotReplicated } from './unavailable.js'

/** Members of pg that its type declarations lack. */
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

/** Time for the server to stop a cancelled statement. Then the connection is closed. */
const CANCEL_PATIENCE_MS = 2_000
/** Time after the server's own limit until the server counts as unresponsive. */
const SILENCE_GRACE_MS = 5_000

/**
 * The function of PostgreSQL that warns when it stops waiting for a synchronous standby, after a commit that it reports as
 * successful. Its name does not depend on the language of the server's messages.
 */
const REPLICATION_WAIT = 'SyncRepWaitForLSN'

interface Limits {
  readonly statementCacheCapacity: number
  readonly statementTimeoutMs: number
  /** True if statements are not prepared under names, for a pooler. */
  readonly unnamed: boolean
}

export class DatabaseConnection {
  readonly #client: PoolClient
  readonly #internals: ClientInternals
  readonly #capacity: number
  readonly #silenceMs: number
  readonly #unnamed: boolean
  /** True after a warning that a commit was not replicated. */
  #isUnreplicated = false
  /** The last use of each prepared name, as a counter value. */
  readonly #prepared = new Map<string, number>()
  #uses = 0
  /** Why the connection was lost, if it was. */
  lost: Error | undefined
  /** True if the connection was closed because the server did not respond in time. */
  fellSilent = false
  /** When it was opened or last released, in milliseconds of `performance.now`. */
  usedAtMs = performance.now()

  constructor(client: PoolClient, { statementCacheCapacity, statementTimeoutMs, unnamed }: Limits) {
    this.#client = client
    this.#internals = client as unknown as ClientInternals
    this.#capacity = statementCacheCapacity
    this.#unnamed = unnamed
    this.#silenceMs = silenceOf(statementTimeoutMs)
    // Emitted if the connection dies while it is in use. Without a listener Node exits.
    client.on('error', (error: Error) => (this.lost ??= error))
    client.on('notice', ({ routine }) => {
      if (routine === REPLICATION_WAIT) this.#isUnreplicated = true
    })
  }

  /** Runs a statement, which is prepared at its first use on this connection. */
  async run<Row extends object>(statement: Statement): Promise<QueryResult<Row>> {
    const name = preparedNameOf(statement)
    if (this.#isCrowdedBy([name])) await this.#makeRoomFor([name])
    const { text, values } = statement
    const span = tracing === undefined ? undefined : statementSpan([statement])
    const query = { name, text, values: values as unknown[] }
    const running = this.#guarded(this.#silenceMs, this.#client.query<Row>(query))
    const result = await ended(span, running)
    this.#requireReplication()
    return result
  }

  /** @throws if a commit of the last round trip was not replicated. */
  #requireReplication(): void {
    if (!this.#isUnreplicated) return
    this.#isUnreplicated = false
    throw new CommitNotReplicated()
  }

  /**
   * Runs statements in one round trip. Never rejects.
   * @param statementTimeoutMs the server's limit per statement, if it differs from the connection's. It also limits
   * all of them together (plus the grace), because a request cannot wait for the sum.
   */
  async pipeline(
    statements: readonly Statement[],
    statementTimeoutMs?: number,
  ): Promise<Pipelined> {
    const silenceMs =
      statementTimeoutMs === undefined ? this.#silenceMs : silenceOf(statementTimeoutMs)
    try {
      const names = this.#unnamed ? null : statements.map(preparedNameOf)
      if (names !== null && this.#isCrowdedBy(names)) await this.#makeRoomFor(names)
      const span = tracing === undefined ? undefined : statementSpan(statements)
      const running = pipeline(this.#client, statements, names)
      const ran = await ended(span, this.#guarded(silenceMs, running))
      this.#requireReplication()
      if (ran.unsure.length > 0 && this.lost === undefined) await this.#close(ran.unsure)
      return ran
    } catch (error) {
      return { results: [], error: error as Error }
    }
  }

  /** Runs statements without parameters, such as ROLLBACK and NOTIFY, in one round trip. */
  async control(text: string, limitMs = this.#silenceMs): Promise<void> {
    await this.#guarded(limitMs, this.#client.query(text))
  }

  /** Tests the connection. An abort closes it, because there is no statement to cancel. */
  async probe(limitMs: number, signal: AbortSignal | undefined): Promise<void> {
    const cut = () => this.cut()
    signal?.addEventListener('abort', cut, { once: true })
    try {
      await this.control('select 1', limitMs)
    } finally {
      signal?.removeEventListener('abort', cut)
    }
  }

  /** Closes the socket at the limit: over a dead network the server's own limits have no effect. */
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

  /** Records the use of the names. @returns true if there are too many prepared statements with them. */
  #isCrowdedBy(names: readonly string[]): boolean {
    for (const name of names) this.#prepared.set(name, (this.#uses += 1))
    return this.#prepared.size > this.#capacity
  }

  /** Closes the least recently used statements until a quarter is free, so that closing is batched. */
  async #makeRoomFor(names: readonly string[]): Promise<void> {
    const enough = this.#prepared.size - Math.floor((this.#capacity * 3) / 4)
    const leastUsed = [...this.#prepared].sort(([, a], [, b]) => a - b)
    const unused = leastUsed.slice(0, enough).map(([name]) => name)
    await this.#close(unused.filter((name) => !names.includes(name)))
  }

  async #close(names: readonly string[]): Promise<void> {
    await this.#guarded(this.#silenceMs, closeStatements(this.#client, names))
    for (const name of names) this.#prepared.delete(name)
    forgetPrepared(this.#internals.connection, names)
  }

  /**
   * Asks the server to cancel the running statement, over a separate connection as the protocol requires, and closes
   * the socket if the statement does not end.
   * @returns when the request was delivered, so that it cannot cancel a later statement.
   */
  async cancel(settled: Promise<unknown>): Promise<void> {
    const timer = setTimeout(() => this.cut(), CANCEL_PATIENCE_MS)
    const stop = () => clearTimeout(timer)
    settled.then(stop, stop)
    await sendCancel(this.#internals)
  }

  /** Closes the socket. Pending statements fail. */
  cut(): void {
    this.lost ??= new Error('the connection was closed')
    this.#internals.connection.stream.destroy()
  }
}

const NAMES_SHOWN_MAX = 4

/** The span of one round trip, named after its statements. Values are never part of it. */
function statementSpan(statements: readonly Statement[]): Span | undefined {
  if (tracing!.current() === undefined) return undefined
  const shown = statements.slice(0, NAMES_SHOWN_MAX).map(({ name }) => name)
  const more = statements.length > NAMES_SHOWN_MAX ? ' ...' : ''
  return tracing!.begin(shown.join(' ') + more, {
    role: 'client',
    attributes: { 'db.system.name': 'postgresql', 'db.operation.batch.size': statements.length },
  })
}

async function ended<T>(span: Span | undefined, running: Promise<T>): Promise<T> {
  if (span === undefined) return running
  try {
    const result = await running
    span.end((result as { readonly error?: unknown }).error instanceof Error ? 'error' : undefined)
    return result
  } catch (error) {
    span.end('error')
    throw error
  }
}

/** Time limit for a response. 0 is no limit. */
function silenceOf(statementTimeoutMs: number): number {
  return statementTimeoutMs > 0 ? statementTimeoutMs + SILENCE_GRACE_MS : 0
}

/** Sends Close messages and one Sync, which work in a failed transaction too, unlike DEALLOCATE. */
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
    // The server closes the connection after it has processed the request.
    connection.on('end', done)
    connection.on('error', done)
    if (host.startsWith('/')) connection.connect(`${host}/.s.PGSQL.${port}`)
    else connection.connect(port, host)
  })
}

/** Filters of SCIM make texts without end. */
const NAMES_KEPT_MAX = 2_048
/** 132 bits. */
const NAME_LENGTH = 22

type Named = { readonly text: string; readonly preparedName: string }

/** The newest text of each name: comparing a text that was composed costs less than searching for it. */
const preparedNames = new Map<string, Named>()

/**
 * A hash of the text, because PostgreSQL refuses a name that a connection has prepared with another text. `name` is free to
 * repeat.
 */
export function preparedNameOf({ name, text }: Statement): string {
  const found = preparedNames.get(name)
  if (found?.text === text) return found.preparedName
  const hash = createHash('sha256').update(text).digest('base64url')
  const preparedName = hash.slice(0, NAME_LENGTH)
  if (found === undefined && preparedNames.size >= NAMES_KEPT_MAX) preparedNames.clear()
  preparedNames.set(name, { text, preparedName })
  return preparedName
}
