/** The statement that retention repeats: it deletes some of the rows that ended. */
import { changedRows, type Transaction } from '../sql.js'

/**
 * Deletes up to `limit` rows whose `column` is before a time, the oldest first, and says how many. Rows that another process
 * deletes are skipped. Crosses tenants.
 */
export const removing =
  (name: string, table: string, column = 'expires_at', key = '(tenant_id, id)') =>
  (tx: Transaction, before: Date, limit: number) =>
    changedRows(tx, {
      name,
      text: `delete from ${table} where ${key} in (select ${key.replace(/[()]/g, '')} from ${table}
             where ${column} < $1 order by ${column} limit $2 for update skip locked)`,
      values: [before, limit],
    })
