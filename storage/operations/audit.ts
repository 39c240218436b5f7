/** Audit events: written in the transaction of the audited change, listed, and read in order. */
import type { DelegationIntent } from '../../actors/domain/agents/delegation-intent.js'
import {
  type AuditOutcome,
  type AuditParty,
  type AuditRecord,
  type AuditResource,
  canonicalJson,
  type ChainHead,
} from './audit-chain.js'
import { isoTime } from '../../runtime/kernel/text/iso-time.js'
import { quoted } from '../../runtime/kernel/text/json-text.js'
import { numberEvents, RECORDED_CHANNEL } from '../platform/event-numbers.js'
import { firstRow, type Transaction } from '../platform/sql.js'
import { notifyAfterCommit } from '../platform/transaction.js'

/** An event without the members that the chain adds. */
export type NewAuditEvent = {
  /** UUIDv7, from `Random.uuid()`. */
  readonly id: string
  readonly tenantId: string
  readonly type: string
  readonly occurredAt: Date
  readonly subject: AuditParty | null
  /** Outermost first. */
  readonly actors: readonly AuditParty[]
  readonly clientId: string | null
  readonly delegationId: string | null
  readonly grantId: string | null
  readonly resource: AuditResource | null
  readonly outcome: AuditOutcome
  readonly requestId: string | null
  readonly ip: string | null
  /** Plain JSON. Never a secret. */
  readonly data: Readonly<Record<string, unknown>>
  /** Becomes a member of the data. */
  readonly delegation?: DelegationIntent | null | undefined
}

/**
 * Records audit events with the commit, as `appendEvents` does. Receivers do not get them. A line that is no JSON for the
 * database fails the transaction here, and not the numbering later.
 */
export function appendAudit(tx: Transaction, events: readonly NewAuditEvent[]): void {
  if (events.length === 0) return
  tx.atCommit({
    name: 'audit.append',
    text: `insert into unnumbered_events (tenant_id, id, type, occurred_at, line)
           select e.* from unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[],
             string_to_array($5, chr(10))) as e (tenant_id, id, type, occurred_at, line)
           where e.line::jsonb is not null`,
    values: [
      events.map(({ tenantId }) => tenantId),
      events.map(({ id }) => id),
      events.map(({ type }) => type),
      events.map(({ occurredAt }) => occurredAt),
      events.map(auditLine).join('\n'),
    ],
  })
  notifyAfterCommit(tx, RECORDED_CHANNEL)
}

/** The hashed text of an event, as `canonicalEvent` writes it. */
export function auditLine(event: NewAuditEvent): string {
  return lineOf(event, auditData(event.data, event.delegation), isoTime(event.occurredAt))
}

/** The data of an event as canonical JSON, with the delegation under which it happened. */
export function auditData(
  data: NewAuditEvent['data'],
  delegation: NewAuditEvent['delegation'],
): string {
  return canonicalJson(delegation == null ? data : { ...data, delegation })
}

/**
 * The same for an event whose data and time are serialized already. Concatenates by hand, because
 * it runs for every token and every call. Canonical JSON contains no line feeds, so lines are
 * passed to SQL as one text, which is cheaper than an array.
 */
export function lineOf(
  event: Omit<NewAuditEvent, 'data' | 'delegation' | 'occurredAt'>,
  data: string,
  occurredAt: string,
): string {
  const { actors, subject, resource } = event
  return (
    `{"actors":${actors.length === 0 ? '[]' : canonicalJson(actors)}` +
    `,"client_id":${quoted(event.clientId)},"data":${data}` +
    `,"delegation_id":${quoted(event.delegationId)},"grant_id":${quoted(event.grantId)}` +
    `,"id":${quoted(event.id)},"ip":${quoted(event.ip)}` +
    `,"occurred_at":${quoted(occurredAt)},"outcome":${quoted(event.outcome)}` +
    `,"request_id":${quoted(event.requestId)}` +
    `,"resource":${resource === null ? 'null' : canonicalJson(resource)}` +
    `,"subject":${subject === null ? 'null' : canonicalJson(subject)}` +
    `,"tenant_id":${quoted(event.tenantId)},"type":${quoted(event.type)}}`
  )
}

type AuditRow = Omit<AuditRecord, 'occurred_at'> & { occurred_at: Date }

const COLUMNS = `id, sequence, tenant_id, type, occurred_at, subject, actors, client_id,
  delegation_id, grant_id, resource, outcome, request_id, ip, data,
  encode(previous_hash, 'hex') as previous_hash, encode(hash, 'hex') as hash`

function recordOf(row: AuditRow): AuditRecord {
  return { ...row, occurred_at: row.occurred_at.toISOString() }
}

/** The object or the request of an event. Null: any. */
export type AuditAbout = {
  readonly resourceType: string | null
  readonly resourceId: string | null
  readonly requestId: string | null
}

const ANY: AuditAbout = { resourceType: null, resourceId: null, requestId: null }

/**
 * SQL: whether an event is about this, with parameters from a number on, and their values. Filters that are not given are not
 * in the text, because a plan that has to serve them all uses no index.
 */
function aboutFilter({ resourceType, resourceId, requestId }: AuditAbout, first: number) {
  const given = [
    ["resource ->> 'type'", resourceType],
    ["resource ->> 'id'", resourceId],
    ['request_id', requestId],
  ].filter(([, value]) => value !== null)
  return {
    text: given.map(([column], index) => `and ${column} = $${first + index}`).join(' '),
    values: given.map(([, value]) => value),
  }
}

type AuditFilter = AuditAbout & {
  readonly type: string | null
  /** The `sub` of the subject or of an actor. */
  readonly actor: string | null
  readonly since: Date | null
  /** Exclusive. */
  readonly until: Date | null
}

/** A page of a tenant's events, newest first. Events of the same millisecond are in chain order. */
export async function listAuditEventRows(
  tx: Transaction,
  tenantId: string,
  { type, actor, since, until, ...about }: AuditFilter,
  limit: number,
  after: { readonly createdAt: Date; readonly id: string } | null,
): Promise<AuditRecord[]> {
  await numberEvents(tx, tenantId)
  const filter = aboutFilter(about, 9)
  const { rows } = await tx.query<AuditRow>({
    name: 'audit.list',
    text: `select ${COLUMNS} from audit_events
           where tenant_id = $1
             and ($2::text is null or type = $2)
             and ($3::text is null or subject ->> 'sub' = $3
               or actors @> jsonb_build_array(jsonb_build_object('sub', $3)))
             and ($4::timestamptz is null or occurred_at >= $4)
             and ($5::timestamptz is null or occurred_at < $5)
             ${filter.text}
             and ($7::timestamptz is null or (occurred_at, sequence) < ($7, coalesce(
               (select seen.sequence from audit_events seen
                where seen.tenant_id = $1 and seen.occurred_at = $7 and seen.id = $8::uuid), 0)))
           order by occurred_at desc, sequence desc limit $6`,
    values: [
      tenantId,
      type,
      actor,
      since,
      until,
      limit,
      after?.createdAt ?? null,
      after?.id ?? null,
      ...filter.values,
    ],
  })
  return rows.map(recordOf)
}

/** A tenant's events after a sequence, in order. */
export async function auditEventsAfter(
  tx: Transaction,
  tenantId: string,
  sequence: number,
  limit: number,
  about: AuditAbout = ANY,
): Promise<AuditRecord[]> {
  await numberEvents(tx, tenantId)
  const filter = aboutFilter(about, 4)
  const { rows } = await tx.query<AuditRow>({
    name: 'audit.after',
    text: `select ${COLUMNS} from audit_events
           where tenant_id = $1 and sequence > $2 ${filter.text} order by sequence limit $3`,
    values: [tenantId, sequence, limit, ...filter.values],
  })
  return rows.map(recordOf)
}

/** The end of a tenant's chain. Undefined before its first event. */
export async function auditHead(tx: Transaction, tenantId: string): Promise<ChainHead | undefined> {
  await numberEvents(tx, tenantId)
  return firstRow<ChainHead>(tx, {
    name: 'audit.head',
    text: `select audit_last as sequence, encode(audit_hash, 'hex') as hash
           from event_sequences where tenant_id = $1 and audit_last > 0`,
    values: [tenantId],
  })
}
