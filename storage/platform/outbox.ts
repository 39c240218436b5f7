/**
 * The transactional outbox: events are rows that are written in the transaction of their change, without a number. The
 * sequencer numbers and chains them after the commit (event-numbers.ts).
 */
import { isoTime } from '../../runtime/kernel/text/iso-time.js'
import { numberEvents, RECORDED_CHANNEL } from './event-numbers.js'
import { type EventText, eventText, type NewEvent, type OutboxEvent } from './event-text.js'
import { allRows, changedRows, type Statement, type Transaction } from './sql.js'
import { notifyAfterCommit } from './transaction.js'

export { EVENTS_CHANNEL } from './event-numbers.js'
export type { NewEvent, OutboxEvent } from './event-text.js'

interface EventRow extends NewEvent {
  readonly sequence: number
}

/** Records events with the commit. They get their numbers and their places in the audit chain after it. */
export function appendEvents(tx: Transaction, events: readonly OutboxEvent[]): void {
  if (events.length === 0) return
  appendAtCommit(tx, appendStatement(events))
}

/** Runs a statement that ends with `INSERT_EVENTS` with the commit. */
export function appendAtCommit(tx: Transaction, statement: Statement): void {
  tx.atCommit(statement)
  notifyAfterCommit(tx, RECORDED_CHANNEL)
}

/** What a commit with `appendStatement` wakes: the sequencers. */
export const sequencerChannels = (): readonly string[] => [RECORDED_CHANNEL]

/** Records events in a transaction of known statements. */
export function appendStatement(events: readonly OutboxEvent[]): Statement {
  return { name: 'outbox.append', text: INSERT_EVENTS, values: eventValues(events) }
}

/** Records the events of `eventValues`, at the end of a statement that also writes other rows. */
export const INSERT_EVENTS = `insert into unnumbered_events (tenant_id, id, type, event_about, occurred_at, line)
  select e.tenant_id, e.id, e.type, e.about::jsonb, e.occurred_at, e.line
  from unnest($1::uuid[], $2::uuid[], $3::text[], string_to_array($4, chr(13)), $5::timestamptz[],
    string_to_array($6, chr(13))) as e (tenant_id, id, type, about, occurred_at, line)`

/** Events of a change that one row has: they fit in its page. */
const DECIDED_EVENTS_MAX = 8

/**
 * Records those events of `eachEventValues` whose change succeeded, within a statement that decides several changes.
 * @param won the query with the `place` of each change that succeeded, in the order of the events from 1.
 */
export function insertWonEvents(won: string): string {
  return `insert into unnumbered_events (tenant_id, id, type, event_about, occurred_at, line)
    select e.tenant_id, (array_agg(e.id order by e.place))[1], (array_agg(e.type order by e.place))[1],
      jsonb_agg(e.about::jsonb order by e.place), min(e.occurred_at), string_agg(e.line, chr(10) order by e.place)
    from unnest($1::uuid[], $2::uuid[], $3::text[], string_to_array($4, chr(13)), $5::timestamptz[],
      string_to_array($6, chr(13))) with ordinality
      as e (tenant_id, id, type, about, occurred_at, line, place)
    where e.place in (select place from ${won})
    group by e.tenant_id, (e.place - 1) / ${DECIDED_EVENTS_MAX}
    order by min(e.place)`
}

/** A row of `unnumbered_events`, and its length. */
type EventRowText = {
  readonly first: Pick<NewEvent, 'id' | 'tenantId' | 'type' | 'occurredAt'>
  abouts: string
  lines: string
  events: number
}

/** Characters of the events of a row, so that it fits in a page of 8 KiB. */
const ROW_CHARS_MAX = 7_000
/** Their rows are found by id, so each has a separate row. */
const ALONE: ReadonlySet<string> = new Set(['vault.credential.accessed', 'egress.stream.closed'])

/** The first six parameters of a statement with `INSERT_EVENTS`. Events of one tenant share rows. */
export function eventValues(events: readonly OutboxEvent[]): unknown[] {
  const rows: EventRowText[] = []
  const open = new Map<string, EventRowText>()
  for (const event of events) {
    const { about, line } = textOf(event)
    const row = open.get(event.tenantId)
    if (
      row !== undefined &&
      !ALONE.has(event.type) &&
      row.lines.length + row.abouts.length + line.length + about.length < ROW_CHARS_MAX
    ) {
      row.abouts += `,${about}`
      row.lines += `\n${line}`
      row.events += 1
      continue
    }
    const fresh = { first: event, abouts: about, lines: line, events: 1 }
    rows.push(fresh)
    if (!ALONE.has(event.type)) open.set(event.tenantId, fresh)
  }
  return parameters(
    rows.map(({ first }) => first),
    rows.map(({ abouts, events: count }) => (count === 1 ? abouts : `[${abouts}]`)),
    rows.map(({ lines }) => lines),
  )
}

/** The first six parameters of a statement with `insertWonEvents`. */
export function eachEventValues(events: readonly OutboxEvent[]): unknown[] {
  const written = events.map(textOf)
  return parameters(
    events,
    written.map(({ about }) => about),
    written.map(({ line }) => line),
  )
}

function textOf(event: OutboxEvent): EventText {
  return 'line' in event ? event : eventText(event)
}

function parameters(
  firsts: readonly Pick<NewEvent, 'id' | 'tenantId' | 'type' | 'occurredAt'>[],
  abouts: readonly string[],
  lines: readonly string[],
): unknown[] {
  return [
    list(firsts.map(({ tenantId }) => tenantId)),
    list(firsts.map(({ id }) => id)),
    list(firsts.map(({ type }) => type)),
    // One text, because serialised JSON has no control characters and quoting an array is slower.
    abouts.join('\r'),
    list(firsts.map(({ occurredAt }) => isoTime(occurredAt))),
    lines.join('\r'),
  ]
}

/** An array literal of ids, names or times, which need no quoting. */
function list(words: readonly string[]): string {
  return `{${words.join(',')}}`
}

/** After the number of every event. */
const NO_EVENT = '9223372036854775807'
const EVENT_COLUMNS = `tenant_id as "tenantId", sequence, id, type, data, occurred_at as "occurredAt"`
/** The same columns, from `audit_events a`. */
const LOG_COLUMNS = `a.tenant_id as "tenantId", a.event_number as sequence, a.id, a.type,
  svc_event_data(a.event_about, a.subject, a.resource, a.request_id, a.data) as data, a.occurred_at as "occurredAt"`

/** The events of the transaction's tenant after a sequence number, in order. */
export async function eventsAfter(
  tx: Transaction,
  tenantId: string,
  sequence: number,
  limit: number,
): Promise<EventRow[]> {
  await numberEvents(tx, tenantId)
  return numberedEventsAfter(tx, tenantId, sequence, limit)
}

/** The same, for a reader that need not see every acknowledged event. */
export const numberedEventsAfter = (
  tx: Transaction,
  tenantId: string,
  sequence: number,
  limit: number,
) =>
  allRows<EventRow>(tx, {
    name: 'outbox.after',
    // A part of each query ends by its own limit, because no index has the order of both tables.
    text: `(select ${EVENT_COLUMNS} from events
            where tenant_id = $1 and sequence > $2 and sequence < coalesce(
              (select log_from from event_sequences where tenant_id = $1), ${NO_EVENT})
            order by sequence limit $3)
           union all
           (select ${LOG_COLUMNS} from audit_events a
            where a.tenant_id = $1 and a.sequence > (select svc_log_position($1, $2))
              and a.event_about is not null
            order by a.sequence limit $3)
           order by sequence limit $3`,
    values: [tenantId, sequence, limit],
  })

/** Those ids of a tenant which are of recorded events of egress calls. */
export async function recordedCallEvents(
  tx: Transaction,
  tenantId: string,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const { rows } = await tx.query<{ id: string }>({
    name: 'outbox.call_events',
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
 * Takes up to `limit` waiting events of each of two tables, oldest first: they are dispatched. The caller writes their
 * deliveries in the same transaction, so that a crash undoes both. Workers do not wait for one another.
 */
export async function takeEvents(tx: Transaction, limit: number): Promise<EventRow[]> {
  const taken = await Promise.all([
    tx.query<EventRow>({
      name: 'outbox.take',
      text: `with due as (
               select tenant_id, sequence from waiting_events
               order by occurred_at, tenant_id, sequence limit $1
               for update skip locked
             ), gone as (
               delete from waiting_events w using due
               where w.tenant_id = due.tenant_id and w.sequence = due.sequence
               returning w.tenant_id, w.sequence
             )
             select ${LOG_COLUMNS} from gone
             cross join lateral (select * from audit_events a
               where a.tenant_id = gone.tenant_id and a.sequence = gone.sequence offset 0) a`,
      values: [limit],
    }),
    // Those that were numbered before every process read the audit log.
    tx.query<EventRow>({
      name: 'outbox.take_earlier',
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
    }),
  ])
  return taken
    .flatMap(({ rows }) => rows)
    .sort((a, b) => a.occurredAt.getTime() - b.occurredAt.getTime() || (a.id < b.id ? -1 : 1))
}

/** Dispatched events of a tenant, since a time, without a delivery to the subscription. */
export async function eventsNotDelivered(
  tx: Transaction,
  { tenantId, webhookId }: { tenantId: string; webhookId: string },
  since: Date,
  types: readonly string[],
  limit: number,
): Promise<EventRow[]> {
  await numberEvents(tx, tenantId)
  return allRows<EventRow>(tx, {
    name: 'outbox.not_delivered',
    text: `select ${EVENT_COLUMNS} from all_events e
           where tenant_id = $1 and occurred_at >= $3 and type = any($4::text[])
             and not exists (select from waiting_events w
               join audit_events a on a.tenant_id = w.tenant_id and a.sequence = w.sequence
               where w.tenant_id = e.tenant_id and a.id = e.id)
             and not exists (select from events o
               where o.tenant_id = e.tenant_id and o.sequence = e.sequence and o.dispatched_at is null)
             and not exists (select from webhook_deliveries d
               where d.tenant_id = e.tenant_id and d.webhook_id = $2 and d.event_id = e.id)
           order by sequence limit $5`,
    values: [tenantId, webhookId, since, types, limit],
  })
}

/**
 * Removes up to `limit` events that were dispatched before `before` and that no event sink waits for. @returns their
 * number.
 */
export const sweepEvents = (tx: Transaction, before: Date, limit: number) =>
  changedRows(tx, {
    name: 'outbox.sweep',
    text: `delete from events where (tenant_id, sequence) in (
             select e.tenant_id, e.sequence from events e
             where e.dispatched_at < $1 and not exists (select from event_sink_cursors c
               where c.tenant_id = e.tenant_id and c.sequence < e.sequence)
             order by e.dispatched_at limit $2 for update of e skip locked)`,
    values: [before, limit],
  })
