/** Who changed which subscription, in the audit chain: a subscription carries events out of the house. */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { audited, type Caller } from '../../domain/audit.js'
import type { Webhook } from './protocol.js'

export type SubscriptionChange = {
  readonly caller: Caller
  readonly did: 'created' | 'changed' | 'deleted' | 'secret_rotated'
  readonly webhookId: string
  readonly requestId: string | undefined
  /** As it is now, where the change is one of what it says. */
  readonly webhook?: Webhook
}

/** In the transaction of the change, last. Of the URL the host alone: the rest may be a secret. */
export async function auditSubscription(
  tx: Transaction,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  { caller, did, webhookId, requestId, webhook }: SubscriptionChange,
): Promise<void> {
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
