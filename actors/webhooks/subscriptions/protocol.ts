/**
 * Messages about webhook subscriptions, their secrets and their history.
 * docs/reference/webhooks.md.
 */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { Caller } from '../../domain/audit.js'
import type { IdempotencyClaim } from '../../domain/idempotency.js'
import type { TenantId } from '../../domain/ids.js'
import type { ListCursor, Page } from '../../domain/paging.js'
import type { Delivery, DeliveryStatus, Webhook } from '../../domain/entities/webhooks.js'
import type { MemberInvalid } from '../../domain/entities/messages.js'

export type WebhooksProtocol = {
  listWebhooks: Ask<ListWebhooks, WebhooksListed>
  getWebhook: Ask<NamedWebhook, WebhookFound | WebhookUnknown>
  createWebhook: Ask<
    CreateWebhook,
    WebhookCreated | WebhookInvalid | TooManyWebhooks | IdempotencyRefused
  >
  replaceWebhook: Ask<ReplaceWebhook, WebhookReplaced | WebhookInvalid | WebhookUnknown>
  deleteWebhook: Ask<RemoveWebhook, WebhookRemoved | WebhookUnknown>
  rotateWebhookSecret: Ask<RotateSecret, SecretRotated | WebhookInvalid | WebhookUnknown>
  /** Makes one attempt immediately, even for an inactive subscription. */
  testWebhook: Ask<TestWebhook, WebhookTested | WebhookUnknown | WebhooksBusy | IdempotencyRefused>
  listWebhookDeliveries: Ask<ListDeliveries, DeliveriesListed | WebhookUnknown>
  replayWebhookDelivery: Ask<ReplayDelivery, DeliveryReplayed | ReplayRefused | WebhookUnknown>
  /** Lists events of the tenant in order, for receivers that poll. */
  listEvents: Ask<ListEvents, EventsListed>
  recoverWebhookDeliveries: Ask<
    RecoverDeliveries,
    DeliveriesRecovered | ReplayRefused | WebhookUnknown
  >
}

/** The subscription members set by the owner. */
export type WebhookDraft = {
  readonly url: string
  readonly eventTypes: readonly string[]
  readonly description: string
  readonly active: boolean
}

export type NamedWebhook = { readonly tenantId: TenantId; readonly webhookId: string }
export type WebhookFound = { readonly tag: 'found'; readonly webhook: Webhook }
export type WebhookUnknown = { readonly tag: 'unknown' }
export type WebhookInvalid = MemberInvalid

export type ListWebhooks = Page & { readonly tenantId: TenantId }
export type WebhooksListed = {
  readonly tag: 'listed'
  readonly webhooks: readonly Webhook[]
  readonly next: ListCursor | null
}

export type CreateWebhook = {
  readonly caller: Caller
  readonly draft: WebhookDraft
  /** Null: the service generates one. */
  readonly secret: string | null
  readonly idempotency: IdempotencyClaim | null
}
export type WebhookCreated = {
  readonly tag: 'created'
  readonly webhook: Webhook
  /** Null in replays, and when the caller supplied the secret. */
  readonly secret: string | null
  readonly replayed: boolean
}
export type TooManyWebhooks = { readonly tag: 'too_many'; readonly max: number }

/** A change of a subscription, with its caller. */
export type ManagedWebhook = { readonly caller: Caller; readonly webhookId: string }
export type ReplaceWebhook = ManagedWebhook & { readonly draft: WebhookDraft }
export type RemoveWebhook = ManagedWebhook
export type WebhookReplaced = { readonly tag: 'replaced'; readonly webhook: Webhook }
export type WebhookRemoved = { readonly tag: 'removed' }

export type RotateSecret = ManagedWebhook & {
  /** Null: the service generates one. */
  readonly secret: string | null
  /** How long the old secret stays valid, in seconds. */
  readonly overlapSecs: number
}
export type SecretRotated = {
  readonly tag: 'rotated'
  readonly webhookId: string
  /** Null when the caller supplied the secret. */
  readonly secret: string | null
  readonly rotatedAt: Date
  readonly previousExpiresAt: Date
}

/** Null: starts at the next event. Otherwise events with a higher number. */
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
  /** Value of `after` for the next call. */
  readonly nextAfter: number
}

export type TestWebhook = NamedWebhook & {
  /** The caller. */
  readonly actor: { readonly type: string; readonly id: string }
  readonly idempotency: IdempotencyClaim | null
}
export type WebhookTested = {
  readonly tag: 'tested'
  readonly delivery: Delivery
  readonly replayed: boolean
}
/** The limit of concurrent test deliveries is reached. */
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
  /** Events without a delivery that have one now. */
  readonly added: number
  /** True: there are more, call again. */
  readonly more: boolean
}

export type IdempotencyRefused =
  | { readonly tag: 'idempotency_mismatch' }
  | { readonly tag: 'idempotency_in_progress' }

export const webhooks = address<WebhooksProtocol>('webhooks', {
  idempotent: ['listWebhooks', 'getWebhook', 'listWebhookDeliveries'],
})
