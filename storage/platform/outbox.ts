/**
 * The transactional outbox: events are rows that are written in the transaction of their change, without a number. The
 * sequencer numbers and chains them after the commit (event-numbers.ts).
 */
import { isoTime } from '../../runtime/kernel/text/iso-time.js'
import { numberEvents, RECORDED_CHANNEL } from './event-numbers.js'
import { type EventText, eventText, type NewEvent, type OutboxEvent } from './event-text.js'
import type { Statement, Transaction } from './sql.js'
import { notifyAfterCommit } from './transaction.js'

/** Notifies the workers that dispatch events. The notifications have no payload. */
export const EVENTS_CHANNEL = 'svc_events'

export type { NewEvent, OutboxEvent } from './event-text.js'

export interface EventRow extends NewEvent {
  readonly sequence: number
}

/** Records events with the commit. They get their numbers and their places in the audit chain after it. */
export function appendEvents(tx: Transaction, events: readonly OutboxEvent[]): void {
  if (events.length === 0) return
  appendAtCommit(tx, appending(events))
}

/** Runs a statement that ends with `APPENDING` with the commit. */
export function appendAtCommit(tx: Transaction, statement: Statement): void {
  tx.atCommit(statement)
  notifyAfterCommit(tx, RECORDED_CHANNEL)
}

/** Wakes the sequencers after the commit of events. */
export const RECORDED = (): readonly string[] => [RECORDED_CHANNEL]

/** Records events in a transaction of known statements. */
export function appending(events: readonly OutboxEvent[]): Statement {
  return { name: 'outbox.append', text: APPENDING, values: appended(events) }
}

/** Records the events of `appended`, at the end of a statement that also writes other rows. */
export const APPENDING = `insert into unnumbered_events (tenant_id, id, type, data, occurred_at, line)
  select e.tenant_id, e.id, e.type, e.body::jsonb, e.occurred_at, e.line
  from unnest($1::uuid[], $2::uuid[], $3::text[], string_to_array($4, chr(10)), $5::timestamptz[],
    string_to_array($6, chr(10))) as e (tenant_id, id, type, body, occurred_at, line)`

/**
 * Records those events of `appended` whose change succeeded, within a statement that decides several changes.
 * @param won the query with the `place` of each change that succeeded, in the order of the events from 1.
 */
export function appendingOf(won: string): string {
  return `insert into unnumbered_events (tenant_id, id, type, data, occurred_at, line)
    select e.tenant_id, e.id, e.type, e.body::jsonb, e.occurred_at, e.line
    from unnest($1::uuid[], $2::uuid[], $3::text[], string_to_array($4, chr(10)), $5::timestamptz[],
      string_to_array($6, chr(10))) with ordinality
      as e (tenant_id, id, type, body, occurred_at, line, place)
    where e.place in (select place from ${won})`
}

/** The first six parameters of a statement with `APPENDING` or `appendingOf`. */
export function appended(events: readonly OutboxEvent[]): unknown[] {
  const written: readonly EventText[] = events.map((event) =>
    'line' in event ? event : eventText(event),
  )
  return [
    list(events.map(({ tenantId }) => tenantId)),
    list(events.map(({ id }) => id)),
    list(events.map(({ type }) => type)),
    // One text, because serialised JSON has no line feeds and quoting an array is slower.
    written.map(({ body }) => body).join('\n'),
    list(events.map(({ occurredAt }) => isoTime(occurredAt))),
    written.map(({ line }) => line).join('\n'),
  ]
}

/** An array literal of ids, names or times, which need no quoting. */
function list(words: readonly string[]): string {
  return `{${words.join(',')}}`
}

const EVENT_COLUMNS = `tenant_id as "tenantId", sequence, id, type, data, occurred_at as "occurredAt"`

/** The events of the transaction's tenant after a sequence number, in order, for replays and tests. */
export async function eventsAfter(
  tx: Transaction,
  tenantId: string,
  sequence: number,
  limit: number,
): Promise<EventRow[]> {
  await numberEvents(tx, tenantId)
  const { rows } = await tx.query<EventRow>({
    name: 'outbox.after',
    text: `select ${EVENT_COLUMNS} from events
           where tenant_id = $1 and sequence > $2 order by sequence limit $3`,
    values: [tenantId, sequence, limit],
  })
  return rows
}

/** The event ids of a tenant which are in the outbox. */
export async function toldEvents(
  tx: Transaction,
  tenantId: string,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const { rows } = await tx.query<{ id: string }>({
    name: 'outbox.told',
    text: `select id from events where tenant_id = $1 and id = any($2::uuid[])
           union all
           select id from unnumbered_events where tenant_id = $1 and id = any($2::uuid[])`,
    values: [tenantId, ids],
  })
  return new Set(rows.map(({ id }) => id))
}

/** The sequence number of a tenant's latest event, or 0. */
export async function lastEventSequence(tx: Transaction, tenantId: string): Promise<number> {
  await numberEvents(tx, tenantId)
  const { rows } = await tx.query<{ last: number }>({
    name: 'outbox.last',
    text: 'select last from event_sequences where tenant_id = $1',
    values: [tenantId],
  })
  return rows[0]?.last ?? 0
}

/**
 * Takes up to `limit` waiting events, oldest first, and marks them as dispatched. The caller writes their deliveries
 * in the same transaction, so that a crash undoes both. Workers do not wait for one another.
 */
export async function takeEvents(tx: Transaction, limit: number): Promise<EventRow[]> {
  const { rows } = await tx.query<EventRow>({
    name: 'outbox.take',
    text: `with due as (
             select tenant_id, sequence from events
             where dispatched_at is null order by occurred_at, id limit $1
             for update skip locked
           )
           update events e set dispatched_at = statement_timestamp()
           from due where e.tenant_id = due.tenant_id and e.sequence = due.sequence
           returning e.tenant_id as "tenantId", e.sequence, e.id, e.type, e.data,
                     e.occurred_at as "occurredAt"`,
    values: [limit],
  })
  return rows.sort(
    (a, b) => a.occurredAt.getTime() - b.occurredAt.getTime() || (a.id < b.id ? -1 : 1),
  )
}

/** Dispatched events of a tenant, since a time, without a delivery to the subscription. */
export async function eventsNotDelivered(
  tx: Transaction,
  tenantId: string,
  webhookId: string,
  since: Date,
  types: readonly string[],
  limit: number,
): Promise<EventRow[]> {
  await numberEvents(tx, tenantId)
  const { rows } = await tx.query<EventRow>({
    name: 'outbox.not_delivered',
    text: `select ${EVENT_COLUMNS} from events e
           where tenant_id = $1 and occurred_at >= $3 and dispatched_at is not null
             and type = any($4::text[])
             and not exists (select from webhook_deliveries d
               where d.tenant_id = e.tenant_id and d.webhook_id = $2 and d.event_id = e.id)
           order by sequence limit $5`,
    values: [tenantId, webhookId, since, types, limit],
  })
  return rows
}

/**
 * Removes up to `limit` events that were dispatched before `before` and that no event sink waits for. @returns their
 * number.
 */
export async function sweepEvents(tx: Transaction, before: Date, limit: number): Promise<number> {
  const { rowCount } = await tx.query({
    name: 'outbox.sweep',
    text: `delete from events where (tenant_id, sequence) in (
             select e.tenant_id, e.sequence from events e
             where e.dispatched_at < $1 and not exists (select from event_sink_cursors c
               where c.tenant_id = e.tenant_id and c.sequence < e.sequence)
             order by e.dispatched_at limit $2 for update of e skip locked)`,
    values: [before, limit],
  })
  return rowCount
}
