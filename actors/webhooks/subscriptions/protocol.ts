/** Webhook subscriptions, their secrets and their history. decisions.md sections 9 and 22. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { Caller } from '../../domain/audit.js'
import type { IdempotencyClaim } from '../../domain/idempotency.js'
import type { TenantId } from '../../domain/ids.js'
import type { ListCursor, Page } from '../../domain/paging.js'

export type WebhooksProtocol = {
  list: Ask<ListWebhooks, WebhooksListed>
  read: Ask<NamedWebhook, WebhookFound | WebhookUnknown>
  create: Ask<CreateWebhook, WebhookCreated | WebhookInvalid | TooManyWebhooks | IdempotencyRefused>
  replace: Ask<ReplaceWebhook, WebhookReplaced | WebhookInvalid | WebhookUnknown>
  remove: Ask<RemoveWebhook, WebhookRemoved | WebhookUnknown>
  rotateSecret: Ask<RotateSecret, SecretRotated | WebhookInvalid | WebhookUnknown>
  /** One attempt, at once, at an inactive subscription as well. */
  test: Ask<TestWebhook, WebhookTested | WebhookUnknown | WebhooksBusy | IdempotencyRefused>
  deliveries: Ask<ListDeliveries, DeliveriesListed | WebhookUnknown>
  replay: Ask<ReplayDelivery, DeliveryReplayed | ReplayRefused | WebhookUnknown>
  /** Events of the tenant in their order, for those who fetch instead of being called. */
  events: Ask<ListEvents, EventsListed>
  recover: Ask<RecoverDeliveries, DeliveriesRecovered | ReplayRefused | WebhookUnknown>
}

export type Webhook = {
  readonly id: string
  readonly tenantId: TenantId
  readonly url: string
  readonly eventTypes: readonly string[]
  readonly description: string
  readonly active: boolean
  readonly secretLastRotatedAt: Date
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** What its owner says of a subscription. */
export type WebhookDraft = {
  readonly url: string
  readonly eventTypes: readonly string[]
  readonly description: string
  readonly active: boolean
}

export type NamedWebhook = { readonly tenantId: TenantId; readonly webhookId: string }
export type WebhookFound = { readonly tag: 'found'; readonly webhook: Webhook }
export type WebhookUnknown = { readonly tag: 'unknown' }
export type WebhookInvalid = {
  readonly tag: 'invalid'
  /** JSON pointer into the body. */
  readonly pointer: string
  readonly detail: string
}

export type ListWebhooks = Page & { readonly tenantId: TenantId }
export type WebhooksListed = {
  readonly tag: 'listed'
  readonly webhooks: readonly Webhook[]
  readonly next: ListCursor | null
}

export type CreateWebhook = {
  readonly caller: Caller
  readonly draft: WebhookDraft
  /** Null: one is made. */
  readonly secret: string | null
  readonly idempotency: IdempotencyClaim | null
}
export type WebhookCreated = {
  readonly tag: 'created'
  readonly webhook: Webhook
  /** Null when the caller knows it, and in replays. */
  readonly secret: string | null
  readonly replayed: boolean
}
export type TooManyWebhooks = { readonly tag: 'too_many'; readonly max: number }

/** A subscription, and who changes it. */
export type ManagedWebhook = { readonly caller: Caller; readonly webhookId: string }
export type ReplaceWebhook = ManagedWebhook & { readonly draft: WebhookDraft }
export type RemoveWebhook = ManagedWebhook
export type WebhookReplaced = { readonly tag: 'replaced'; readonly webhook: Webhook }
export type WebhookRemoved = { readonly tag: 'removed' }

export type RotateSecret = ManagedWebhook & {
  /** Null: one is made. */
  readonly secret: string | null
  /** How long the old secret stays in force beside the new one. */
  readonly overlapSecs: number
}
export type SecretRotated = {
  readonly tag: 'rotated'
  readonly webhookId: string
  /** Null when the caller knows it. */
  readonly secret: string | null
  readonly rotatedAt: Date
  readonly previousExpiresAt: Date
}

export type DeliveryStatus = 'pending' | 'retrying' | 'succeeded' | 'failed'
/** Null: from now on. Otherwise what has a higher number. */
export type ListEvents = {
  readonly tenantId: TenantId
  readonly after: number | null
  readonly limit: number
}
export type TenantEvent = {
  readonly id: string
  readonly tenantId: string
  readonly sequence: number
  readonly type: string
  readonly occurredAt: Date
  readonly data: Readonly<Record<string, unknown>>
}
export type EventsListed = {
  readonly tag: 'listed'
  readonly events: readonly TenantEvent[]
  /** What to ask with next. */
  readonly nextAfter: number
}

export type Attempt = {
  readonly attemptedAt: Date
  readonly responseStatus: number | null
  readonly durationMs: number
  readonly error: string | null
}
export type Delivery = {
  readonly id: string
  readonly webhookId: string
  readonly eventId: string
  readonly eventType: string
  readonly status: DeliveryStatus
  readonly attemptCount: number
  readonly maxAttempts: number
  readonly responseStatus: number | null
  readonly error: string | null
  readonly durationMs: number | null
  readonly nextAttemptAt: Date | null
  readonly lastAttemptAt: Date | null
  readonly deliveredAt: Date | null
  readonly createdAt: Date
  readonly attempts: readonly Attempt[]
}

export type TestWebhook = NamedWebhook & {
  /** Who wants to know. */
  readonly actor: { readonly type: string; readonly id: string }
  readonly idempotency: IdempotencyClaim | null
}
export type WebhookTested = {
  readonly tag: 'tested'
  readonly delivery: Delivery
  readonly replayed: boolean
}
/** As many test deliveries as may run at once are running. */
export type WebhooksBusy = { readonly tag: 'busy' }

export type ListDeliveries = NamedWebhook &
  Page & { readonly status: DeliveryStatus | null; readonly eventType: string | null }
export type DeliveriesListed = {
  readonly tag: 'listed'
  readonly deliveries: readonly Delivery[]
  readonly next: ListCursor | null
}

export type ReplayDelivery = NamedWebhook & { readonly deliveryId: string }
export type DeliveryReplayed = { readonly tag: 'replayed'; readonly delivery: Delivery }
export type ReplayRefused = {
  readonly tag: 'refused'
  readonly reason: 'inactive' | 'waiting' | 'test' | 'too_old'
}

export type RecoverDeliveries = NamedWebhook & { readonly since: Date }
export type DeliveriesRecovered = {
  readonly tag: 'recovered'
  /** Failed deliveries that start again. */
  readonly replayed: number
  /** Events that had no delivery and have one now. */
  readonly added: number
  /** True: there are more; ask again. */
  readonly more: boolean
}

export type IdempotencyRefused =
  | { readonly tag: 'idempotency_mismatch' }
  | { readonly tag: 'idempotency_in_progress' }

export const webhooks = address<WebhooksProtocol>('webhooks', ['list', 'read', 'deliveries'])
