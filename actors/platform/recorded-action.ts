/** The audit event of what a caller did, for changes without a webhook event. */
import type { Clock } from '../../runtime/kernel/clock.js'
import type { Random } from '../../runtime/kernel/random.js'
import { appendAudit } from '../../storage/operations/audit.js'
import type { Transaction } from '../../storage/platform/sql.js'
import { type AuditedAction, audited, type Caller } from '../domain/audit.js'

export type RecordedAction = Pick<AuditedAction, 'type' | 'resource' | 'outcome' | 'data'> & {
  /** Default: the tenant of the caller. */
  readonly tenantId?: string
}

/** Records the action with the commit of the transaction. */
export function recordAction(
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  tx: Transaction,
  caller: Caller,
  { requestId }: { readonly requestId: string | undefined },
  action: RecordedAction,
): void {
  const { tenantId } = caller.principal
  const made = { id: random.uuid(), tenantId, occurredAt: clock.now(), requestId }
  appendAudit(tx, [audited(caller, { ...made, ...action })])
}
