/** Creates deliveries from outbox events: one row for each event and matching subscription. */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  type DueDelivery,
  insertDeliveries,
  type NewDelivery,
} from '../../../storage/webhooks/deliveries.js'
import { takeEvents } from '../../../storage/platform/outbox.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import type { LaneKey } from '../../../storage/webhooks/delivery-lanes.js'
import { activeWebhooks } from '../../../storage/webhooks/webhooks.js'
import { byTenant } from '../../platform/by-tenant.js'
import { matchesEvent } from '../../domain/webhooks/event-filters.js'
import { EVENT_TYPES } from '../../domain/events.js'
import { envelopeOf } from '../../domain/webhooks/envelope.js'

export const FAN_OUT_BATCH = 500
const CATALOGUE: ReadonlySet<string> = new Set(EVENT_TYPES)

type FanOutNeeds<Taken> = {
  readonly database: Pick<Database, 'system'>
  readonly clock: Clock
  readonly random: Random
  /** Maximum number of attempts of a delivery. */
  readonly maxAttempts: number
  /** Wakes delivery lanes in the same transaction, and claims as many as there is room for. */
  readonly wake: (tx: Transaction, lanes: readonly LaneKey[]) => Promise<Taken>
}

type FannedOut<Taken> = {
  readonly events: number
  readonly lanes: readonly LaneKey[]
  /** Result of `wake`. Null when there were no events. */
  readonly taken: Taken | null
  /** The new deliveries by subscription. Empty if some of them existed before. */
  readonly created: ReadonlyMap<string, readonly DueDelivery[]>
}

/**
 * Dispatches a batch of events. Taking the events, inserting deliveries and waking lanes is one
 * transaction, so a crash leaves all of it or nothing. Crosses tenants, as the outbox does.
 */
export async function fanOut<Taken>(needs: FanOutNeeds<Taken>): Promise<FannedOut<Taken>> {
  const { database, clock, random, maxAttempts, wake } = needs
  return database.system(async (tx) => {
    const events = await takeEvents(tx, FAN_OUT_BATCH)
    if (events.length === 0) return { events: 0, lanes: [], taken: null, created: new Map() }
    const tenantIds = [...new Set(events.map(({ tenantId }) => tenantId))]
    const subscriptions = byTenant(await activeWebhooks(tx, tenantIds))
    const lanes = new Map<string, LaneKey>()
    const deliveries: NewDelivery[] = []
    for (const event of events) {
      // Event types outside of the catalogue are internal. They are not delivered, even to `*`.
      if (!CATALOGUE.has(event.type)) continue
      let body: string | undefined
      for (const { id: webhookId, eventTypes } of subscriptions.get(event.tenantId) ?? []) {
        if (!matchesEvent(eventTypes, event.type)) continue
        body ??= envelopeOf(event)
        const { tenantId, id: eventId, type: eventType } = event
        deliveries.push({ id: random.uuid(), tenantId, webhookId, eventId, eventType, body })
        lanes.set(webhookId, { tenantId, webhookId })
      }
    }
    const inserted = await insertDeliveries(tx, deliveries, { maxAttempts, now: clock.now() })
    const woken = [...lanes.values()]
    const taken = await wake(tx, woken)
    const created =
      inserted === deliveries.length ? bySubscription(deliveries, maxAttempts) : new Map()
    return { events: events.length, lanes: woken, taken, created }
  })
}

function bySubscription(
  deliveries: readonly NewDelivery[],
  maxAttempts: number,
): Map<string, DueDelivery[]> {
  const found = new Map<string, DueDelivery[]>()
  for (const { id, tenantId, webhookId, eventType, body } of deliveries) {
    const progress = { attemptCount: 0, maxAttempts, attemptsBefore: 0 }
    const due = { id, tenantId, webhookId, eventType, body, ...progress }
    const known = found.get(webhookId)
    if (known === undefined) found.set(webhookId, [due])
    else known.push(due)
  }
  return found
}
