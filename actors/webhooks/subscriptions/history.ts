/** The delivery history: lists deliveries and events, replays deliveries and recovers missed events. */
import {
  attemptsOf,
  type DeliveryRow,
  findDelivery,
  insertDeliveries,
  listDeliveries,
  replayDelivery,
  replayFailedSince,
} from '../../../storage/webhooks/deliveries.js'
import {
  eventsAfter,
  eventsNotDelivered,
  lastEventSequence,
} from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { DELIVERIES_CHANNEL, wakeLanes } from '../../../storage/webhooks/delivery-lanes.js'
import { notifyAfterCommit } from '../../../storage/platform/transaction.js'
import { findWebhook } from '../../../storage/webhooks/webhooks.js'
import { envelopeOf } from '../../domain/webhooks/envelope.js'
import { selectedTypes } from '../../domain/webhooks/event-filters.js'
import { EVENT_TYPES } from '../../domain/events.js'
import { isUuid } from '../../domain/ids.js'
import { page } from '../../platform/paging.js'
import type { WebhooksHandler } from './needs.js'
import type { WebhookUnknown } from './protocol.js'
import type { Attempt, Delivery } from '../../domain/entities/webhooks.js'
import { inTenant } from '../../platform/in-tenant.js'

const DAY_MS = 86_400_000
/**
 * Maximum number of deliveries of each kind that one call starts again. The response says whether
 * there are more.
 */
const RECOVER_MAX = 1_000
const UNKNOWN: WebhookUnknown = { tag: 'unknown' }
const CATALOGUE: ReadonlySet<string> = new Set(EVENT_TYPES)

export const listWebhookDeliveries: WebhooksHandler<'listWebhookDeliveries'> = async (
  { database },
  { tenantId, webhookId, limit, after, status, eventType },
  context,
) => {
  if (!isUuid(webhookId)) return UNKNOWN
  return inTenant(database, tenantId, context, async (tx) => {
    if ((await findWebhook(tx, tenantId, webhookId)) === undefined) return UNKNOWN
    const filters = { status, eventType }
    const rows = await listDeliveries(tx, { tenantId, webhookId }, filters, limit + 1, after)
    const { items, next } = page(rows, limit)
    const attempts = await attemptsOf(
      tx,
      tenantId,
      items.map(({ id }) => id),
    )
    return {
      tag: 'listed',
      deliveries: items.map((row) => toDelivery(row, attempts.get(row.id))),
      next,
    }
  })
}

export const replayWebhookDelivery: WebhooksHandler<'replayWebhookDelivery'> = async (
  { database, attempts },
  { tenantId, webhookId, deliveryId },
  context,
) => {
  if (!isUuid(webhookId) || !isUuid(deliveryId)) return UNKNOWN
  return inTenant(database, tenantId, context, async (tx) => {
    const webhook = await findWebhook(tx, tenantId, webhookId)
    const before = await findDelivery(tx, tenantId, webhookId, deliveryId)
    if (webhook === undefined || before === undefined) return UNKNOWN
    const refused = replayFault(webhook.active, before)
    if (refused !== undefined) return { tag: 'refused', reason: refused }
    const row = await replayDelivery(tx, tenantId, webhookId, deliveryId, attempts)
    if (row === undefined) return { tag: 'refused', reason: 'waiting' }
    await wake(tx, tenantId, webhookId)
    const found = await attemptsOf(tx, tenantId, [deliveryId])
    return { tag: 'replayed', delivery: toDelivery(row, found.get(deliveryId)) }
  })
}

export const recoverWebhookDeliveries: WebhooksHandler<'recoverWebhookDeliveries'> = async (
  { database, clock, random, attempts, retentionDays },
  { tenantId, webhookId, since },
  context,
) => {
  if (!isUuid(webhookId)) return UNKNOWN
  const now = clock.now()
  if (since.getTime() < now.getTime() - retentionDays * DAY_MS) {
    return { tag: 'refused', reason: 'too_old' }
  }
  return inTenant(database, tenantId, context, async (tx) => {
    const webhook = await findWebhook(tx, tenantId, webhookId)
    if (webhook === undefined) return UNKNOWN
    if (!webhook.active) return { tag: 'refused', reason: 'inactive' }
    const max = RECOVER_MAX
    const replayed = await replayFailedSince(tx, { tenantId, webhookId }, since, attempts, max)
    const types = selectedTypes(webhook.eventTypes)
    const events = await eventsNotDelivered(tx, { tenantId, webhookId }, since, types, max)
    const missing = events.map((event) => ({
      id: random.uuid(),
      tenantId,
      webhookId,
      eventId: event.id,
      eventType: event.type,
      body: envelopeOf(event),
    }))
    const added = await insertDeliveries(tx, missing, { maxAttempts: attempts, now })
    if (replayed + added > 0) await wake(tx, tenantId, webhookId)
    const more = replayed === RECOVER_MAX || events.length === RECOVER_MAX
    return { tag: 'recovered', replayed, added, more }
  })
}

/** Lists a tenant's events by number and in order, for receivers that cannot be reached by HTTP. */
export const listEvents: WebhooksHandler<'listEvents'> = (
  { database },
  { tenantId, after, limit },
  context,
) => {
  return inTenant(database, tenantId, context, async (tx) => {
    if (after === null) {
      return { tag: 'listed', events: [], nextAfter: await lastEventSequence(tx, tenantId) }
    }
    const rows = await eventsAfter(tx, tenantId, after, limit)
    return {
      tag: 'listed',
      // Event types outside of the catalogue are internal, as for subscriptions.
      events: rows.filter(({ type }) => CATALOGUE.has(type)),
      nextAfter: rows.at(-1)?.sequence ?? after,
    }
  })
}

async function wake(tx: Transaction, tenantId: string, webhookId: string): Promise<void> {
  await wakeLanes(tx, [{ tenantId, webhookId }])
  notifyAfterCommit(tx, DELIVERIES_CHANNEL)
}

function replayFault(active: boolean, { status, eventType }: DeliveryRow) {
  if (eventType === 'webhook.test') return 'test'
  if (status === 'pending' || status === 'retrying') return 'waiting'
  return active ? undefined : 'inactive'
}

export function toDelivery(row: DeliveryRow, attempts: readonly Attempt[] = []): Delivery {
  return { ...row, attempts }
}
