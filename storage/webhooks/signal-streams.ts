/** Streams of security events, and the subjects that receivers took out of them (docs/guides/webhooks/shared-signals.md). */
import type { Email } from '../../actors/domain/email.js'
import type { StreamStatus } from '../../actors/domain/webhooks/signals.js'
import { keysIn, OWN_FIRST } from '../identity/email-keys.js'
import { notifyAfterCommit } from '../platform/transaction.js'
import { SIGNALS_CHANNEL } from './signal-pushes.js'
import { numberEvents } from '../platform/event-numbers.js'
import { columnsOf, listing } from '../platform/portable/tenant-rows.js'
import { lockUntilEnd } from '../platform/portable/locks.js'
import {
  allRows,
  execute,
  firstRow,
  firstValue,
  isChanged,
  onlyValue,
  type Transaction,
} from '../platform/sql.js'

export type SignalStreamRow = {
  readonly tenantId: string
  readonly id: string
  /** The client id of the receiver. */
  readonly receiver: string
  /** Null: the receiver polls. */
  readonly endpointUrl: string | null
  readonly eventsRequested: readonly string[] | null
  readonly description: string | null
  readonly status: StreamStatus
  readonly reason: string | null
}

const STREAM = columnsOf(
  'tenant_id id receiver endpoint_url events_requested description status reason',
)

/** The stream of a receiver. */
export type StreamKey = Pick<SignalStreamRow, 'tenantId' | 'id' | 'receiver'>
const OWN = 'tenant_id = $1 and receiver = $2 and id = $3'
const keyOf = ({ tenantId, receiver, id }: StreamKey) => [tenantId, receiver, id]

/** SQL: the record of the audit log that is the last one now. */
const LAST_RECORD =
  'coalesce((select q.audit_last from event_sequences q where q.tenant_id = $1), 0)'

/** Encryption context of the Authorization header of pushes. */
export function streamAuthorizationContext(streamId: string): string {
  return `signal_stream:${streamId}:authorization`
}

/** How a stream is delivered. Both are null for polls. */
export type StreamDelivery = {
  readonly endpointUrl: string | null
  readonly authorizationSealed: Uint8Array | null
}

type NewStream = Omit<SignalStreamRow, 'status' | 'reason' | 'endpointUrl'> & {
  readonly delivery: StreamDelivery
  readonly applicationId: string | null
  readonly now: Date
}

/** The streams of all receivers of a tenant. Each stream that is behind costs a turn of the worker. */
const TENANT_STREAMS_MAX = 100

/**
 * Inserts a stream unless its receiver has `most`, or its tenant as many as it may have. It has events from now on.
 * @returns undefined when the receiver has `most`.
 */
export async function insertSignalStream(
  tx: Transaction,
  stream: NewStream,
  most: number,
): Promise<SignalStreamRow | undefined> {
  const { tenantId } = stream
  await lockUntilEnd(tx, { kind: 'signal_streams', tenantId })
  await numberEvents(tx, tenantId)
  return firstRow<SignalStreamRow>(tx, {
    name: 'signal_stream.insert',
    text: `insert into signal_streams (tenant_id, receiver, id, application_id, events_requested, description,
             status_since, read_to, created_at, updated_at, endpoint_url, authorization_sealed)
           select $1, $2, $3, $4, $5, $6, $7, ${LAST_RECORD}, $7, $7, $9, $10
           where (select count(*) from signal_streams where tenant_id = $1 and receiver = $2) < $8
             and (select count(*) from signal_streams where tenant_id = $1) < ${TENANT_STREAMS_MAX}
           returning ${STREAM}`,
    values: [
      ...keyOf(stream),
      stream.applicationId,
      stream.eventsRequested,
      stream.description,
      stream.now,
      most,
      stream.delivery.endpointUrl,
      stream.delivery.authorizationSealed,
    ],
  })
}

export const findSignalStream = (tx: Transaction, key: StreamKey) =>
  firstRow<SignalStreamRow>(tx, {
    name: 'signal_stream.find',
    text: `select ${STREAM} from signal_streams where ${OWN}`,
    values: keyOf(key),
  })

/** The streams of a receiver, which are few, oldest first. */
export const listStreamsOfReceiver = (tx: Transaction, tenantId: string, receiver: string) =>
  allRows<SignalStreamRow>(tx, {
    name: 'signal_stream.list',
    text: `select ${STREAM} from signal_streams where tenant_id = $1 and receiver = $2 order by created_at, id`,
    values: [tenantId, receiver],
  })

/** A stream as the administrators of its tenant see it. */
export type TenantStream = SignalStreamRow & {
  /** Null: the receiver is an agent. */
  readonly applicationId: string | null
  readonly createdAt: Date
}

/** The streams of all receivers, newest first. */
export const listTenantStreams = listing<TenantStream>(
  'signal_stream.list_of_tenant',
  `select ${STREAM}, ${columnsOf('application_id created_at')} from signal_streams where tenant_id = $1`,
)

type StreamChange = StreamKey &
  Pick<SignalStreamRow, 'eventsRequested' | 'description'> & {
    /** Null: as it is. */
    readonly delivery: StreamDelivery | null
    readonly now: Date
  }

export async function updateSignalStreamRow(
  tx: Transaction,
  change: StreamChange,
): Promise<SignalStreamRow | undefined> {
  if (change.delivery !== null) {
    const { endpointUrl, authorizationSealed } = change.delivery
    await execute(tx, {
      name: 'signal_stream.deliver',
      text: `update signal_streams set endpoint_url = $4, authorization_sealed = $5, attempts = 0,
               due_at = case when $4::text is not null then statement_timestamp() end
             where ${OWN}`,
      values: [...keyOf(change), endpointUrl, authorizationSealed],
    })
    notifyAfterCommit(tx, SIGNALS_CHANNEL)
  }
  return firstRow<SignalStreamRow>(tx, {
    name: 'signal_stream.update',
    text: `update signal_streams set events_requested = $4, description = $5, updated_at = $6
           where ${OWN} returning ${STREAM}`,
    values: [...keyOf(change), change.eventsRequested, change.description, change.now],
  })
}

export const deleteSignalStreamRow = (tx: Transaction, key: StreamKey) =>
  isChanged(tx, {
    name: 'signal_stream.delete',
    text: `delete from signal_streams where ${OWN}`,
    values: keyOf(key),
  })

type StatusChange = StreamKey & Pick<SignalStreamRow, 'status' | 'reason'> & { readonly now: Date }

/** A stream that was disabled has events from now on. A disabled stream keeps none. */
export async function setSignalStreamStatus(
  tx: Transaction,
  change: StatusChange,
): Promise<SignalStreamRow | undefined> {
  await numberEvents(tx, change.tenantId)
  notifyAfterCommit(tx, SIGNALS_CHANNEL)
  return firstRow<SignalStreamRow>(tx, {
    name: 'signal_stream.set_status',
    text: `with changed as (
             update signal_streams set reason = $5, updated_at = $6, status = $4,
               status_since = case when status = $4 then status_since else $6 end,
               read_to = case when status = 'disabled' then ${LAST_RECORD} else read_to end
             where ${OWN} returning *),
           dropped as (
             delete from signal_events e using changed c
             where c.status = 'disabled' and e.tenant_id = c.tenant_id and e.stream_id = c.id)
           select ${STREAM} from changed`,
    values: [...keyOf(change), change.status, change.reason, change.now],
  })
}

/** True at most once in `intervalSecs`. */
export const takeVerification = (
  tx: Transaction,
  key: StreamKey,
  now: Date,
  intervalSecs: number,
) =>
  isChanged(tx, {
    name: 'signal_stream.take_verification',
    text: `update signal_streams set verified_at = $4
           where ${OWN} and (verified_at is null or verified_at <= $4::timestamptz - make_interval(secs => $5))`,
    values: [...keyOf(key), now, intervalSecs],
  })

/** A subject as an event has it. An empty text: any. */
export type SubjectKey = { readonly principal: string; readonly session: string }

/** Takes a subject out of a stream, which has at most `most` of them. False beyond: nothing changes. */
export async function removeSubjectRow(
  tx: Transaction,
  { tenantId, id }: Pick<StreamKey, 'tenantId' | 'id'>,
  { principal, session }: SubjectKey,
  now: Date,
  most: number,
): Promise<boolean> {
  await execute(tx, {
    name: 'signal_subject.remove',
    text: `insert into signal_removed_subjects (tenant_id, stream_id, principal, session, created_at)
           select $1, $2, $3, $4, $5
           where (select count(*) from signal_removed_subjects where tenant_id = $1 and stream_id = $2) < $6
           on conflict do nothing`,
    values: [tenantId, id, principal, session, now, most],
  })
  return onlyValue<boolean>(tx, {
    name: 'signal_subject.is_removed',
    text: `select exists (select 1 from signal_removed_subjects
             where tenant_id = $1 and stream_id = $2 and principal = $3 and session = $4) as removed`,
    values: [tenantId, id, principal, session],
  })
}

/** Puts a subject back into a stream. */
export const addSubjectRow = (
  tx: Transaction,
  { tenantId, id }: Pick<StreamKey, 'tenantId' | 'id'>,
  { principal, session }: SubjectKey,
) =>
  execute(tx, {
    name: 'signal_subject.add',
    text: `delete from signal_removed_subjects
           where tenant_id = $1 and stream_id = $2 and principal = $3 and session = $4`,
    values: [tenantId, id, principal, session],
  })

/** The `sub` of the user with an address. Crosses tenants, because accounts have none. */
export const subjectOfEmail = (tx: Transaction, tenantId: string, email: Email) =>
  firstValue<string>(tx, {
    name: 'signal_subject.of_email',
    text: `select u.sub from accounts a join tenant_users u on u.tenant_id = $1 and u.account_id = a.id
           where a.email_key in ${keysIn('$2', '$1')} ${OWN_FIRST}`,
    values: [tenantId, email],
  })

/** The `sub` of users by their id. */
export async function subjectsOfUsers(
  tx: Transaction,
  tenantId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (ids.length === 0) return new Map()
  const rows = await allRows<{ id: string; sub: string }>(tx, {
    name: 'signal_subject.of_users',
    text: 'select id, sub from tenant_users where tenant_id = $1 and id = any($2::uuid[])',
    values: [tenantId, ids],
  })
  return new Map(rows.map(({ id, sub }) => [id, sub]))
}
