/** Events about a user's own actions in a tenant. The actor is the tenant user. */
import type { Random } from '../../../runtime/kernel/random.js'
import { type EventType, eventData, type NewEvent } from '../../domain/events.js'

export type PersonEvent = {
  readonly tenantId: string
  readonly type: EventType
  /** Null: the user is unknown. */
  readonly sub: string | null
  readonly sessionId: string | null
  readonly requestId: string | undefined
  readonly fields?: Readonly<Record<string, unknown>> | undefined
}

export function personEvent(random: Random, event: PersonEvent, now: Date): NewEvent {
  const { tenantId, type, sub, sessionId, requestId, fields = {} } = event
  const actor = sub === null ? { type: 'anonymous', id: 'unknown' } : { type: 'human', id: sub }
  const resource =
    sessionId === null ? { type: 'tenant', id: tenantId } : { type: 'session', id: sessionId }
  return {
    id: random.uuid(),
    tenantId,
    type,
    occurredAt: now,
    data: eventData({ actor, resource, requestId }, fields),
  }
}
