/** Creates an object once for each idempotency key. */
import type { MessageContext } from '../../runtime/kernel/actor.js'
import { idempotently, kept } from '../../storage/platform/idempotency.js'
import type { Database, Transaction } from '../../storage/platform/sql.js'
import type { Creation } from '../domain/idempotency.js'

/**
 * Runs `create` in the tenant of the caller. A repetition gets the stored outcome, if that was `created`: refusals are not
 * stored.
 */
export function createOnce<Outcome extends { readonly tag: string }>(
  { database }: { readonly database: Database },
  { caller, idempotency }: Creation,
  { signal }: Pick<MessageContext, 'signal'>,
  create: (tx: Transaction, tenantId: string) => Promise<Outcome>,
) {
  const { tenantId } = caller.principal
  return database.tenant(
    tenantId,
    (tx) => idempotently(tx, idempotency, () => create(tx, tenantId), kept('created')),
    { signal },
  )
}
