/** Audits changes of subscriptions, because a subscription sends events to external receivers. */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { Caller } from '../../domain/audit.js'
import type { Webhook } from '../../domain/entities/webhooks.js'
import { recordAudit } from '../../platform/record-audit.js'

type SubscriptionChange = {
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
  needs: { readonly clock: Clock; readonly random: Random },
  { caller, did, webhookId, requestId, webhook }: SubscriptionChange,
): void {
  recordAudit(
    tx,
    needs,
    caller,
    { requestId },
    {
      type: `webhook.subscription.${did}`,
      resource: { type: 'webhook', id: webhookId },
      data:
        webhook === undefined
          ? {}
          : {
              host: new URL(webhook.url).host,
              event_types: webhook.eventTypes,
              active: webhook.active,
            },
    },
  )
}
