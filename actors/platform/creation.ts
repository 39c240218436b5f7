/** Creates an object once for each idempotency key. */
import type { MessageContext } from '../../runtime/kernel/actor.js'
import { idempotently, kept } from '../../storage/platform/idempotency.js'
import type { Database, Transaction } from '../../storage/platform/sql.js'
import type { Creation } from '../domain/idempotency.js'
import { inTenant } from './in-tenant.js'

/**
 * Runs `create` in the tenant of the caller. A repetition gets the stored outcome.
 * @param keep returns the outcome to store, without secrets that are shown once, or undefined for a refusal. Default: `created`.
 */
export function createOnce<
  Outcome extends { readonly tag: string },
  Kept extends { readonly tag: string } = Extract<Outcome, { readonly tag: 'created' }>,
>(
  { database }: { readonly database: Database },
  { caller, idempotency }: Creation,
  context: Pick<MessageContext, 'signal'>,
  create: (tx: Transaction, tenantId: string) => Promise<Outcome>,
  keep: (outcome: Outcome) => Kept | undefined = kept('created') as never,
) {
  const { tenantId } = caller.principal
  return inTenant(database, tenantId, context, (tx) =>
    idempotently(tx, idempotency, () => create(tx, tenantId), keep),
  )
}
