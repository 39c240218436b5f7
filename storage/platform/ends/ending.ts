/** Runs what the table of this folder says, in the transaction of the change. */
import type { Rows, Statement, Transaction } from '../sql.js'
import { notifyAfterCommit } from '../transaction.js'
import { type Ending, ENDS } from './table.js'

/** What a change concerns. `id` is the subject of a deleted user. */
type EndKey = { readonly tenantId: string | null; readonly id: string }

/** A statement that ends something: the test of this folder tells it from others by the member. */
export type EndingStatement = Statement & { readonly ending: Ending }

/**
 * What runs a change that ends something, with all that ends with it. Every statement that can be such a change runs here.
 * @param keys what the change concerns, if it is known: then all is sent in one round trip. Otherwise the change returns
 * `tenantId` and `id` of what it ended.
 */
export const ending = (
  tx: Transaction,
  by: Ending,
  keys?: readonly EndKey[],
): Pick<Transaction, 'query'> => ({
  async query<Row>(change: Statement): Promise<Rows<Row>> {
    const statement: EndingStatement = { ...change, ending: by }
    const changed = tx.query<Row>(statement)
    if (keys !== undefined) await follow(tx, by, keys)
    const result = await changed
    if (keys === undefined) await follow(tx, by, result.rows as readonly EndKey[])
    return result
  },
})

async function follow(tx: Transaction, by: Ending, keys: readonly EndKey[]): Promise<void> {
  if (keys.length === 0) return
  tx.forget(keys.map(({ id }) => id))
  const values = [keys.map(({ tenantId }) => tenantId), keys.map(({ id }) => id)]
  const run = async ({ name, text, next, wakes }: (typeof ENDS)[number]) => {
    const { rows } = await tx.query<EndKey>({ name, text, values })
    if (wakes !== undefined && rows.length > 0) notifyAfterCommit(tx, wakes)
    if (next !== undefined) await follow(tx, next, rows)
    else tx.forget(rows.map(({ id }) => id))
  }
  await Promise.all(ENDS.filter(({ on }) => on === by).map(run))
}
