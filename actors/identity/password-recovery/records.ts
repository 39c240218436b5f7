/** Audit records of changes to a user's sign-in methods, in the audit chain of the tenant where they happened. */
import type { Random } from '../../../runtime/kernel/random.js'
import type { NewAuditEvent } from '../../../storage/operations/audit.js'
import type { AuditOnlyType } from '../../domain/audit.js'

export type PersonAudit = {
  readonly tenantId: string
  readonly type: AuditOnlyType
  readonly sub: string
  readonly address: string | null
  readonly requestId: string | undefined
  /** Additional members; never a secret. */
  readonly data?: Readonly<Record<string, string>> | undefined
}

export function personAuditRecord(random: Random, done: PersonAudit, now: Date): NewAuditEvent {
  const { tenantId, type, sub, address, requestId, data = {} } = done
  return {
    id: random.uuid(),
    tenantId,
    type,
    occurredAt: now,
    subject: { sub, subject_type: 'human' },
    actors: [],
    clientId: null,
    delegationId: null,
    grantId: null,
    resource: { type: 'human', id: sub },
    outcome: 'success',
    requestId: requestId ?? null,
    ip: address,
    data,
  }
}
