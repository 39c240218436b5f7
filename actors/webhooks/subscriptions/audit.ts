/** Audits changes of subscriptions, because a subscription sends events to external receivers. */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { audited, type Caller } from '../../domain/audit.js'
import type { Webhook } from '../../domain/entities/webhooks.js'

export type SubscriptionChange = {
  readonly caller: Caller
  readonly did: 'created' | 'changed' | 'deleted' | 'secret_rotated'
  readonly webhookId: string
  readonly requestId: string | undefined
  /** The new state, for changes of its members. */
  readonly webhook?: Webhook
}

/**
 * Appends the record last in the transaction of the change. It contains only the host of the URL, because path and
 * query may contain secrets.
 */
export function auditSubscription(
  tx: Transaction,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  { caller, did, webhookId, requestId, webhook }: SubscriptionChange,
): void {
  const { tenantId } = caller.principal
  appendAudit(tx, [
    audited(caller, {
      id: random.uuid(),
      tenantId,
      type: `webhook.subscription.${did}`,
      occurredAt: clock.now(),
      resource: { type: 'webhook', id: webhookId },
      requestId,
      data:
        webhook === undefined
          ? {}
          : {
              host: new URL(webhook.url).host,
              event_types: webhook.eventTypes,
              active: webhook.active,
            },
    }),
  ])
}
