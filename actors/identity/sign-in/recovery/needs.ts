/** Dependencies of every handler of this actor. */
import type { ActorRef, Handler } from '../../../../runtime/kernel/actor.js'
import type { SignInNeeds } from '../flow/progress.js'
import type { Lockout } from '../limits/lockout.js'
import type { MailQuota, MailQuotaSettings } from '../limits/mail-quota.js'
import type { UserSelfServiceSettings } from '../settings.js'
import type { CaptchaGate } from '../limits/captcha-gate.js'
import type { MailQueue } from '../../../platform/mail/mail-queue.js'
import type { BrowserSessionsProtocol } from '../sessions/protocol.js'
import type { PasswordsProtocol } from '../../passwords/protocol.js'
import type { PasswordRecoveryProtocol } from './protocol.js'

export type PasswordRecoveryNeeds = Pick<
  SignInNeeds,
  | 'database'
  | 'coordination'
  | 'clock'
  | 'random'
  | 'settings'
  | 'cookies'
  | 'tenants'
  | 'alwaysTwo'
> & {
  readonly passwords: ActorRef<PasswordsProtocol>
  readonly browserSessions: ActorRef<BrowserSessionsProtocol>
  readonly mail: MailQueue
  readonly email: MailQuotaSettings
  readonly gate: CaptchaGate
  readonly selfService: UserSelfServiceSettings
  /** `oidc.issuer_url`. */
  readonly issuer: string
}

export type PasswordRecoveryTools = PasswordRecoveryNeeds & {
  readonly lockout: Lockout
  readonly quota: MailQuota
}

export type PasswordRecoveryHandler<K extends keyof PasswordRecoveryProtocol> = Handler<
  PasswordRecoveryTools,
  PasswordRecoveryProtocol,
  K
>

export const LINK_TOKEN_BYTES = 32
export const ABSENT = { tag: 'absent' } as const
