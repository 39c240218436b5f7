/** Dependencies of sign-in with Ethereum. */
import type { Registry } from 'prom-client'
import type { ActorRef, Handler } from '../../../../../runtime/kernel/actor.js'
import type { MailQueue } from '../../../../platform/mail/mail-queue.js'
import type { CountsOutcomes } from '../../../../platform/metrics.js'
import type { AdaptiveMfaSettings } from '../../second-factors/settings.js'
import type { BrowserSessionsProtocol } from '../../sessions/protocol.js'
import type { SignInNeeds, SignInTools } from '../../flow/progress.js'
import type { MailQuotaSettings } from '../../limits/mail-quota.js'
import type { SiweProtocol } from './protocol.js'
import type { SiweSettings } from './settings.js'

export type SiweNeeds = Pick<
  SignInNeeds,
  'database' | 'coordination' | 'clock' | 'random' | 'tenants' | 'settings' | 'cookies'
> & {
  readonly registry: Registry
  readonly browserSessions: ActorRef<BrowserSessionsProtocol>
  readonly mail: MailQueue
  readonly email: MailQuotaSettings
  readonly adaptiveMfa: AdaptiveMfaSettings
  readonly siwe: SiweSettings
  /** `oidc.issuer_url`. */
  readonly issuer: string
}

export type SiweTools = SiweNeeds & Pick<SignInTools, 'lockout' | 'adaptive'> & CountsOutcomes

export type SiweHandler<K extends keyof SiweProtocol> = Handler<SiweTools, SiweProtocol, K>
