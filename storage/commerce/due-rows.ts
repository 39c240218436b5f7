/** Work that becomes due: a row with a due time is leased by a worker. */
import { allRows, type Transaction } from '../platform/sql.js'

/**
 * Makes the statement that leases due rows until `leasedUntil`. Concurrent workers skip them. Crosses tenants.
 * @param alias of the table, in `columns`.
 * @param condition on the due row `d`, with its `and`.
 */
export function claims<Row>(
  name: string,
  table: string,
  alias: string,
  columns: string,
  condition = '',
) {
  return (tx: Transaction, now: Date, leasedUntil: Date, limit: number): Promise<Row[]> =>
    allRows<Row>(tx, {
      name: `${name}.claim`,
      text: `update ${table} ${alias} set due_at = $2
           from (select d.tenant_id, d.id from ${table} d where due_at <= $1 ${condition}
                 order by due_at limit $3 for update skip locked) due
           where ${alias}.tenant_id = due.tenant_id and ${alias}.id = due.id
           returning ${columns}`,
      values: [now, leasedUntil, limit],
    })
}
