/** Webhook deliveries and their attempts. Each event and subscription has exactly one delivery. */
import type { Attempt, Delivery, DeliveryStatus } from '../../actors/domain/entities/webhooks.js'
import {
  allRows,
  changedRows,
  execute,
  firstRow,
  LOOKED_UP,
  onlyValue,
  type Statement,
  type Transaction,
} from '../platform/sql.js'
import { ADDED_TO_HOUR } from '../operations/activity.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'

export type DeliveryRow = Omit<Delivery, 'attempts'> & { readonly tenantId: string }

export type NewDelivery = {
  readonly id: string
  readonly tenantId: string
  readonly webhookId: string
  readonly eventId: string
  readonly eventType: string
  readonly body: string
}

const COLUMNS =
  columnsOf(`id tenant_id webhook_id event_id event_type status attempt_count max_attempts
  response_status error duration_ms next_attempt_at last_attempt_at delivered_at created_at`)

/**
 * Inserts deliveries that are due immediately. An existing delivery of an event and subscription stays
 * unchanged. Wake the lanes in the same transaction.
 * @returns the number of new deliveries.
 */
export async function insertDeliveries(
  tx: Transaction,
  deliveries: readonly NewDelivery[],
  { maxAttempts, now }: { maxAttempts: number; now: Date },
): Promise<number> {
  if (deliveries.length === 0) return 0
  const events = byEvent(deliveries)
  return changedRows(tx, {
    name: 'delivery.insert_by_event',
    text: `insert into webhook_deliveries (tenant_id, id, webhook_id, event_id, event_type, body,
             max_attempts, next_attempt_at, created_at)
           select e.tenant_id, d.id, d.webhook_id, e.event_id, e.event_type, e.body, $7,
             statement_timestamp(), $8
           from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[])
             as e (tenant_id, event_id, event_type, body, ids, webhook_ids)
           cross join lateral unnest(e.ids::uuid[], e.webhook_ids::uuid[]) as d (id, webhook_id)
           on conflict (tenant_id, webhook_id, event_id) do nothing`,
    values: [
      events.map(([{ tenantId }]) => tenantId),
      events.map(([{ eventId }]) => eventId),
      events.map(([{ eventType }]) => eventType),
      events.map(([{ body }]) => body),
      events.map((all) => `{${all.map(({ id }) => id).join(',')}}`),
      events.map((all) => `{${all.map(({ webhookId }) => webhookId).join(',')}}`),
      maxAttempts,
      now,
    ],
  })
}

/** Deliveries in a row of one event, whose type and body are sent to PostgreSQL once. */
function byEvent(deliveries: readonly NewDelivery[]): [NewDelivery, ...NewDelivery[]][] {
  const events: [NewDelivery, ...NewDelivery[]][] = []
  for (const delivery of deliveries) {
    const last = events.at(-1)
    const first = last?.[0]
    const isSame =
      first?.eventId === delivery.eventId &&
      first.tenantId === delivery.tenantId &&
      first.body === delivery.body
    if (last !== undefined && isSame) last.push(delivery)
    else events.push([delivery])
  }
  return events
}

/** Inserts a delivery that its creator sends itself, once. No worker sees it. */
export const insertTestDelivery = (tx: Transaction, delivery: NewDelivery, now: Date) =>
  execute(tx, {
    name: 'delivery.insert_test',
    text: `insert into webhook_deliveries (tenant_id, id, webhook_id, event_id, event_type, body,
             max_attempts, created_at)
           values ($1, $2, $3, $4, $5, $6, 1, $7)`,
    values: [
      delivery.tenantId,
      delivery.id,
      delivery.webhookId,
      delivery.eventId,
      delivery.eventType,
      delivery.body,
      now,
    ],
  })

export type DueDelivery = Pick<
  DeliveryRow,
  'id' | 'tenantId' | 'webhookId' | 'eventType' | 'attemptCount' | 'maxAttempts'
> & { body: string; attemptsBefore: number }

/** The due deliveries of these lanes, the longest due first. */
export const dueDeliveries = (tx: Transaction, webhookIds: readonly string[], limitEach: number) =>
  allRows<DueDelivery>(tx, {
    name: 'delivery.due',
    text: `select ${DUE_COLUMNS} from unnest($1::uuid[]) as lane (id)
           cross join lateral (
             select * from webhook_deliveries w
             where w.webhook_id = lane.id and w.next_attempt_at <= statement_timestamp()
             order by w.next_attempt_at limit $2) d`,
    values: [webhookIds, limitEach],
  })

const DUE_COLUMNS = columnsOf(
  'id tenant_id webhook_id event_type attempt_count max_attempts attempts_before body',
  'd',
)

/** Deliveries of one lane that a read returns at most: of a lane with a backlog, and of any other. */
export const DUE_MANY = 128
export const DUE_FEW = 32

/**
 * Reads the due deliveries of one lane, the longest due first, with those in progress.
 * @param isMany `DUE_MANY` at most, otherwise `DUE_FEW`. The limit is part of the text, because PostgreSQL plans a
 *   statement with an unknown limit again each time, which takes half as long as the read.
 */
export function selectingDueOf(webhookId: string, isMany: boolean): Statement {
  const limit = isMany ? DUE_MANY : DUE_FEW
  return {
    name: `delivery.due_${limit}`,
    text: `select ${DUE_COLUMNS} from webhook_deliveries d
           where d.webhook_id = $1 and d.next_attempt_at <= statement_timestamp()
           order by d.next_attempt_at limit ${limit}`,
    values: [webhookId],
  }
}

export type AttemptRecord = Attempt & {
  readonly tenantId: string
  readonly deliveryId: string
  readonly status: 'succeeded' | 'retrying' | 'failed'
  /** Seconds until the next attempt. Null without a further attempt. */
  readonly waitSecs: number | null
}

/**
 * Stores the outcomes of attempts. A delivery that was cancelled during an attempt stays cancelled.
 * A delivery that succeeded stays succeeded, whatever a concurrent attempt reports.
 */
export const recordAttempts = (tx: Transaction, attempts: readonly AttemptRecord[]) =>
  execute(tx, recordingAttempts(attempts))

/** The statement of `recordAttempts`. */
export function recordingAttempts(attempts: readonly AttemptRecord[]): Statement {
  return {
    name: 'delivery.record',
    text: `with given as (
             select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::integer[], $5::text[],
               $6::integer[], $7::timestamptz[], $8::float8[]) with ordinality
               as g (tenant_id, id, status, response_status, error, duration_ms, attempted_at, wait,
                 place)
             where ${LOOKED_UP}
           ), changed as (
             update webhook_deliveries d set
               attempt_count = d.attempt_count + 1,
               status = case
                 when g.status = 'succeeded' or d.status = 'succeeded' then 'succeeded'
                 when g.status = 'retrying' and d.next_attempt_at is null then d.status
                 else g.status end,
               response_status = g.response_status,
               error = case when d.status = 'failed' and g.status <> 'succeeded' then d.error
                 else g.error end,
               duration_ms = g.duration_ms,
               last_attempt_at = g.attempted_at,
               delivered_at = case when g.status = 'succeeded'
                 then g.attempted_at + make_interval(secs => g.duration_ms / 1000.0)
                 else d.delivered_at end,
               next_attempt_at = case when d.next_attempt_at is not null
                 then statement_timestamp() + make_interval(secs => g.wait) end
             from given g where d.tenant_id = g.tenant_id and d.id = g.id
             returning d.tenant_id, d.id, d.attempt_count, g.attempted_at, g.response_status,
               g.duration_ms, g.error, g.status), counted as (
             insert into activity_hours as a (tenant_id, kind, hour, total, failed)
             select tenant_id, 'deliveries', date_trunc('hour', attempted_at, 'UTC'), count(*),
               count(*) filter (where status <> 'succeeded')
             from changed group by 1, 3 order by 1, 3
             ${ADDED_TO_HOUR})
           insert into webhook_attempts (tenant_id, delivery_id, number, attempted_at,
             response_status, duration_ms, error)
           select tenant_id, id, attempt_count, attempted_at, response_status, duration_ms, error
           from changed`,
    values: [
      attempts.map(({ tenantId }) => tenantId),
      attempts.map(({ deliveryId }) => deliveryId),
      attempts.map(({ status }) => status),
      attempts.map(({ responseStatus }) => responseStatus),
      attempts.map(({ error }) => error),
      attempts.map(({ durationMs }) => durationMs),
      attempts.map(({ attemptedAt }) => attemptedAt),
      attempts.map(({ waitSecs }) => waitSecs),
    ],
  }
}

/** Cancels all pending deliveries of a subscription that is inactive or gone. @returns how many. */
export const cancelDeliveries = (tx: Transaction, tenantId: string, webhookId: string) =>
  changedRows(tx, {
    name: 'delivery.cancel',
    text: `update webhook_deliveries set status = 'failed', error = $3, next_attempt_at = null
           where tenant_id = $1 and webhook_id = $2 and next_attempt_at is not null`,
    values: [tenantId, webhookId, 'subscription_inactive'],
  })

export const findDelivery = (tx: Transaction, tenantId: string, webhookId: string, id: string) =>
  firstRow<DeliveryRow>(tx, {
    name: 'delivery.find',
    text: `select ${COLUMNS} from webhook_deliveries
           where tenant_id = $1 and webhook_id = $2 and id = $3`,
    values: [tenantId, webhookId, id],
  })

/** The request body of a delivery. */
export const deliveryBody = (tx: Transaction, tenantId: string, id: string) =>
  onlyValue<string>(tx, {
    name: 'delivery.body',
    text: 'select body from webhook_deliveries where tenant_id = $1 and id = $2',
    values: [tenantId, id],
  })

type OfWebhook = { readonly tenantId: string; readonly webhookId: string }

type DeliveryFilters = {
  readonly status: DeliveryStatus | null
  readonly eventType: string | null
}

/** One page of the history, newest first, after the row that `createdAt` and `id` name. */
export const listDeliveries = (
  tx: Transaction,
  { tenantId, webhookId }: OfWebhook,
  { status, eventType }: DeliveryFilters,
  limit: number,
  after: { createdAt: Date; id: string } | null,
) =>
  allRows<DeliveryRow>(tx, {
    name: 'delivery.list',
    text: `select ${COLUMNS} from webhook_deliveries
           where tenant_id = $1 and webhook_id = $2
             and ($4::text is null or status = $4) and ($5::text is null or event_type = $5)
             and ($6::timestamptz is null or (created_at, id) < ($6, $7::uuid))
           order by created_at desc, id desc limit $3`,
    values: [
      tenantId,
      webhookId,
      limit,
      status,
      eventType,
      after?.createdAt ?? null,
      after?.id ?? null,
    ],
  })

/** The attempts of these deliveries, oldest first. */
export async function attemptsOf(
  tx: Transaction,
  tenantId: string,
  deliveryIds: readonly string[],
): Promise<Map<string, Attempt[]>> {
  const { rows } = await tx.query<Attempt & { deliveryId: string }>({
    name: 'delivery.attempts',
    text: `select ${columnsOf('delivery_id attempted_at response_status duration_ms error')}
           from webhook_attempts where tenant_id = $1 and delivery_id = any($2::uuid[])
           order by delivery_id, number`,
    values: [tenantId, deliveryIds],
  })
  const found = new Map<string, Attempt[]>()
  for (const { deliveryId, ...attempt } of rows) {
    const attempts = found.get(deliveryId)
    if (attempts === undefined) found.set(deliveryId, [attempt])
    else attempts.push(attempt)
  }
  return found
}

/** Restarts the retry schedule of a finished delivery. Wake its lane afterwards. */
export const replayDelivery = (
  tx: Transaction,
  tenantId: string,
  webhookId: string,
  id: string,
  attempts: number,
) =>
  firstRow<DeliveryRow>(tx, {
    name: 'delivery.replay',
    text: `update webhook_deliveries set status = 'pending', error = null, delivered_at = null,
             attempts_before = attempt_count, max_attempts = attempt_count + $4,
             next_attempt_at = statement_timestamp()
           where tenant_id = $1 and webhook_id = $2 and id = $3
             and status in ('succeeded', 'failed') and event_type <> 'webhook.test'
           returning ${COLUMNS}`,
    values: [tenantId, webhookId, id, attempts],
  })

/** Replays deliveries that failed since a time, up to `limit`. Wake the lane. @returns how many. */
export const replayFailedSince = (
  tx: Transaction,
  { tenantId, webhookId }: OfWebhook,
  since: Date,
  attempts: number,
  limit: number,
) =>
  changedRows(tx, {
    name: 'delivery.replay_since',
    text: `update webhook_deliveries set status = 'pending', error = null,
             attempts_before = attempt_count, max_attempts = attempt_count + $4,
             next_attempt_at = statement_timestamp()
           where tenant_id = $1 and id in (
             select id from webhook_deliveries
             where tenant_id = $1 and webhook_id = $2 and status = 'failed' and created_at >= $3
               and event_type <> 'webhook.test'
             order by created_at, id limit $5 for update)`,
    values: [tenantId, webhookId, since, attempts, limit],
  })

/** Deletes deliveries created before `before` with their attempts. Needs a crossing transaction. */
export const sweepDeliveries = (tx: Transaction, before: Date, limit: number) =>
  changedRows(tx, {
    name: 'delivery.sweep',
    text: `delete from webhook_deliveries where (tenant_id, id) in (
             select tenant_id, id from webhook_deliveries
             where created_at < $1 limit $2 for update skip locked)`,
    values: [before, limit],
  })
