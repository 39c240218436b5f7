/** The dependencies of the actor of streams. */
import type { ActorRef, Handler } from '../../../runtime/kernel/actor.js'
import type { FairShare, ShareCounts } from '../../../runtime/kernel/fairness/fair-share.js'
import type { Listener } from '../../../storage/platform/listen.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import type { TargetRules } from '../../platform/outbound-http/targets.js'
import type { TenantGroups } from '../../platform/tenant-groups.js'
import type { SigningKeysProtocol } from '../../oauth/signing-keys/protocol.js'
import type { SignalsProtocol } from './protocol.js'
import type { WaitingStreams } from './waiting-streams.js'
import type { KeptSets } from './set.js'
import type { SharedSignalsSettings } from './settings.js'
import type { WriteNeeds } from '../../platform/write-needs.js'

export type SignalsNeeds = WriteNeeds & {
  readonly listener: Pick<Listener, 'listen'>
  readonly keys: ActorRef<SigningKeysProtocol>
  /** `iss` of the events. */
  readonly issuer: string
  readonly settings: SharedSignalsSettings
  readonly sealer: Pick<Sealer, 'seal'>
  readonly urlRules: TargetRules
  readonly groups: TenantGroups
  readonly shares: ShareCounts
}
export type SignalsTools = SignalsNeeds & {
  /** The places of polls that wait. */
  readonly waits: FairShare
  /** The events that are being signed for polls. */
  readonly signing: FairShare
  readonly kept: KeptSets
  /** The streams that these polls wait for. */
  readonly waiting: WaitingStreams
}

export type SignalsHandler<K extends keyof SignalsProtocol> = Handler<
  SignalsTools,
  SignalsProtocol,
  K
>
