/** What a repository needs of a connection: named, bound statements inside a transaction. */

export interface Statement {
  /** Unique name; the statement is prepared once per connection under it. */
  readonly name: string
  readonly text: string
  readonly values?: readonly unknown[]
}

export interface Rows<Row> {
  readonly rows: Row[]
  readonly rowCount: number
}

/** One open transaction. `tenantId` is what row-level security lets it see; null sees all tenants. */
export interface Transaction {
  readonly tenantId: string | null
  /**
   * Statements that are asked for side by side go out in one round trip, in the order of the calls;
   * where one fails, all do.
   */
  query<Row = Record<string, unknown>>(statement: Statement): Promise<Rows<Row>>
  /**
   * Runs a statement last, in one round trip with the commit: for what need not be known before, and
   * for locks that others wait for.
   * @param onCommitted is onCommitted what it answered, after the commit.
   */
  atCommit<Row = Record<string, unknown>>(
    statement: Statement,
    onCommitted?: (rows: Rows<Row>) => void,
  ): void
}

/** Which pool serves a transaction (interface.md, [database]). */
export type PoolPurpose = 'identity' | 'plane' | 'background' | 'maintenance'

export interface TransactionOptions {
  /** Default `plane`. */
  readonly pool?: PoolPurpose | undefined
  /** Cancels the running statement on the server and rolls back. */
  readonly signal?: AbortSignal | undefined
  readonly isolation?: 'read committed' | 'serializable' | undefined
}

export interface TogetherOptions {
  /** Default `plane`. */
  readonly pool?: 'identity' | 'plane' | undefined
  /** The channels to wake, once all of it is committed. */
  readonly wakes?:
    | ((results: readonly Rows<Record<string, unknown>>[]) => readonly string[])
    | undefined
}

/** The database as actors see it. */
export interface Database {
  /** Runs `work` in a transaction that sees and writes the rows of one tenant only. */
  tenant<T>(
    tenantId: string,
    work: (tx: Transaction) => Promise<T> | T,
    options?: TransactionOptions,
  ): Promise<T>
  /** Runs `work` in a transaction that crosses tenants. Say why where it is called. */
  system<T>(work: (tx: Transaction) => Promise<T> | T, options?: TransactionOptions): Promise<T>
  /**
   * A transaction whose statements are all known beforehand, in one round trip: nothing can be
   * decided between them. Tenant as in `tenant`; null crosses tenants as `system` does. One that
   * fails has changed nothing, unless the connection was lost: then nobody knows.
   */
  together(
    tenantId: string | null,
    statements: readonly Statement[],
    options?: TogetherOptions,
  ): Promise<readonly Rows<Record<string, unknown>>[]>
  /** Throws when the database does not answer. */
  ping(signal?: AbortSignal): Promise<void>
  close(): Promise<void>
}

/**
 * True of every place in a list that statements take (`unnest ... with ordinality`); PostgreSQL takes it for one
 * of two hundred. A list itself counts as ten rows, which is too many to look up one by one where a table is
 * small or not analyzed yet: whole tables are read instead, and go on to be when they have grown, because
 * the plan of a prepared statement is kept.
 */
export const LOOKED_UP = 'place between 1 and 1000000'

/** What was found, each row at the place of the hash that it was asked for by. */
export function inOrderOf<Row>(
  hashes: readonly Uint8Array[],
  rows: readonly Row[],
  hashOf: (row: Row) => Uint8Array,
): readonly (Row | undefined)[] {
  const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
  const found = new Map(rows.map((row) => [hex(hashOf(row)), row]))
  return hashes.map((hash) => found.get(hex(hash)))
}
