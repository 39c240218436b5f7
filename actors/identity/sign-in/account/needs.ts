/** Dependencies of the account page. */
import type { ActorRef, Handler } from '../../../../runtime/kernel/actor.js'
import type { Sealer } from '../../../../storage/platform/sealing/sealer.js'
import type { AuthorizationProtocol } from '../../../oauth/tokens/authorization/protocol.js'
import type { BrowserSessionsProtocol } from '../sessions/protocol.js'
import type { ConnectionsProtocol } from '../../../vault/vault/connections/protocol.js'
import type { DelegationProtocol } from '../../../agents/delegation/protocol.js'
import type { FederatedLoginProtocol } from '../ways/federated/protocol.js'
import type { ApprovalsProtocol } from '../../../vault/approvals/protocol.js'
import type { AccountProtocol } from './protocol.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

export type AccountNeeds = WriteNeeds & {
  readonly sealer: Sealer
  readonly browserSessions: ActorRef<BrowserSessionsProtocol>
  readonly authorization: ActorRef<AuthorizationProtocol>
  readonly delegation: ActorRef<DelegationProtocol>
  readonly approvals: ActorRef<ApprovalsProtocol>
  readonly connections: ActorRef<ConnectionsProtocol>
  /** `user_self_service.enabled`. */
  readonly selfService: boolean
  /** The relying party id of passkeys. Null: `passkey.enabled` is false. */
  readonly passkeyDomain: string | null
  /** Whether users may prove a phone number. */
  readonly phones: boolean
  /** `siwe.enabled`. */
  readonly wallets: boolean
  readonly federatedLogin: ActorRef<FederatedLoginProtocol>
}

export type AccountHandler<K extends keyof AccountProtocol> = Handler<
  AccountNeeds,
  AccountProtocol,
  K
>
