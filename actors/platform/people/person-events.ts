/** Events and audit records of a user's own actions in a tenant. The actor is the tenant user. */
import type { Random } from '../../../runtime/kernel/random.js'
import type { NewAuditEvent } from '../../../storage/operations/audit.js'
import { type AuditOnlyType, byPerson } from '../../domain/audit.js'
import { catalogued, type EventFields, type EventType, type NewEvent } from '../../domain/events.js'

/** What a person did: a type of the catalogue with its fields. */
export type PersonDeed<T extends EventType = EventType> = T extends EventType
  ? { readonly type: T } & (object extends EventFields<T>
      ? { readonly fields?: EventFields<T> }
      : { readonly fields: EventFields<T> })
  : never

export type PersonEvent = PersonDeed & {
  readonly tenantId: string
  /** Null: the user is unknown. */
  readonly sub: string | null
  readonly sessionId: string | null
  readonly requestId: string | undefined
}

export function personEvent(random: Random, event: PersonEvent, now: Date): NewEvent {
  const { tenantId, type, sub, sessionId, requestId, fields = {} } = event
  const actor = sub === null ? { type: 'anonymous', id: 'unknown' } : { type: 'human', id: sub }
  const resource =
    sessionId === null ? { type: 'tenant', id: tenantId } : { type: 'session', id: sessionId }
  return {
    id: random.uuid(),
    tenantId,
    occurredAt: now,
    ...catalogued(type, { actor, resource, requestId }, fields),
  }
}

/** A change to a user's sign-in methods, in the audit chain of the tenant where it happened. */
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
    ...byPerson(done, address),
    id: random.uuid(),
    tenantId,
    type,
    occurredAt: now,
    delegationId: null,
    resource: { type: 'human', id: sub },
    outcome: 'success',
    requestId: requestId ?? null,
    data,
  }
}
