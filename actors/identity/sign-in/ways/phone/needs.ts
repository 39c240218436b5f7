/** Dependencies of the phone handlers. */
import type { Registry } from 'prom-client'
import type { ActorRef, Handler } from '../../../../../runtime/kernel/actor.js'
import type { I18nSettings } from '../../../../domain/i18n/settings.js'
import type { MailQueue } from '../../../../platform/mail/mail-queue.js'
import type { CountsOutcomes } from '../../../../platform/metrics.js'
import type { AdaptiveMfaSettings } from '../../second-factors/settings.js'
import type { BrowserSessionsProtocol } from '../../sessions/protocol.js'
import type { SignInNeeds, SignInTools } from '../../flow/progress.js'
import type { MailQuotaSettings } from '../../limits/mail-quota.js'
import type { TextQuota } from './limits.js'
import type { TextSender } from './sender.js'
import type { PhoneProtocol } from './protocol.js'
import type { SmsSettings } from './settings.js'

export type PhoneNeeds = Pick<
  SignInNeeds,
  'database' | 'coordination' | 'clock' | 'random' | 'tenants' | 'settings' | 'cookies'
> & {
  readonly registry: Registry
  readonly browserSessions: ActorRef<BrowserSessionsProtocol>
  readonly mail: MailQueue
  readonly email: MailQuotaSettings
  readonly adaptiveMfa: AdaptiveMfaSettings
  readonly sender: TextSender
  readonly sms: SmsSettings
  /** `[i18n]`, for the language of messages. */
  readonly i18n: I18nSettings
  /** `oidc.issuer_url`. */
  readonly issuer: string
}

export type PhoneTools = PhoneNeeds &
  Pick<SignInTools, 'lockout' | 'adaptive'> &
  CountsOutcomes & { readonly quota: TextQuota }

export type PhoneHandler<K extends keyof PhoneProtocol> = Handler<PhoneTools, PhoneProtocol, K>
