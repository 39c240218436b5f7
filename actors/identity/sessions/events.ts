/** Events about a user's own actions in a tenant. The actor is the tenant user. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Database } from '../../../storage/platform/sql.js'
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

export type SignInFailure = {
  readonly tenantId: string
  /** The first factor that was tried, `reason` of the event. */
  readonly factor: 'email_otp' | 'passkey' | 'password' | 'siwe' | 'sms'
  /** Null: the user is unknown. */
  readonly sub: string | null
  /** Whether this attempt was the last one before the lockout. */
  readonly locked: boolean
  readonly address: string
}

/** Commits `auth.login.failure`, and `security.brute_force.detected` when the attempt locked the subject. */
export async function recordSignInFailure(
  needs: { readonly database: Database; readonly clock: Clock; readonly random: Random },
  { tenantId, factor, sub, locked, address: ip }: SignInFailure,
  context: MessageContext,
): Promise<void> {
  const { database, clock, random } = needs
  const base = { tenantId, sub, sessionId: null, requestId: context.requestId }
  const failed: PersonEvent[] = [
    { ...base, type: 'auth.login.failure', fields: { reason: factor, ip } },
  ]
  if (locked) {
    const fields = { subject: factor, ip }
    failed.push({ ...base, type: 'security.brute_force.detected', fields })
  }
  const events = failed.map((event) => personEvent(random, event, clock.now()))
  await database.tenant(tenantId, (tx) => appendEvents(tx, events), context)
}
