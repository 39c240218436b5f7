/** Statements of tests. */
import { createHash } from 'node:crypto'
import type { Database } from '../../../storage/platform/sql.js'
import { numberAll } from './numbered.js'

/** Runs a statement across tenants, for what a test must inspect or change from outside. */
export async function sql<Row>(
  database: Database,
  text: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  if (/\b(?:all_|audit_)?events\b/.test(text)) await numberAll(database)
  const { rows } = await database.system((tx) =>
    tx.query<Row>({ name: `test.${createHash('sha1').update(text).digest('hex')}`, text, values }),
  )
  return rows
}
