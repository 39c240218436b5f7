/** Dependencies of the handlers of sign-in. */
import type { ActorRef, Handler } from '../../../runtime/kernel/actor.js'
import type { CaptchaGate } from './limits/captcha-gate.js'
import type { BrowserSessionsProtocol } from './sessions/protocol.js'
import type { SignInNeeds } from './flow/progress.js'
import type { WayNeeds, WayTools } from './limits/limits-of.js'
import type { SignInOffers, SignInProtocol } from './protocol.js'
import type { EmailOtpSettings, MagicLinkSettings } from './settings.js'

export type SignInActorNeeds = SignInNeeds &
  WayNeeds & {
    readonly browserSessions: ActorRef<BrowserSessionsProtocol>
    readonly gate: CaptchaGate
    readonly offers: SignInOffers
    readonly emailOtp: EmailOtpSettings
    readonly magicLink: MagicLinkSettings
    /** `oidc.issuer_url`. */
    readonly issuer: string
    /** Path of the administration pages. Null: the deployment has none. */
    readonly consolePath: string | null
  }

export type SignInActorTools = SignInActorNeeds & WayTools

export type SignInHandler<K extends keyof SignInProtocol> = Handler<
  SignInActorTools,
  SignInProtocol,
  K
>
