/** The dependencies of the webhooks actor. */
import type { ActorRef, Handler } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { ShareCounts } from '../../../runtime/kernel/fairness/fair-share.js'
import type { Random } from '../../../runtime/kernel/random.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import type { Database } from '../../../storage/platform/sql.js'
import type { EventType } from '../../domain/events.js'
import type { TargetRules } from '../../platform/outbound-http/targets.js'
import type { TenantGroups } from '../../platform/tenant-groups.js'
import type { Sender } from '../delivery/protocol.js'
import type { WebhookSignerProtocol } from '../signer/protocol.js'
import type { WebhooksProtocol } from './protocol.js'

export type WebhooksNeeds = {
  readonly database: Database
  readonly sealer: Sealer
  readonly sender: Sender
  readonly signer: ActorRef<WebhookSignerProtocol>
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

export type WebhooksHandler<K extends keyof WebhooksProtocol> = Handler<
  WebhooksNeeds,
  WebhooksProtocol,
  K
>
