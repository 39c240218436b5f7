/** The dependencies of the handlers. */
import type { ActorRef, Handler } from '../../../runtime/kernel/actor.js'
import type { BrowserSessionsProtocol } from '../../identity/sign-in/sessions/protocol.js'
import type { WriteNeeds } from '../../platform/write-needs.js'
import type { ApprovalsProtocol } from './protocol.js'

export type ApprovalsNeeds = WriteNeeds & {
  readonly browserSessions: ActorRef<BrowserSessionsProtocol>
  /** `vault.approval_ttl_secs`. */
  readonly ttlSecs: number
}

export type ApprovalsHandler<K extends keyof ApprovalsProtocol> = Handler<
  ApprovalsNeeds,
  ApprovalsProtocol,
  K
>
