/**
 * Calls through egress whose process has died: their beginning is told, and their end is not. They are
 * found by time, which costs running calls nothing: what began longer ago than any call may run has
 * ended.
 */
import type { AuditParty } from '../operations/audit-chain.js'
import type { Transaction } from '../platform/sql.js'

/** Calls looked at in one go are those that began within so long. */
const SLICE = '10 seconds'
/**
 * Added to the longest a call may run: before its clock starts its secret is opened, after it its end
 * is written.
 */
const SPARE = '2 minutes'
/** A process that has not said its limit for so long, and that limit, relays nothing any more. */
const SILENCE = '10 minutes'

/** The id by which the beginning of a call is told, of the id that its end will have. */
export function startEventId(endId: string): string {
  return `${endId.slice(0, 14)}8${endId.slice(15)}`
}

/** Says that calls of this process end after so long. */
export async function announceCallLimit(tx: Transaction, hopTimeoutSecs: number): Promise<void> {
  await tx.query({
    name: 'egress_settlement.say_limit',
    text: `insert into egress_call_limits as l (hop_timeout_secs, said_at)
           values ($1, statement_timestamp())
           on conflict (hop_timeout_secs) do update set said_at = excluded.said_at
           where l.said_at < excluded.said_at`,
    values: [hopTimeoutSecs],
  })
}

export type LostCallRow = {
  tenantId: string
  /** Of the event that tells of its end. */
  endId: string
  actor: unknown
  resource: { type: string; id: string }
  host: string
  method: string
  subject: AuditParty | null
  actors: AuditParty[]
  clientId: string | null
  delegationId: string | null
  grantId: string | null
  requestId: string | null
  ip: string | null
}

export type LostCalls = {
  readonly calls: readonly LostCallRow[]
  /** Calls that began after them may run. */
  readonly isLast: boolean
}

/**
 * Takes the next stretch of time in which all calls have ended, and finds those whose end is not told:
 * tell them in the same transaction. Another process that asks meanwhile gets nothing.
 * @returns undefined: there is none, or another process is at it.
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
  const [stretch] = taken.rows
  if (stretch === undefined) return undefined
  const { rows } = await tx.query<LostCallRow>({
    name: 'egress_settlement.lost',
    // Step by step: row-level security lets an index be used for ids that are there, not for ones that
    // are being computed.
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
             where c.told is null)
           select b.tenant_id as "tenantId", b.end_id as "endId", b.data -> 'actor' as actor,
             b.data -> 'resource' as resource, b.data ->> 'host' as host,
             b.data ->> 'method' as method, a.subject, a.actors, a.client_id as "clientId",
             a.delegation_id as "delegationId", a.grant_id as "grantId",
             a.request_id as "requestId", a.ip
           from lost b
           cross join lateral (select * from audit_events a where a.tenant_id = b.tenant_id
             and a.occurred_at = b.occurred_at and a.id = b.id offset 0) a
           order by b.tenant_id, b.sequence`,
    values: [stretch.after, stretch.until],
  })
  return { calls: rows, isLast: stretch.isLast }
}
