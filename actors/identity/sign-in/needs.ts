/** Dependencies of the handlers of sign-in. */
import type { Registry } from 'prom-client'
import type { ActorRef, Handler } from '../../../runtime/kernel/actor.js'
import type { CountsOutcomes } from '../../platform/metrics.js'
import type { MailQueue } from '../../platform/mail/mail-queue.js'
import type { CaptchaGate } from './limits/captcha-gate.js'
import type { BrowserSessionsProtocol } from './sessions/protocol.js'
import type { SignInNeeds, SignInTools } from './flow/progress.js'
import type { MailQuota, MailQuotaSettings } from './limits/mail-quota.js'
import type { SignInOffers, SignInProtocol } from './protocol.js'
import type { EmailOtpSettings, MagicLinkSettings } from './settings.js'

export type SignInActorNeeds = SignInNeeds & {
  readonly registry: Registry
  readonly browserSessions: ActorRef<BrowserSessionsProtocol>
  readonly email: MailQuotaSettings
  readonly gate: CaptchaGate
  readonly mail: MailQueue
  readonly offers: SignInOffers
  readonly emailOtp: EmailOtpSettings
  readonly magicLink: MagicLinkSettings
  /** `oidc.issuer_url`. */
  readonly issuer: string
  /** Path of the administration pages. Null: the deployment has none. */
  readonly consolePath: string | null
}

export type SignInActorTools = SignInActorNeeds &
  SignInTools &
  CountsOutcomes & { readonly mailQuota: MailQuota }

export type SignInHandler<K extends keyof SignInProtocol> = Handler<
  SignInActorTools,
  SignInProtocol,
  K
>
