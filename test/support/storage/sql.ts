/** Statements of tests. */
import { createHash } from 'node:crypto'
import type { Database } from '../../../storage/platform/sql.js'
import { numberAll } from './numbered.js'

/** Databases of services that test files share. */
const shared = new WeakSet<object>()
/** What other files would see. */
const WIDE = /^\s*(?:update|delete)\b(?!.*\bwhere\b)|\b(?:alter|create|drop|truncate)\b/is

/** From now on `sql()` refuses a statement that changes all rows of a table, or the schema. */
export function refuseWide(database: Database): void {
  shared.add(database)
}

type Holder = Database | { readonly db: { readonly database: Database } }

/**
 * Runs a statement across tenants, for what a test must inspect or change from outside:
 * `sql(running)\`select ... where id = ${id}\`` binds the id.
 */
export function sql<Row>(
  at: Holder,
): (parts: TemplateStringsArray, ...values: readonly unknown[]) => Promise<Row[]>
export function sql<Row>(at: Holder, text: string, values?: readonly unknown[]): Promise<Row[]>
export function sql<Row>(at: Holder, text?: string, values: readonly unknown[] = []) {
  const database = 'db' in at ? at.db.database : at
  if (text !== undefined) return run<Row>(database, text, values)
  return (parts: TemplateStringsArray, ...bound: readonly unknown[]) =>
    run<Row>(
      database,
      parts.reduce((head, tail, n) => `${head}$${n}${tail}`),
      bound,
    )
}

async function run<Row>(
  database: Database,
  text: string,
  values: readonly unknown[],
): Promise<Row[]> {
  if (shared.has(database) && WIDE.test(text)) {
    throw new Error(`other test files use this database too: ${text}`)
  }
  if (/\b(?:all_|audit_)?events\b/.test(text)) await numberAll(database)
  const { rows } = await database.system((tx) =>
    tx.query<Row>({ name: `test.${createHash('sha1').update(text).digest('hex')}`, text, values }),
  )
  return rows
}
