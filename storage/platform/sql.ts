/** The interface of repositories to the database: named statements with bound parameters in a transaction. */

export interface Statement {
  /** What traces and tests call the statement. It is prepared once per connection, under a name that its text gives. */
  readonly name: string
  readonly text: string
  readonly values?: readonly unknown[]
}

export interface Rows<Row> {
  readonly rows: Row[]
  readonly rowCount: number
}

/** One open transaction. Row-level security limits it to `tenantId`. Null sees all tenants. */
export interface Transaction {
  readonly tenantId: string | null
  /**
   * Concurrent statements are sent in one round trip, in the order of the calls. If one fails, all of them fail.
   */
  query<Row = Record<string, unknown>>(statement: Statement): Promise<Rows<Row>>
  /**
   * Runs a statement last, in one round trip with the commit: for results that are not needed before, and for
   * locks that other transactions wait for.
   * @param onCommitted gets the result after the commit.
   */
  atCommit<Row = Record<string, unknown>>(
    statement: Statement,
    onCommitted?: (rows: Rows<Row>) => void,
  ): void
  /** Calls the listener after the commit, before its caller goes on. It must not throw. */
  afterCommit(listener: () => void): void
  /**
   * From the commit on, before its caller goes on, this process reads again the status of tokens that depend on one of these
   * ids. PostgreSQL notifies other processes.
   */
  forget(ids: readonly string[]): void
}

/** The pool of a transaction (docs/concepts/storage.md, Pools). */
export type PoolPurpose = 'identity' | 'plane' | 'background'

export interface TransactionOptions {
  /** Default `plane`. */
  readonly pool?: PoolPurpose | undefined
  /** Cancels the running statement on the server and rolls back. */
  readonly signal?: AbortSignal | undefined
  readonly isolation?: 'read committed' | 'serializable' | undefined
}

interface TogetherOptions {
  /** Default `plane`. */
  readonly pool?: 'identity' | 'plane' | undefined
  /** The channels to notify after the commit. */
  readonly wakes?:
    | ((results: readonly Rows<Record<string, unknown>>[]) => readonly string[])
    | undefined
}

/** Statements of a transaction of several tenants. */
export interface TenantsPart {
  /**
   * With one tenant, row-level security limits the statements to its rows. With several, they read no rows and can only
   * record events of these tenants.
   */
  readonly tenantIds: readonly string[]
  readonly statements: readonly Statement[]
}

interface AmongOptions extends TogetherOptions {
  /** The time that each statement waits for locks of other transactions. Default: only the limit for statements. */
  readonly lockTimeoutMs?: number | undefined
}

/**
 * The database as actors see it. `work` runs again after a serialization failure or a deadlock, so it has no effects outside
 * of its transaction.
 */
export interface Database {
  /** Runs `work` in a transaction that can read and write only the rows of one tenant. */
  tenant<T>(
    tenantId: string,
    work: (tx: Transaction) => Promise<T> | T,
    options?: TransactionOptions,
  ): Promise<T>
  /** Runs `work` in a transaction that crosses tenants. The caller states the reason in a comment. */
  system<T>(work: (tx: Transaction) => Promise<T> | T, options?: TransactionOptions): Promise<T>
  /**
   * Runs a transaction of known statements in one round trip. The tenant is as in `tenant`, null crosses tenants as
   * `system` does. After a failure nothing is changed, unless the connection was lost: then the outcome is unknown.
   */
  together(
    tenantId: string | null,
    statements: readonly Statement[],
    options?: TogetherOptions,
  ): Promise<readonly Rows<Record<string, unknown>>[]>
  /**
   * Runs the parts, in their order, as one transaction in one round trip. After a failure nothing of any part is changed,
   * unless the connection was lost: then the outcome is unknown.
   * @returns the results of each part.
   */
  among(
    parts: readonly TenantsPart[],
    options?: AmongOptions,
  ): Promise<readonly (readonly Rows<Record<string, unknown>>[])[]>
  /** @throws if the database is unavailable. */
  ping(signal?: AbortSignal): Promise<void>
  close(): Promise<void>
}

/**
 * A condition that is true for all rows of `unnest ... with ordinality`, and that PostgreSQL estimates as one row in
 * two hundred. Without it PostgreSQL estimates ten rows for a list, and chooses a sequential scan for tables that
 * are small or not analyzed yet. The plan of a prepared statement is kept when the table has grown.
 */
export const LOOKED_UP = 'place between 1 and 1000000'

/** Orders rows by the hashes that were looked up. Undefined for hashes without a row. */
export function inOrderOf<Row>(
  hashes: readonly Uint8Array[],
  rows: readonly Row[],
  hashOf: (row: Row) => Uint8Array,
): readonly (Row | undefined)[] {
  const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
  const rowByHash = new Map(rows.map((row) => [hex(hashOf(row)), row]))
  return hashes.map((hash) => rowByHash.get(hex(hash)))
}

/** What a statement reads or changes, in a transaction or a connection. */
type Queried = Pick<Transaction, 'query'>

export const allRows = async <Row>(tx: Queried, statement: Statement): Promise<Row[]> =>
  (await tx.query<Row>(statement)).rows

export const firstRow = async <Row>(tx: Queried, statement: Statement): Promise<Row | undefined> =>
  (await tx.query<Row>(statement)).rows[0]

/** The row of a statement that always has one. */
export const onlyRow = async <Row>(tx: Queried, statement: Statement): Promise<Row> =>
  (await tx.query<Row>(statement)).rows[0]!

/** The number of rows that a statement changed. */
export const changedRows = async (tx: Queried, statement: Statement): Promise<number> =>
  (await tx.query(statement)).rowCount

/** True if the one row of a conditional statement met its condition. */
export const isChanged = async (tx: Queried, statement: Statement): Promise<boolean> =>
  (await tx.query(statement)).rowCount === 1

/** Runs a statement without a result. */
export const execute = async (tx: Queried, statement: Statement): Promise<void> => {
  await tx.query(statement)
}

/** The only column of the rows of a statement. */
export const allValues = async <Value>(tx: Queried, statement: Statement): Promise<Value[]> =>
  (await tx.query<Record<string, Value>>(statement)).rows.map((row) => Object.values(row)[0]!)

/** The only column of the first row. */
export const firstValue = async <Value>(
  tx: Queried,
  statement: Statement,
): Promise<Value | undefined> => (await allValues<Value>(tx, statement))[0]

/** The only column of a statement that always has a row. */
export const onlyValue = async <Value>(tx: Queried, statement: Statement): Promise<Value> =>
  (await allValues<Value>(tx, statement))[0]!
