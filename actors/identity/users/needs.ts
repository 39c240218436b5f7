/** Dependencies of the user handlers. */
import type { ActorRef, Handler } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Database } from '../../../storage/platform/sql.js'
import type { InvitationsSettings } from '../sign-in/settings.js'
import type { MailQueue } from '../../platform/mail/mail-queue.js'
import type { PasswordsProtocol } from '../passwords/protocol.js'
import type { EndingNeeds } from './ending.js'
import type { UsersProtocol } from './protocol.js'

export type UsersNeeds = EndingNeeds & {
  readonly database: Database
  readonly clock: Clock
  readonly passwords: ActorRef<PasswordsProtocol>
  readonly mail: MailQueue
  readonly invitations: InvitationsSettings
  /** `user_self_service.reset_ttl_secs`. */
  readonly resetTtlSecs: number
  /** `oidc.issuer_url`. */
  readonly issuer: string
}

export type Handling<K extends keyof UsersProtocol> = Handler<UsersNeeds, UsersProtocol, K>
