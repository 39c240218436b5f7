/**
 * Locks every table that a migration changes before it changes one. It waits for the first and for no other, so it never
 * waits for one table while it holds another, and no deadlock with a request arises.
 */
import type { ClientBase, DatabaseError } from 'pg'

/** Modes that stop writers, the weakest first. */
const MODES = ['share', 'share row exclusive', 'exclusive', 'access exclusive'] as const
export type LockMode = (typeof MODES)[number]

const OF_TABLE = /^(?:alter|create) table /

/** Mode of the tables that a statement names where the pattern says it. */
const RULES: readonly (readonly [RegExp, LockMode])[] = [
  [/^create (?:unique )?index .*?\bon (?:only )?(\w+)/g, 'share'],
  [/^create (?:or replace )?(?:constraint )?trigger .*?\bon (\w+)/g, 'share row exclusive'],
  // Rows are changed in the order of the table, and a request changes them in another.
  [/^(?:with .*?\b)?(?:insert into|update|delete from) (?:only )?(\w+)/g, 'exclusive'],
  [/^(?:alter|drop) table (?:if exists )?(?:only )?(\w+)/g, 'access exclusive'],
  [/^(?:create|alter|drop) policy .*?\bon (\w+)/g, 'access exclusive'],
  [/^(?:alter|drop) (?:index|trigger) (?:if exists )?(?:\w+ on )?(\w+)/g, 'access exclusive'],
]
const REFERENCES = [/\breferences (\w+)/g, 'share row exclusive'] as const

/** The statements of a migration in lower case, each on one line and without comments. */
export function statementsOf(sql: string): string[] {
  const statements = sql.replaceAll(/--[^\n]*/g, ' ').matchAll(/(?:\$(\w*)\$.*?\$\1\$|[^;])+/gs)
  return Array.from(statements, ([text]) => text.replaceAll(/\s+/g, ' ').trim().toLowerCase())
}

/** `create index concurrently` and `drop index concurrently`, which PostgreSQL runs outside of transactions only. */
const CONCURRENT = /^(?:create|drop) index concurrently /

/**
 * The statements of a migration that builds its indexes while the service writes. Null for any other. The file drops an
 * index before it builds it, because a build that was interrupted leaves an invalid one.
 */
export function concurrentStatements(sql: string): readonly string[] | null {
  const statements = statementsOf(sql).filter((statement) => statement !== '')
  return statements.length > 0 && statements.every((one) => CONCURRENT.test(one))
    ? statements
    : null
}

/** The tables and indexes that a migration names, those that it creates too, with the strongest mode of each. */
export function namedLocks(sql: string): ReadonlyMap<string, LockMode> {
  const locks = new Map<string, LockMode>()
  const add = (name: string, mode: LockMode) => {
    const known = locks.get(name)
    if (known === undefined || MODES.indexOf(known) < MODES.indexOf(mode)) locks.set(name, mode)
  }
  for (const statement of statementsOf(sql)) {
    // A block can compose statements, so every word of it can be a table.
    if (statement.startsWith('do ')) {
      for (const [word] of statement.matchAll(/\w+/g)) add(word, 'access exclusive')
    }
    const rules = OF_TABLE.test(statement) ? [...RULES, REFERENCES] : RULES
    for (const [pattern, mode] of rules) {
      for (const [, name = ''] of statement.matchAll(pattern)) add(name, mode)
    }
  }
  return locks
}

/** The existing tables of them, by name. */
export async function lockedTables(
  client: ClientBase,
  sql: string,
): Promise<Map<string, LockMode>> {
  const named = namedLocks(sql)
  const { rows } = await client.query<{ name: string; table: string }>(
    `select n.name, t.relname as table from unnest($1::text[]) n (name)
     join pg_class c on c.oid = to_regclass(quote_ident(n.name))
     left join pg_index i on i.indexrelid = c.oid
     join pg_class t on t.oid = coalesce(i.indrelid, c.oid)
     where t.relkind in ('r', 'p') and t.relnamespace = 'public'::regnamespace
     order by t.relname`,
    [[...named.keys()]],
  )
  const tables = new Map<string, LockMode>()
  for (const { name, table } of rows) {
    const modes = [named.get(name)!, tables.get(table)]
    tables.set(table, MODES.findLast((mode) => modes.includes(mode))!)
  }
  return tables
}

/** A table is in use, and nothing was changed. */
export class TableInUse extends Error {
  readonly table: string
  /** False: no statement waited behind the lock. */
  readonly hasWaited: boolean

  constructor(table: string, hasWaited: boolean, cause: DatabaseError) {
    super(`the table ${table} is in use`, { cause })
    this.name = 'TableInUse'
    this.table = table
    this.hasWaited = hasWaited
  }
}

/**
 * Locks the tables that a migration changes. Waits for `awaited`, or for the first by name, as long as `lock_timeout` says.
 * @throws TableInUse
 */
export async function lockTables(client: ClientBase, sql: string, awaited?: string): Promise<void> {
  const modes = await lockedTables(client, sql)
  const tables = [...modes.keys()].toSorted((a, b) => Number(b === awaited) - Number(a === awaited))
  for (const [index, table] of tables.entries()) {
    const wait = index === 0 ? '' : 'nowait'
    await client
      .query(`lock table ${client.escapeIdentifier(table)} in ${modes.get(table)!} mode ${wait}`)
      .catch((error: DatabaseError) => {
        throw error.code === '55P03' ? new TableInUse(table, index === 0, error) : error
      })
  }
}
