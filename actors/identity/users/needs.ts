/** Dependencies of the user handlers. */
import type { ActorRef, Handler } from '../../../runtime/kernel/actor.js'
import type { PasswordsProtocol } from '../passwords/protocol.js'
import type { InvitationNeeds } from '../../platform/people/invitations.js'
import type { UsersProtocol } from './protocol.js'

export type UsersNeeds = InvitationNeeds & {
  readonly passwords: ActorRef<PasswordsProtocol>
  /** `user_self_service.reset_ttl_secs`. */
  readonly resetTtlSecs: number
}

export type Handling<K extends keyof UsersProtocol> = Handler<UsersNeeds, UsersProtocol, K>
