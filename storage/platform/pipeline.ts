/**
 * Runs several prepared statements in one round trip. After a failure the server skips the rest. Without an open
 * transaction it runs them as one transaction (PostgreSQL, Extended Query, Pipelining).
 *
 * The row description of a prepared statement never changes. It is requested when the statement first runs on a
 * connection. The server refuses the statement if a schema change would alter it.
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
  /** One result per statement. Empty if one of them failed. */
  readonly results: readonly Rows<never>[]
  /** The error of the first statement that failed, or null. */
  readonly error: Error | null
}
/** `unsure` names statements that may or may not be prepared after a failure. */
type Ended = Pipelined & { readonly unsure: readonly string[] }

/** pg's conversion of parameters. */
const { prepareValue } = (
  pg as unknown as { readonly utils: { prepareValue(value: unknown): unknown } }
).utils

/** The row description of a statement. */
class Shape {
  readonly #names: readonly string[]
  readonly #parsers: readonly Parser[]
  readonly #empty: Readonly<Record<string, unknown>>

  constructor(fields: readonly Field[], types: Types) {
    this.#names = fields.map(({ name }) => name)
    this.#parsers = fields.map(({ dataTypeID }) => types.getTypeParser(dataTypeID, 'text'))
    this.#empty = Object.fromEntries(this.#names.map((name) => [name, null]))
  }

  /** @throws if a value is invalid for its type. */
  row(values: readonly (string | null)[]): Readonly<Record<string, unknown>> {
    const row: Record<string, unknown> = { ...this.#empty }
    for (let index = 0; index < values.length; index += 1) {
      const value = values[index] ?? null
      if (value !== null) row[this.#names[index]!] = this.#parsers[index]!(value)
    }
    return row
  }
}
const NO_ROWS = new Shape([], { getTypeParser: () => (text) => text })

/** Row descriptions of the prepared statements of a connection, by prepared name. */
const shapes = new WeakMap<Wire, Map<string, Shape>>()

function shapesOf(wire: Wire): Map<string, Shape> {
  let known = shapes.get(wire)
  if (known === undefined) {
    known = new Map()
    shapes.set(wire, known)
  }
  return known
}

/** Call after statements were closed on a connection. */
export function forgetPrepared(connection: object, names: readonly string[]): void {
  const wire = connection as Wire
  for (const name of names) {
    delete wire.parsedStatements[name]
    shapes.get(wire)?.delete(name)
  }
}

/** One statement, from its first message to its last row. */
class Step {
  readonly #statement: Statement
  /** Empty: not prepared under a name. */
  readonly name: string
  readonly rows: unknown[] = []
  rowCount = 0
  /** Undefined until the server has sent it. */
  shape: Shape | undefined
  readonly isDescribed: boolean

  constructor(statement: Statement, name: string, shape: Shape | undefined) {
    this.#statement = statement
    this.name = name
    this.shape = shape
    this.isDescribed = shape !== undefined
  }

  /** @throws if a value cannot be serialised. */
  submit(wire: Wire, isPrepared: boolean): void {
    const { text, values = [] } = this.#statement
    if (!isPrepared) wire.parse({ name: this.name, text })
    wire.bind({ statement: this.name, values, valueMapper: prepareValue })
    if (!this.isDescribed) wire.describe({ type: 'P' })
    wire.execute({})
  }

  get result(): Rows<never> {
    return { rows: this.rows as never[], rowCount: this.rowCount }
  }
}

/**
 * Runs the statements. The caller must have exclusive use of the connection.
 * @param names under which they are prepared. Null: parses and describes each statement, because a pooler can use another
 * server each time.
 */
export function pipeline(
  client: PoolClient,
  statements: readonly Statement[],
  names: readonly string[] | null,
): Promise<Ended> {
  return new Promise((resolve) => {
    const run = new Run(client, statements, resolve, names)
    client.query(run as unknown as Submittable)
  })
}

/** A pg Submittable, which receives the messages of the connection. */
class Run {
  readonly #types: Types
  readonly #statements: readonly Statement[]
  readonly #resolve: (ended: Ended) => void
  readonly #names: readonly string[] | null
  readonly #fresh = new Map<string, string>()
  #steps: readonly Step[] = []
  #index = 0
  #failure: Error | null = null

  constructor(
    client: PoolClient,
    statements: readonly Statement[],
    resolve: (ended: Ended) => void,
    names: readonly string[] | null,
  ) {
    this.#names = names
    this.#types = (client as unknown as { readonly _types: Types })._types
    this.#statements = statements
    this.#resolve = resolve
  }

  /** Required by pg. `handleError` and `handleReadyForQuery` report the result. */
  callback(): void {}

  submit(connection: Connection): void {
    const wire = connection as unknown as Wire
    const known = shapesOf(wire)
    wire.stream.cork()
    try {
      this.#steps = this.#statements.map((statement, index) => {
        const name = this.#names?.[index]
        if (name === undefined) {
          const step = new Step(statement, '', undefined)
          step.submit(wire, false)
          return step
        }
        const isFresh = this.#fresh.has(name)
        const isPrepared = isFresh || wire.parsedStatements[name] !== undefined
        const step = new Step(statement, name, isFresh ? undefined : known.get(name))
        if (!isPrepared) this.#fresh.set(name, statement.text)
        step.submit(wire, isPrepared)
        return step
      })
      wire.sync()
    } catch (error) {
      this.#failure = error as Error
      // Without a Sync the server rolls back when the connection closes.
      wire.stream.destroy(this.#failure)
    } finally {
      wire.stream.uncork()
    }
  }

  handleRowDescription({ fields }: { readonly fields: readonly Field[] }): void {
    this.#steps[this.#index]!.shape = new Shape(fields, this.#types)
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const step = this.#steps[this.#index]!
    try {
      step.rows.push(step.shape!.row(fields))
    } catch (error) {
      this.#failure ??= error as Error
    }
  }

  /** `INSERT 0 5`, `SELECT 1`, `COMMIT`. */
  handleCommandComplete({ text }: { readonly text: string }): void {
    const step = this.#steps[this.#index]!
    this.#index += 1
    step.rowCount = Number(text.slice(text.lastIndexOf(' ') + 1)) || 0
    step.shape ??= NO_ROWS
  }

  handleReadyForQuery(connection: Connection): void {
    const wire = connection as unknown as Wire
    const known = shapesOf(wire)
    for (const [name, text] of this.#fresh) wire.parsedStatements[name] = text
    for (const { name, shape, isDescribed } of this.#steps) {
      if (!isDescribed && name !== '') known.set(name, shape!)
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
