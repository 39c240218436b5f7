/**
 * Several prepared statements in one write and one answer. What fails keeps the server from those after
 * it, and where no transaction is open, it runs them as one of their own: all of them count, or none
 * does (PostgreSQL, Extended Query, Pipelining).
 *
 * How the rows of a prepared statement look does not change as long as it lives: the server is asked
 * the first time that it runs on a connection, and refuses to run it where that is no longer true.
 */
import pg, { type Connection, type PoolClient, type Submittable } from 'pg'
import type { Rows, Statement } from './sql.js'

/**
 * The private members of pg that this file and connection.ts use. pg may change them in any release, so a test
 * looks for each of them in the installed version (test/storage/platform/pg-internals.test.ts).
 */
export const PG_INTERNALS = {
  utils: ['prepareValue'],
  client: ['_types', 'connection', 'processID', 'secretKey', 'host', 'port', 'ssl'],
  types: ['getTypeParser'],
  connection: [
    'parsedStatements',
    'stream',
    'parse',
    'bind',
    'describe',
    'execute',
    'sync',
    'close',
    'connect',
    'requestSsl',
    'cancel',
  ],
  stream: ['cork', 'uncork', 'destroy', 'end'],
  /** Methods of a query, which its client calls. */
  query: [
    'submit',
    'handleRowDescription',
    'handleDataRow',
    'handleCommandComplete',
    'handleReadyForQuery',
    'handleError',
  ],
} as const satisfies Readonly<Record<string, readonly string[]>> & {
  readonly query: readonly (keyof Run)[]
}

/** Members of `PG_INTERNALS` with their types, which the declarations of pg leave out. */
interface Wire {
  readonly parsedStatements: Record<string, string>
  readonly stream: { cork(): void; uncork(): void; destroy(error: Error): void }
  parse(message: { name: string; text: string }): void
  bind(message: {
    statement: string
    values: readonly unknown[]
    valueMapper: (value: unknown) => unknown
  }): void
  describe(message: { type: 'P' }): void
  execute(message: object): void
  sync(): void
}
type Parser = (text: string) => unknown
interface Types {
  getTypeParser(oid: number, format: 'text'): Parser
}
type Field = { readonly name: string; readonly dataTypeID: number }

export type Pipelined = {
  /** One for each statement; none where one of them failed. */
  readonly results: readonly Rows<never>[]
  /** Why the first that failed did. */
  readonly error: Error | null
}
/** What was prepared on the way of one that failed may or may not be there. */
type Ended = Pipelined & { readonly unsure: readonly string[] }

/** From a value to what is sent of it. */
const { prepareValue } = (
  pg as unknown as { readonly utils: { prepareValue(value: unknown): unknown } }
).utils

/** How the rows of a statement look. */
class Shape {
  readonly #names: readonly string[]
  readonly #parsers: readonly Parser[]
  readonly #empty: Readonly<Record<string, unknown>>

  constructor(fields: readonly Field[], types: Types) {
    this.#names = fields.map(({ name }) => name)
    this.#parsers = fields.map(({ dataTypeID }) => types.getTypeParser(dataTypeID, 'text'))
    this.#empty = Object.fromEntries(this.#names.map((name) => [name, null]))
  }

  /** @throws where a value is none of its type. */
  row(values: readonly (string | null)[]): Readonly<Record<string, unknown>> {
    const row: Record<string, unknown> = { ...this.#empty }
    for (let at = 0; at < values.length; at += 1) {
      const value = values[at] ?? null
      if (value !== null) row[this.#names[at]!] = this.#parsers[at]!(value)
    }
    return row
  }
}
const NO_ROWS = new Shape([], { getTypeParser: () => (text) => text })

/** The shapes of the statements that a connection has prepared, by their names. */
const shapes = new WeakMap<Wire, Map<string, Shape>>()

function shapesOf(wire: Wire): Map<string, Shape> {
  let known = shapes.get(wire)
  if (known === undefined) {
    known = new Map()
    shapes.set(wire, known)
  }
  return known
}

/** To be called where statements have been closed on a connection. */
export function forgetPrepared(connection: object, names: readonly string[]): void {
  const wire = connection as Wire
  for (const name of names) {
    delete wire.parsedStatements[name]
    shapes.get(wire)?.delete(name)
  }
}

/** One statement, from its first message to its last row. */
class Step {
  readonly statement: Statement
  readonly rows: unknown[] = []
  rowCount = 0
  /** Undefined where the server is asked for it. */
  shape: Shape | undefined
  readonly isDescribed: boolean

  constructor(statement: Statement, shape: Shape | undefined) {
    this.statement = statement
    this.shape = shape
    this.isDescribed = shape !== undefined
  }

  /** @throws where a value cannot be written. */
  submit(wire: Wire, isPrepared: boolean): void {
    const { name, text, values = [] } = this.statement
    if (!isPrepared) wire.parse({ name, text })
    wire.bind({ statement: name, values, valueMapper: prepareValue })
    if (!this.isDescribed) wire.describe({ type: 'P' })
    wire.execute({})
  }

  get result(): Rows<never> {
    return { rows: this.rows as never[], rowCount: this.rowCount }
  }
}

/** Runs the statements on a connection that nobody else uses meanwhile. */
export function pipeline(client: PoolClient, statements: readonly Statement[]): Promise<Ended> {
  return new Promise((resolve) => {
    const run = new Run(client, statements, resolve)
    client.query(run as unknown as Submittable)
  })
}

/** What a connection of pg works on, and tells of what comes. */
class Run {
  readonly #types: Types
  readonly #statements: readonly Statement[]
  readonly #resolve: (ended: Ended) => void
  readonly #fresh = new Map<string, string>()
  #steps: readonly Step[] = []
  #at = 0
  #failure: Error | null = null

  constructor(
    client: PoolClient,
    statements: readonly Statement[],
    resolve: (ended: Ended) => void,
  ) {
    this.#types = (client as unknown as { readonly _types: Types })._types
    this.#statements = statements
    this.#resolve = resolve
  }

  /** pg wants one; what it would be told, `handleError` and `handleReadyForQuery` have told. */
  callback(): void {}

  submit(connection: Connection): void {
    const wire = connection as unknown as Wire
    const known = shapesOf(wire)
    wire.stream.cork()
    try {
      this.#steps = this.#statements.map((statement) => {
        const { name, text } = statement
        const prepared = this.#fresh.get(name) ?? wire.parsedStatements[name]
        if (prepared !== undefined && prepared !== text) {
          throw new Error(`${name} names two statements`)
        }
        const step = new Step(
          statement,
          prepared === undefined || this.#fresh.has(name) ? undefined : known.get(name),
        )
        if (prepared === undefined) this.#fresh.set(name, text)
        step.submit(wire, prepared !== undefined)
        return step
      })
      wire.sync()
    } catch (error) {
      this.#failure = error as Error
      // Without the Sync the server undoes what it has begun as the connection ends.
      wire.stream.destroy(this.#failure)
    } finally {
      wire.stream.uncork()
    }
  }

  handleRowDescription({ fields }: { readonly fields: readonly Field[] }): void {
    this.#steps[this.#at]!.shape = new Shape(fields, this.#types)
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const step = this.#steps[this.#at]!
    try {
      step.rows.push(step.shape!.row(fields))
    } catch (error) {
      this.#failure ??= error as Error
    }
  }

  /** `INSERT 0 5`, `SELECT 1`, `COMMIT`. */
  handleCommandComplete({ text }: { readonly text: string }): void {
    const step = this.#steps[this.#at]!
    this.#at += 1
    step.rowCount = Number(text.slice(text.lastIndexOf(' ') + 1)) || 0
    step.shape ??= NO_ROWS
  }

  handleReadyForQuery(connection: Connection): void {
    const wire = connection as unknown as Wire
    const known = shapesOf(wire)
    for (const [name, text] of this.#fresh) wire.parsedStatements[name] = text
    for (const { statement, shape, isDescribed } of this.#steps) {
      if (!isDescribed) known.set(statement.name, shape!)
    }
    if (this.#failure === null) {
      const results = this.#steps.map(({ result }) => result)
      this.#resolve({ results, error: null, unsure: [] })
    } else this.handleError(this.#failure)
  }

  handleError(error: Error): void {
    this.#resolve({ results: [], error, unsure: [...this.#fresh.keys()] })
  }
}
