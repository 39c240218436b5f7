/** Dependencies of the phone handlers. */
import type { ActorRef, Handler } from '../../../../../runtime/kernel/actor.js'
import type { I18nSettings } from '../../../../domain/i18n/settings.js'
import type { BrowserSessionsProtocol } from '../../sessions/protocol.js'
import type { WayNeeds, WayTools } from '../../limits/limits-of.js'
import type { TenantsProtocol } from '../../../users/tenants/protocol.js'
import type { TextQuota } from './limits.js'
import type { TextSender } from './sender.js'
import type { PhoneProtocol } from './protocol.js'
import type { SmsSettings } from './settings.js'

export type PhoneNeeds = WayNeeds & {
  readonly tenants: ActorRef<TenantsProtocol>
  readonly browserSessions: ActorRef<BrowserSessionsProtocol>
  readonly sender: TextSender
  readonly sms: SmsSettings
  /** `[i18n]`, for the language of messages. */
  readonly i18n: I18nSettings
  /** `oidc.issuer_url`. */
  readonly issuer: string
}

export type PhoneTools = PhoneNeeds & WayTools & { readonly quota: TextQuota }

export type PhoneHandler<K extends keyof PhoneProtocol> = Handler<PhoneTools, PhoneProtocol, K>
