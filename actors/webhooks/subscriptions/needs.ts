/** The dependencies of the webhooks actor. */
import type { ActorRef, Handler } from '../../../runtime/kernel/actor.js'
import type { ShareCounts } from '../../../runtime/kernel/fairness/fair-share.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import type { EventType } from '../../domain/events.js'
import type { TargetRules } from '../../platform/outbound-http/targets.js'
import type { TenantGroups } from '../../platform/tenant-groups.js'
import type { Sender } from '../delivery/protocol.js'
import type { WebhookSignerProtocol } from '../signer/protocol.js'
import type { WebhooksProtocol } from './protocol.js'
import type { WriteNeeds } from '../../platform/write-needs.js'

export type WebhooksNeeds = WriteNeeds & {
  readonly sealer: Sealer
  readonly sender: Sender
  readonly signer: ActorRef<WebhookSignerProtocol>
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

export type WebhooksHandler<K extends keyof WebhooksProtocol> = Handler<
  WebhooksNeeds,
  WebhooksProtocol,
  K
>
