/** The transaction of a handler, which ends with the message: `signal` of its context cancels it. */
import type { MessageContext } from '../../runtime/kernel/actor.js'
import type { Database, Transaction } from '../../storage/platform/sql.js'

/** Runs `work` in a transaction that can read and write only the rows of one tenant. */
export const inTenant = <T>(
  database: Database,
  tenantId: string,
  { signal }: Pick<MessageContext, 'signal'>,
  work: (tx: Transaction) => Promise<T> | T,
): Promise<T> => database.tenant(tenantId, work, { signal })
