/** Finds what the database knows of one request: audit events and webhook attempts. It reads all tenants. */
import { allRows, type Transaction } from '../platform/sql.js'
import type { AuditParty, AuditResource } from './audit-chain.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'

/** An audit event of the request. */
export type TracedEvent = {
  readonly tenantId: string
  readonly id: string
  readonly type: string
  readonly occurredAt: Date
  readonly outcome: string
  readonly clientId: string | null
  readonly delegationId: string | null
  readonly grantId: string | null
  readonly subject: AuditParty | null
  readonly actors: readonly AuditParty[]
  readonly resource: AuditResource | null
  readonly ip: string | null
  readonly data: Readonly<Record<string, unknown>>
}

/** A delivery of an event of the request, with one attempt. Its members are null before the first attempt. */
export type TracedAttempt = {
  readonly tenantId: string
  readonly webhookId: string
  readonly deliveryId: string
  readonly eventId: string
  readonly eventType: string
  readonly url: string
  readonly deliveryStatus: string
  readonly createdAt: Date
  readonly nextAttemptAt: Date | null
  readonly number: number | null
  readonly attemptedAt: Date | null
  readonly responseStatus: number | null
  readonly durationMs: number | null
  readonly error: string | null
}

/** The time in which the events of the request lie. Null is no bound. */
export type TraceWindow = { readonly since: Date | null; readonly until: Date | null }

const EVENTS_MAX = 1_000
const ATTEMPTS_MAX = 1_000

/** The events of a request, oldest first. Events without a number are included. */
export const eventsOfRequest = (
  tx: Transaction,
  requestId: string,
  { since, until }: TraceWindow,
) =>
  allRows<TracedEvent>(tx, {
    name: 'trace.events',
    text: `select ${columnsOf('tenant_id id type occurred_at outcome client_id delegation_id grant_id subject actors resource ip data')}
           from audit_events
           where request_id = $1 and occurred_at >= coalesce($2::timestamptz, '-infinity')
             and occurred_at < coalesce($3::timestamptz, 'infinity')
           union all
           select tenant_id, id, type, occurred_at, e.members ->> 'outcome',
                  e.members ->> 'client_id', e.members ->> 'delegation_id', e.members ->> 'grant_id', nullif(e.members -> 'subject', 'null'),
                  e.members -> 'actors', nullif(e.members -> 'resource', 'null'),
                  e.members ->> 'ip', e.members -> 'data'
           from unnumbered_events u, unnest(string_to_array(u.line, chr(10))) l (line),
             lateral (select l.line::jsonb as members) e
           where e.members ->> 'request_id' = $1
           order by "occurredAt", id limit ${EVENTS_MAX}`,
    values: [requestId, since, until],
  })

/** The deliveries of events and their attempts, in order of time. */
export async function attemptsOfEvents(
  tx: Transaction,
  events: readonly Pick<TracedEvent, 'tenantId' | 'id'>[],
): Promise<TracedAttempt[]> {
  if (events.length === 0) return []
  return allRows<TracedAttempt>(tx, {
    name: 'trace.attempts',
    text: `select d.tenant_id as "tenantId", d.webhook_id as "webhookId", d.id as "deliveryId",
                  d.event_id as "eventId", d.event_type as "eventType", w.url,
                  d.status as "deliveryStatus", d.created_at as "createdAt",
                  d.next_attempt_at as "nextAttemptAt",
                  ${columnsOf('number attempted_at response_status duration_ms error', 'a')}
           from unnest($1::uuid[], $2::uuid[]) as e (tenant_id, id)
           join webhooks w on w.tenant_id = e.tenant_id
           join webhook_deliveries d
             on d.tenant_id = e.tenant_id and d.webhook_id = w.id and d.event_id = e.id
           left join webhook_attempts a on a.tenant_id = d.tenant_id and a.delivery_id = d.id
           order by coalesce(a.attempted_at, d.created_at), a.number limit ${ATTEMPTS_MAX}`,
    values: [events.map(({ tenantId }) => tenantId), events.map(({ id }) => id)],
  })
}

/** A grant of the vault under which a call was made. */
export type UsedGrant = {
  readonly id: string
  readonly kind: 'vault_grant' | 'vault_lease'
  readonly grantee: string
}

/** The grants and leases of a tenant with these ids. */
export const usedGrants = (tx: Transaction, tenantId: string, ids: readonly string[]) =>
  allRows<UsedGrant>(tx, {
    name: 'trace.grants',
    text: `select id, 'vault_grant' as kind, grantee_type || ' ' || grantee_id as grantee from vault_grants
           where tenant_id = $1 and id = any($2::uuid[])
           union all
           select id, 'vault_lease', 'agent ' || recipient_id from vault_leases
           where tenant_id = $1 and id = any($2::uuid[])`,
    values: [tenantId, ids],
  })
