/**
 * Several prepared statements in one write and one answer. What fails keeps the server from those after
 * it, and where no transaction is open, it runs them as one of their own: all of them count, or none
 * does (PostgreSQL, Extended Query, Pipelining).
 */
import { type Connection, type PoolClient, Query, type QueryResult, type Submittable } from 'pg'
import type { Rows, Statement } from './sql.js'

/** What pg has and its type declarations leave out. */
interface Wire {
  readonly parsedStatements: Record<string, string>
  readonly submittedNamedStatements: Record<string, string>
  readonly stream: { cork(): void; uncork(): void; destroy(error: Error): void }
  sync(): void
}
interface Step {
  callback: (error: Error | null, result?: QueryResult) => void
  readonly name: string
  readonly text: string
  readonly _result: { _types?: unknown }
  submit(wire: object): Error | null
  handleRowDescription(message: unknown): void
  handleDataRow(message: unknown): void
  handleCommandComplete(message: unknown, connection: unknown): void
  handleReadyForQuery(connection: unknown): void
}

export type Pipelined = {
  /** One for each statement; none where one of them failed. */
  readonly results: readonly Rows<never>[]
  /** Why the first that failed did. */
  readonly error: Error | null
}
/** What was prepared on the way of one that failed may or may not be there. */
type Ended = Pipelined & { readonly unsure: readonly string[] }

/** Each step would end with a Sync, and with it a transaction of its own. */
const withoutSync = new WeakMap<Wire, object>()

function mutedOf(wire: Wire): object {
  const known = withoutSync.get(wire)
  if (known !== undefined) return known
  const muted = Object.create(wire, { sync: { value: () => undefined } }) as object
  withoutSync.set(wire, muted)
  return muted
}

/** Runs the statements on a connection that nobody else uses meanwhile. */
export function pipeline(client: PoolClient, statements: readonly Statement[]): Promise<Ended> {
  return new Promise((resolve) => {
    const types = (client as unknown as { readonly _types: unknown })._types
    const results: Rows<never>[] = []
    let failure: Error | null = null
    const steps = statements.map(({ name, text, values = [] }) => {
      const step = new Query({ name, text, values: values as unknown[] }) as unknown as Step
      step._result._types = types
      step.callback = (error, result) => {
        if (error !== null) failure ??= error
        else results.push({ rows: result!.rows as never[], rowCount: result!.rowCount ?? 0 })
      }
      return step
    })
    let at = 0
    let fresh: readonly Step[] = []
    const failed = (error: Error) => {
      resolve({ results: [], error, unsure: fresh.map(({ name }) => name) })
    }
    client.query({
      submit(connection: Connection) {
        const wire = connection as unknown as Wire
        fresh = steps.filter(({ name }) => wire.parsedStatements[name] === undefined)
        const muted = mutedOf(wire)
        wire.stream.cork()
        for (const step of steps) {
          const refused = step.submit(muted)
          // Values that cannot be written are told to the callback instead.
          if (refused !== null) failure ??= refused
        }
        // Without the Sync the server undoes what it has begun as the connection ends.
        if (failure === null) wire.sync()
        else wire.stream.destroy(failure)
        for (const { name } of fresh) delete wire.submittedNamedStatements[name]
        wire.stream.uncork()
      },
      handleRowDescription: (message: unknown) => steps[at]!.handleRowDescription(message),
      handleDataRow: (message: unknown) => steps[at]!.handleDataRow(message),
      handleCommandComplete(message: unknown, connection: unknown) {
        steps[at]!.handleCommandComplete(message, connection)
        at += 1
      },
      handleReadyForQuery(connection: Connection) {
        const wire = connection as unknown as Wire
        for (const { name, text } of fresh) wire.parsedStatements[name] = text
        for (const step of steps) step.handleReadyForQuery(connection)
        if (failure === null) resolve({ results, error: null, unsure: [] })
        else failed(failure)
      },
      handleError: failed,
      callback: () => undefined,
    } as unknown as Submittable)
  })
}
