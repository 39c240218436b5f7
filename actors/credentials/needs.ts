/** What every handler of this actor works with. */
import type { ActorRef } from '../../runtime/kernel/actor.js'
import type { LoginNeeds } from '../login/flow.js'
import type { Lockout } from '../login/lockout.js'
import type { MailQuota, MailQuotaSettings } from '../login/mail-quota.js'
import type { UserSelfServiceSettings } from '../login/settings.js'
import type { CaptchaGate } from '../risk/gate.js'
import type { MailRoom } from '../notify/mail-room.js'
import type { PasswordsProtocol } from '../passwords/protocol.js'

export type CredentialsNeeds = Pick<
  LoginNeeds,
  'database' | 'coordination' | 'clock' | 'random' | 'settings' | 'cookies' | 'tenants'
> & {
  readonly passwords: ActorRef<PasswordsProtocol>
  readonly mail: MailRoom
  readonly email: MailQuotaSettings
  readonly gate: CaptchaGate
  readonly selfService: UserSelfServiceSettings
  /** `oidc.issuer_url`. */
  readonly issuer: string
}

export type CredentialsTools = CredentialsNeeds & {
  readonly lockout: Lockout
  readonly quota: MailQuota
}

export const LINK_TOKEN_BYTES = 32
export const BUSY = { tag: 'busy' } as const
export const ABSENT = { tag: 'absent' } as const
