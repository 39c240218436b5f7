/** Webhook subscriptions of a tenant. The async plane sends their deliveries. */
import { defineActor, type Handlers } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { ShareCounts } from '../../../runtime/kernel/fairness/fair-share.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { cancelDeliveries } from '../../../storage/webhooks/deliveries.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import type { Database } from '../../../storage/platform/sql.js'
import {
  deleteWebhook,
  findWebhook,
  insertWebhook,
  listWebhooks,
  replaceWebhook,
  secretHint,
  webhookSecretContext,
} from '../../../storage/webhooks/webhooks.js'
import { INACTIVE } from '../delivery/delivery-lane.js'
import type { Sender } from '../delivery/sender.js'
import { type EventType, EVENT_TYPES } from '../../domain/events.js'
import { isUuid } from '../../domain/ids.js'
import { page } from '../../platform/paging.js'
import type { TargetRules } from '../../platform/outbound-http/targets.js'
import { deliveryHistory } from './history.js'
import { type WebhooksProtocol, webhooks } from './protocol.js'
import { auditSubscription } from './audit.js'
import { draftFault, newWebhookSecret, secretFault } from './rules.js'
import { secretRotation } from './rotation.js'
import type { TenantGroups } from '../../platform/tenant-groups.js'
import { CONCURRENT_MAX, testDeliveries } from './test-delivery.js'
import { eventsAfter, lastEventSequence } from '../../../storage/platform/outbox.js'

const UNKNOWN = { tag: 'unknown' } as const

export type WebhooksNeeds = {
  readonly database: Database
  readonly sealer: Sealer
  readonly sender: Sender
  readonly clock: Clock
  readonly random: Random
  readonly shares: ShareCounts
  readonly groups: TenantGroups
  readonly urlRules: TargetRules
  /** Event types that this deployment can emit. */
  readonly offered: readonly EventType[]
  /** `webhooks.max_subscriptions_per_tenant`. */
  readonly subscriptionsMax: number
  /** Number of attempts of a replayed delivery. */
  readonly attempts: number
  /** `webhooks.delivery_retention_days`. */
  readonly retentionDays: number
}

export const webhooksActor = defineActor<WebhooksProtocol, WebhooksNeeds>({
  address: webhooks,
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 2 * CONCURRENT_MAX },
  lane: {
    replace: ({ webhookId }) => webhookId,
    remove: ({ webhookId }) => webhookId,
    rotateSecret: ({ webhookId }) => webhookId,
    replay: ({ webhookId }) => webhookId,
    recover: ({ webhookId }) => webhookId,
  },
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { database, sealer, clock, random, urlRules, offered, subscriptionsMax } = needs
    const history = deliveryHistory(needs)
    const tests = testDeliveries(needs)

    const seal = (tenantId: string, webhookId: string, secret: string) =>
      sealer.seal(tenantId, webhookSecretContext(webhookId), Buffer.from(secret, 'utf8'))

    return {
      events: eventFeed(database),

      async list({ tenantId, limit, after }, { signal }) {
        const rows = await database.tenant(
          tenantId,
          (tx) => listWebhooks(tx, tenantId, limit + 1, after),
          { signal },
        )
        const { items, next } = page(rows, limit)
        return { tag: 'listed', webhooks: items, next }
      },

      async read({ tenantId, webhookId }, { signal }) {
        if (!isUuid(webhookId)) return UNKNOWN
        const webhook = await database.tenant(
          tenantId,
          (tx) => findWebhook(tx, tenantId, webhookId),
          { signal },
        )
        return webhook === undefined ? UNKNOWN : { tag: 'found', webhook }
      },

      async create({ caller, draft, secret: supplied, idempotency }, { signal, requestId }) {
        const { tenantId } = caller.principal
        const fault =
          draftFault(draft, urlRules, offered) ?? (supplied === null ? null : secretFault(supplied))
        if (fault !== null) return fault
        const id = random.uuid()
        const secret = supplied ?? newWebhookSecret(random)
        const sealed = await seal(tenantId, id, secret)
        const { url, description, active } = draft
        const row = { id, tenantId, url, description, active, createdAt: clock.now() }
        return database.tenant(
          tenantId,
          (tx) =>
            idempotently(
              tx,
              idempotency,
              async () => {
                const eventTypes = [...new Set(draft.eventTypes)]
                const hint = { secretHint: secretHint(secret) }
                const inserted = { ...row, ...hint, eventTypes, secret: sealed }
                const webhook = await insertWebhook(tx, inserted, subscriptionsMax)
                if (webhook === undefined) {
                  return { tag: 'too_many', max: subscriptionsMax } as const
                }
                await auditSubscription(tx, needs, {
                  caller,
                  did: 'created',
                  webhookId: id,
                  requestId,
                  webhook,
                })
                const shown = supplied === null ? secret : null
                return { tag: 'created', webhook, secret: shown, replayed: false } as const
              },
              (outcome) => (outcome.tag === 'created' ? { ...outcome, secret: null } : undefined),
            ),
          { signal },
        )
      },

      async replace({ caller, webhookId, draft }, { signal, requestId }) {
        const { tenantId } = caller.principal
        const fault = draftFault(draft, urlRules, offered)
        if (fault !== null) return fault
        if (!isUuid(webhookId)) return UNKNOWN
        const change = {
          tenantId,
          id: webhookId,
          url: draft.url,
          eventTypes: [...new Set(draft.eventTypes)],
          description: draft.description,
          active: draft.active,
          now: clock.now(),
        }
        const webhook = await database.tenant(
          tenantId,
          async (tx) => {
            const row = await replaceWebhook(tx, change)
            if (row === undefined) return undefined
            if (!row.active) await cancelDeliveries(tx, tenantId, webhookId, INACTIVE)
            await auditSubscription(tx, needs, {
              caller,
              did: 'changed',
              webhookId,
              requestId,
              webhook: row,
            })
            return row
          },
          { signal },
        )
        return webhook === undefined ? UNKNOWN : { tag: 'replaced', webhook }
      },

      async remove({ caller, webhookId }, { signal, requestId }) {
        const { tenantId } = caller.principal
        if (!isUuid(webhookId)) return UNKNOWN
        const removed = await database.tenant(
          tenantId,
          async (tx) => {
            const known = await deleteWebhook(tx, tenantId, webhookId, clock.now())
            if (!known) return false
            await cancelDeliveries(tx, tenantId, webhookId, INACTIVE)
            await auditSubscription(tx, needs, { caller, did: 'deleted', webhookId, requestId })
            return true
          },
          { signal },
        )
        return removed ? { tag: 'removed' } : UNKNOWN
      },

      rotateSecret: secretRotation(needs),
      test: tests.run,
      deliveries: history.list,
      replay: history.replay,
      recover: history.recover,
    }
  },
})

const CATALOGUE: ReadonlySet<string> = new Set(EVENT_TYPES)

/** Lists a tenant's events by number and in order, for receivers that cannot be reached by HTTP. */
function eventFeed(database: Database): Handlers<WebhooksProtocol>['events'] {
  return ({ tenantId, after, limit }, { signal }) =>
    database.tenant(
      tenantId,
      async (tx) => {
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
      },
      { signal },
    )
}
