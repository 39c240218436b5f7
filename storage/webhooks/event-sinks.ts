/** The cursors of event sinks: per sink and tenant, the last event that the sink has confirmed. They cross tenants. */
import { allRows, changedRows, execute, onlyRow, type Transaction } from '../platform/sql.js'

/** Wakes the sinks of this process after events got their numbers. */
export const SINKS_CHANNEL = 'svc_event_sinks'

/** How long a sink keeps its place, and events are kept for it, after no process has it in its configuration. */
const FORGOTTEN_AFTER = `interval '7 days'`

/** Registers a sink that is configured. Events that are numbered from now on wait for it. */
export const registerSink = (tx: Transaction, name: string, now: Date) =>
  execute(tx, {
    name: 'event_sink.register',
    text: `insert into event_sinks (name, created_at, seen_at) values ($1, $2, $2)
           on conflict (name) do update set seen_at = excluded.seen_at`,
    values: [name, now],
  })

/** Forgets sinks that no process has had in its configuration for a week. @returns their number. */
export const forgetSinks = (tx: Transaction) =>
  changedRows(tx, {
    name: 'event_sink.forget',
    text: `delete from event_sinks where seen_at < statement_timestamp() - ${FORGOTTEN_AFTER}`,
  })

/** A tenant whose events wait, leased to one process. */
export type DueTenant = {
  readonly tenantId: string
  /** The last confirmed event. */
  readonly sequence: number
  readonly due: number
}

type SinkLease = {
  readonly sink: string
  readonly lease: string
  readonly leaseSecs: number
}

/** Leases up to `limit` tenants whose events wait for the sink, the longest waiting first. */
export const claimDueTenants = (
  tx: Transaction,
  { sink, lease, leaseSecs }: SinkLease,
  limit: number,
) =>
  allRows<DueTenant>(tx, {
    name: 'event_sink.claim',
    text: `with waiting as (
             select tenant_id, sink from event_sink_cursors
             where sink = $1 and due > sequence
               and (leased_until is null or leased_until <= statement_timestamp())
             order by due_since limit $4 for update skip locked)
           update event_sink_cursors c set lease = $2,
             leased_until = statement_timestamp() + make_interval(secs => $3)
           from waiting w where c.tenant_id = w.tenant_id and c.sink = w.sink
           returning c.tenant_id as "tenantId", c.sequence, c.due`,
    values: [sink, lease, leaseSecs, limit],
  })

/**
 * Records how far the sink has confirmed the events of a tenant, and ends the lease. Changes nothing when another process
 * has the lease by now.
 */
export const confirmEvents = (
  tx: Transaction,
  { sink, lease }: SinkLease,
  tenantId: string,
  sequence: number,
) =>
  execute(tx, {
    name: 'event_sink.confirm',
    text: `update event_sink_cursors c set sequence = $4, lease = null, leased_until = null,
             due_since = case when c.due > $4 then coalesce(
               (select e.occurred_at from events e where e.tenant_id = $1 and e.sequence = $4 + 1),
               (select a.occurred_at from audit_events a
                where a.tenant_id = $1 and a.sequence > (select svc_log_position($1, $4))
                order by a.sequence limit 1), statement_timestamp()) end
           where c.tenant_id = $1 and c.sink = $2 and c.lease = $3`,
    values: [tenantId, sink, lease, sequence],
  })

type SinkBacklog = {
  readonly tenants: number
  readonly events: number
  /** The time of the event that waits longest. Null when none waits. */
  readonly oldest: Date | null
}

/** What waits for a sink. */
export const sinkBacklog = (tx: Transaction, sink: string) =>
  onlyRow<SinkBacklog>(tx, {
    name: 'event_sink.backlog',
    text: `select count(*)::int as tenants, coalesce(sum(due - sequence), 0)::float8 as events,
             min(due_since) as oldest
           from event_sink_cursors where sink = $1 and due > sequence`,
    values: [sink],
  })
