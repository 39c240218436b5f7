/** The history of deliveries: read it, and send parts of it again. */
import type { Handlers } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  attemptsOf,
  type AttemptRow,
  type DeliveryRow,
  findDelivery,
  insertDeliveries,
  listDeliveries,
  replayDelivery,
  replayFailedSince,
} from '../../../storage/webhooks/deliveries.js'
import { eventsNotDelivered } from '../../../storage/platform/outbox.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { DELIVERIES_CHANNEL, wakeLanes } from '../../../storage/webhooks/webhook-lanes.js'
import { notifyAfterCommit } from '../../../storage/platform/transaction.js'
import { findWebhook } from '../../../storage/webhooks/webhooks.js'
import { envelopeOf } from '../delivery/envelope.js'
import { selectedTypes } from '../../domain/event-filters.js'
import { isUuid } from '../../domain/ids.js'
import { page } from '../../platform/paging.js'
import type { Delivery, WebhooksProtocol } from './protocol.js'

const DAY_MS = 86_400_000
/** What one call starts again of either kind; the answer says whether there is more. */
const RECOVER_MAX = 1_000
const UNKNOWN = { tag: 'unknown' } as const

export type HistoryNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly attempts: number
  readonly retentionDays: number
}

export function deliveryHistory({
  database,
  clock,
  random,
  attempts,
  retentionDays,
}: HistoryNeeds): Pick<Handlers<WebhooksProtocol>, 'replay' | 'recover'> & {
  list: Handlers<WebhooksProtocol>['deliveries']
} {
  async function wake(tx: Transaction, tenantId: string, webhookId: string): Promise<void> {
    await wakeLanes(tx, [{ tenantId, webhookId }])
    notifyAfterCommit(tx, DELIVERIES_CHANNEL)
  }

  return {
    async list({ tenantId, webhookId, limit, after, status, eventType }, { signal }) {
      if (!isUuid(webhookId)) return UNKNOWN
      return database.tenant(
        tenantId,
        async (tx) => {
          if ((await findWebhook(tx, tenantId, webhookId)) === undefined) return UNKNOWN
          const filters = { status, eventType }
          const rows = await listDeliveries(tx, tenantId, webhookId, filters, limit + 1, after)
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
        },
        { signal },
      )
    },

    async replay({ tenantId, webhookId, deliveryId }, { signal }) {
      if (!isUuid(webhookId) || !isUuid(deliveryId)) return UNKNOWN
      return database.tenant(
        tenantId,
        async (tx) => {
          const webhook = await findWebhook(tx, tenantId, webhookId)
          const before = await findDelivery(tx, tenantId, webhookId, deliveryId)
          if (webhook === undefined || before === undefined) return UNKNOWN
          const refused = replayFault(webhook.active, before)
          if (refused !== null) return { tag: 'refused', reason: refused }
          const row = await replayDelivery(tx, tenantId, webhookId, deliveryId, attempts)
          if (row === undefined) return { tag: 'refused', reason: 'waiting' }
          await wake(tx, tenantId, webhookId)
          const found = await attemptsOf(tx, tenantId, [deliveryId])
          return { tag: 'replayed', delivery: toDelivery(row, found.get(deliveryId)) }
        },
        { signal },
      )
    },

    async recover({ tenantId, webhookId, since }, { signal }) {
      if (!isUuid(webhookId)) return UNKNOWN
      const now = clock.now()
      if (since.getTime() < now.getTime() - retentionDays * DAY_MS) {
        return { tag: 'refused', reason: 'too_old' }
      }
      return database.tenant(
        tenantId,
        async (tx) => {
          const webhook = await findWebhook(tx, tenantId, webhookId)
          if (webhook === undefined) return UNKNOWN
          if (!webhook.active) return { tag: 'refused', reason: 'inactive' }
          const max = RECOVER_MAX
          const replayed = await replayFailedSince(tx, tenantId, webhookId, since, attempts, max)
          const types = selectedTypes(webhook.eventTypes)
          const events = await eventsNotDelivered(tx, tenantId, webhookId, since, types, max)
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
        },
        { signal },
      )
    },
  }
}

function replayFault(active: boolean, { status, eventType }: DeliveryRow) {
  if (eventType === 'webhook.test') return 'test'
  if (status === 'pending' || status === 'retrying') return 'waiting'
  return active ? null : 'inactive'
}

export function toDelivery(row: DeliveryRow, attempts: readonly AttemptRow[] = []): Delivery {
  return { ...row, attempts }
}
