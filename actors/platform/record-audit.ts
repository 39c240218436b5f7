/** Writes the audit event of what a caller did. */
import type { Clock } from '../../runtime/kernel/clock.js'
import type { Random } from '../../runtime/kernel/random.js'
import { appendAudit } from '../../storage/operations/audit.js'
import type { Transaction } from '../../storage/platform/sql.js'
import { type AuditedAction, audited, type Caller } from '../domain/audit.js'

/** Appends the event in the transaction of the action. */
export function recordAudit(
  tx: Transaction,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  caller: Caller,
  { requestId }: { readonly requestId: string | undefined },
  action: Pick<AuditedAction, 'type' | 'resource' | 'outcome' | 'data'> & {
    /** Default: the tenant of the caller. */
    readonly tenantId?: string
  },
): void {
  const { tenantId } = caller.principal
  const event = { id: random.uuid(), tenantId, occurredAt: clock.now(), requestId }
  appendAudit(tx, [audited(caller, { ...event, ...action })])
}
