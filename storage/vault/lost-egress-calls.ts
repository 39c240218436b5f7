/**
 * Lost egress calls: calls with a start event and without an end event, because their process was
 * killed. They are found by time, which costs running calls nothing: a call that started longer ago than
 * any call may run has ended.
 */
import type { DelegationIntent } from '../../actors/domain/agents/delegation-intent.js'
import type { AuditParty } from '../operations/audit-chain.js'
import { execute, type Transaction } from '../platform/sql.js'

/** Span of start times that one transaction covers. */
const SLICE = '10 seconds'
/** Added to the call time limit, for unsealing before and recording the end after a call. */
const SPARE = '2 minutes'
/** A process that has not announced its limit for this long plus the limit runs no calls any more. */
const SILENCE = '10 minutes'

/** The id of the start event of a call, derived from the id of its end event. */
export function startEventId(endId: string): string {
  return `${endId.slice(0, 14)}8${endId.slice(15)}`
}

/** Announces the call time limit of this process. */
export const sayCallLimit = (tx: Transaction, hopTimeoutSecs: number) =>
  execute(tx, {
    name: 'egress_settlement.say_limit',
    text: `insert into egress_call_limits as l (hop_timeout_secs, said_at)
           values ($1, statement_timestamp())
           on conflict (hop_timeout_secs) do update set said_at = excluded.said_at
           where l.said_at < excluded.said_at`,
    values: [hopTimeoutSecs],
  })

export type LostCallRow = {
  tenantId: string
  /** Id of the end event. */
  endId: string
  actor: unknown
  resource: { type: string; id: string }
  host: string
  method: string
  subject: AuditParty | null
  actors: AuditParty[]
  clientId: string | null
  delegationId: string | null
  delegation: DelegationIntent | null
  grantId: string | null
  requestId: string | null
  ip: string | null
}

type LostCalls = {
  readonly calls: readonly LostCallRow[]
  /** Later calls may still run. */
  readonly isLast: boolean
}

/**
 * Claims the next time span in which all calls have ended, and finds the lost ones. The caller must
 * append their end events in the same transaction. A concurrent caller gets nothing.
 * @returns undefined when there is no such span, or another process has claimed it.
 */
export async function takeLostCalls(tx: Transaction): Promise<LostCalls | undefined> {
  const taken = await tx.query<{ after: string; until: string; isLast: boolean }>({
    name: 'egress_settlement.take',
    text: `with at as (
             select settled_until as after from egress_settlement for update skip locked),
           ended as (
             select statement_timestamp() - interval '${SPARE}'
               - make_interval(secs => coalesce(max(hop_timeout_secs), 0)) as before
             from egress_call_limits
             where said_at + make_interval(secs => hop_timeout_secs)
               > statement_timestamp() - interval '${SILENCE}'),
           due as materialized (
             select at.after, least(ended.before, (
                 select dispatched_at + interval '${SLICE}' from events
                 where type = 'vault.credential.accessed' and dispatched_at > at.after
                 order by dispatched_at limit 1)) as until, ended.before
             from at, ended)
           update egress_settlement set settled_until = due.until
           from due where due.until > due.after
           returning due.after::text as after, due.until::text as until,
             due.until = due.before as "isLast"`,
  })
  const [span] = taken.rows
  if (span === undefined) return undefined
  const { rows } = await tx.query<LostCallRow>({
    name: 'egress_settlement.lost',
    // Materialized step by step, because row-level security prevents index use for computed ids.
    text: `with begun as materialized (
             select tenant_id, sequence, id, data, occurred_at,
               overlay(id::text placing '7' from 15)::uuid as end_id
             from events
             where dispatched_at > $1::timestamptz and dispatched_at <= $2::timestamptz
               and type = 'vault.credential.accessed' and substr(id::text, 15, 1) = '8'),
           lost as materialized (
             select b.* from begun b
             left join lateral (select true as told from events c
               where c.tenant_id = b.tenant_id and c.id = b.end_id offset 0) c on true
             left join lateral (select true as recorded from unnumbered_events u
               where u.tenant_id = b.tenant_id and u.id = b.end_id offset 0) u on true
             where c.told is null and u.recorded is null)
           select b.tenant_id as "tenantId", b.end_id as "endId", e.data -> 'actor' as actor,
             e.data -> 'resource' as resource, e.data ->> 'host' as host,
             e.data ->> 'method' as method, a.subject, a.actors, a.client_id as "clientId",
             a.delegation_id as "delegationId", a.data -> 'delegation' as delegation, a.grant_id as "grantId",
             a.request_id as "requestId", a.ip
           from lost b
           cross join lateral (select * from audit_events a where a.tenant_id = b.tenant_id
             and a.occurred_at = b.occurred_at and a.id = b.id offset 0) a
           cross join lateral (select case when a.event_about is null then b.data else
             svc_event_data(a.event_about, a.subject, a.resource, a.request_id, a.data) end as data) e
           order by b.tenant_id, b.sequence`,
    values: [span.after, span.until],
  })
  return { calls: rows, isLast: span.isLast }
}
