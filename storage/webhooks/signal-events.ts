/** The events of streams: written from the audit log in its order, and kept until the receiver has acknowledged them. */
import type { AuditParty, AuditResource } from '../../actors/domain/audit.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'
import { allRows, changedRows, execute, type Transaction } from '../platform/sql.js'
import { receives, wakeStreams } from './signal-pushes.js'
import type { SubjectKey } from './signal-streams.js'

export type SignalEvent = {
  /** The `jti`. */
  readonly id: string
  readonly txn: string | null
  readonly type: string
  /** The `sub_id`. */
  readonly subject: Readonly<Record<string, unknown>>
  readonly event: Readonly<Record<string, unknown>>
  readonly issuedAt: Date
}

export type NewSignalEvent = SignalEvent & {
  readonly tenantId: string
  readonly streamId: string
  /** Null for an event about the stream. */
  readonly about: SubjectKey | null
}

/** Adds events to streams that are not disabled, without those whose subject the receiver took out. */
export async function insertSignalEvents(
  tx: Transaction,
  events: readonly NewSignalEvent[],
): Promise<void> {
  if (events.length === 0) return
  await execute(tx, {
    name: 'signal_event.insert',
    text: `insert into signal_events (tenant_id, stream_id, id, txn, type, subject, event, issued_at)
           select e.tenant_id, e.stream_id, e.id, e.txn, e.type, e.subject, e.event, e.issued_at
           from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::jsonb[], $7::jsonb[],
               $8::timestamptz[], $9::text[], $10::text[]) with ordinality
             as e (tenant_id, stream_id, id, txn, type, subject, event, issued_at, principal, session, place)
           where exists (select from signal_streams s
               where s.tenant_id = e.tenant_id and s.id = e.stream_id and s.status <> 'disabled')
             and (e.principal is null or not exists (select from signal_removed_subjects r
               where r.tenant_id = e.tenant_id and r.stream_id = e.stream_id and r.principal in (e.principal, '')
                 and (e.session = '' or r.session in (e.session, ''))))
           order by e.place`,
    values: [
      events.map(({ tenantId }) => tenantId),
      events.map(({ streamId }) => streamId),
      events.map(({ id }) => id),
      events.map(({ txn }) => txn),
      events.map(({ type }) => type),
      events.map(({ subject }) => JSON.stringify(subject)),
      events.map(({ event }) => JSON.stringify(event)),
      events.map(({ issuedAt }) => issuedAt),
      events.map(({ about }) => about?.principal ?? null),
      events.map(({ about }) => about?.session ?? null),
    ],
  })
  const streams = new Map(events.map((event) => [event.streamId, event.tenantId]))
  await wakeStreams(
    tx,
    [...streams].map(([id, tenantId]) => ({ id, tenantId })),
  )
}

type OfStream = { readonly tenantId: string; readonly id: string }

/**
 * The first events that the receiver has not acknowledged, in order. A paused stream gives none, and neither does one whose
 * receiver may have no streams any more. Crosses tenants, because the home of an agent can be another one.
 */
export const firstSignalEvents = (tx: Transaction, { tenantId, id }: OfStream, limit: number) =>
  allRows<SignalEvent>(tx, {
    name: 'signal_event.first',
    text: `select ${columnsOf('id txn type subject event issued_at', 'e')} from signal_events e
           where e.tenant_id = $1 and e.stream_id = $2 and exists (select from signal_streams s
             where s.tenant_id = $1 and s.id = $2 and s.status <> 'paused' and ${receives('s')})
           order by e.place limit $3`,
    values: [tenantId, id, limit],
  })

/** The streams with an event that a poll gives. Crosses tenants: one look serves all waiting polls. */
export const streamsWithEvents = (tx: Transaction, streams: readonly OfStream[]) =>
  allRows<OfStream>(tx, {
    name: 'signal_stream.with_events',
    text: `select s.tenant_id as "tenantId", s.id from unnest($1::uuid[], $2::uuid[]) as w (tenant_id, id)
           join signal_streams s on s.tenant_id = w.tenant_id and s.id = w.id
           cross join lateral (
             select from signal_events e where e.tenant_id = s.tenant_id and e.stream_id = s.id limit 1) e
           where s.status <> 'paused' and ${receives('s')}`,
    values: [streams.map(({ tenantId }) => tenantId), streams.map(({ id }) => id)],
  })

/** Removes events that the receiver has, or refuses. @returns how many. */
export const removeSignalEvents = (
  tx: Transaction,
  { tenantId, id }: OfStream,
  ids: readonly string[],
) =>
  changedRows(tx, {
    name: 'signal_event.remove',
    text: 'delete from signal_events where tenant_id = $1 and stream_id = $2 and id = any($3::uuid[])',
    values: [tenantId, id, ids],
  })

export type StreamPlace = { readonly tenantId: string; readonly id: string }

/** A stream whose tenant has records that it has not looked at. */
export type StreamBehind = {
  readonly tenantId: string
  readonly id: string
  readonly eventsRequested: readonly string[] | null
  readonly readTo: number
  /** The last record of the tenant. */
  readonly last: number
}

/** Locks streams that are behind the audit log, the next ones `after` a stream. Crosses tenants. */
export const lockStreamsBehind = (tx: Transaction, after: StreamPlace, limit: number) =>
  allRows<StreamBehind>(tx, {
    name: 'signal_stream.behind',
    text: `select s.tenant_id as "tenantId", s.id, s.events_requested as "eventsRequested", s.read_to as "readTo",
             q.audit_last as last
           from signal_streams s cross join lateral (
             select audit_last from event_sequences q where q.tenant_id = s.tenant_id offset 0) q
           where (s.tenant_id, s.id) > ($2, $3) and s.status <> 'disabled' and q.audit_last > s.read_to
             and coalesce((select t.status = 'active' from tenants t where t.id = s.tenant_id), false)
             and ${receives('s')}
           order by s.tenant_id, s.id limit $1 for update of s skip locked`,
    values: [limit, after.tenantId, after.id],
  })

/** A record of the audit log that may cause signals. */
export type CauseRow = {
  readonly sequence: number
  readonly type: string
  readonly occurredAt: Date
  readonly subject: AuditParty | null
  readonly resource: AuditResource | null
  readonly outcome: string
  readonly data: Readonly<Record<string, unknown>>
}

/** Records of these types after one record and up to another, in order. */
export const causesAfter = (
  tx: Transaction,
  tenantId: string,
  { from, last }: { readonly from: number; readonly last: number },
  types: readonly string[],
  limit: number,
) =>
  allRows<CauseRow>(tx, {
    name: 'signal_event.causes',
    text: `select ${columnsOf('sequence type occurred_at subject resource outcome data')} from audit_events
           where tenant_id = $1 and sequence > $2 and sequence <= $3 and type = any($4::text[])
           order by sequence limit $5`,
    values: [tenantId, from, last, types, limit],
  })

type ReadTo = Pick<StreamBehind, 'tenantId' | 'id' | 'readTo'>

/** Records how far streams have looked at the audit log. */
export const moveStreams = (tx: Transaction, streams: readonly ReadTo[]) =>
  execute(tx, {
    name: 'signal_stream.move',
    text: `update signal_streams s set read_to = g.read_to
           from unnest($1::uuid[], $2::uuid[], $3::bigint[]) as g (tenant_id, id, read_to)
           where s.tenant_id = g.tenant_id and s.id = g.id`,
    values: [
      streams.map(({ tenantId }) => tenantId),
      streams.map(({ id }) => id),
      streams.map(({ readTo }) => readTo),
    ],
  })

/**
 * Disables up to `limit` streams whose events wait for too long: paused since `pausedBefore`, with an event from before
 * `waitingBefore`, or with the most events of a tenant for which more than `most` wait. Their events go, and one says that
 * the stream is disabled. Crosses tenants.
 */
export const disableOverdueStreams = (
  tx: Transaction,
  bounds: {
    readonly now: Date
    readonly pausedBefore: Date
    readonly waitingBefore: Date
    readonly most: number
    readonly type: string
  },
  limit: number,
) =>
  changedRows(tx, {
    name: 'signal_stream.disable_overdue',
    text: `with filled as (
             select t.tenant_id from (select distinct tenant_id from signal_streams where status <> 'disabled') t
             where exists (select from signal_events e where e.tenant_id = t.tenant_id offset $4 limit 1)),
           longest as (
             select distinct on (e.tenant_id) e.tenant_id, e.stream_id
             from signal_events e join filled f on f.tenant_id = e.tenant_id
             join signal_streams s on s.tenant_id = e.tenant_id and s.id = e.stream_id and s.status <> 'disabled'
             group by e.tenant_id, e.stream_id order by e.tenant_id, count(*) desc),
           overdue as (
             select s.tenant_id, s.id from signal_streams s
             where s.status <> 'disabled' and ((s.status = 'paused' and s.status_since < $2)
               or exists (select from (select e.issued_at from signal_events e
                   where e.tenant_id = s.tenant_id and e.stream_id = s.id order by e.place limit 1) f
                 where f.issued_at < $3)
               or (s.tenant_id, s.id) in (select tenant_id, stream_id from longest))
             order by s.tenant_id, s.id limit $6 for update of s skip locked),
           changed as (
             update signal_streams s set status = 'disabled', status_since = $1, updated_at = $1,
               reason = 'too many events wait',
               attempts = 0, due_at = case when s.endpoint_url is not null then $1::timestamptz end
             from overdue o where s.tenant_id = o.tenant_id and s.id = o.id
             returning s.tenant_id, s.id),
           dropped as (
             delete from signal_events e using changed c where e.tenant_id = c.tenant_id and e.stream_id = c.id)
           insert into signal_events (tenant_id, stream_id, id, type, subject, event, issued_at)
           select c.tenant_id, c.id, gen_random_uuid(), $5, jsonb_build_object('format', 'opaque', 'id', c.id),
             jsonb_build_object('status', 'disabled', 'reason', 'too many events wait'), $1
           from changed c`,
    values: [
      bounds.now,
      bounds.pausedBefore,
      bounds.waitingBefore,
      bounds.most,
      bounds.type,
      limit,
    ],
  })
