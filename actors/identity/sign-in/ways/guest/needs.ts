/** Dependencies of the handlers of guests. */
import type { Registry } from 'prom-client'
import type { Handler } from '../../../../../runtime/kernel/actor.js'
import type { MailQueue } from '../../../../platform/mail/mail-queue.js'
import type { CountsOutcomes } from '../../../../platform/metrics.js'
import type { SignInNeeds, SignInTools } from '../../flow/progress.js'
import type { MailQuota, MailQuotaSettings } from '../../limits/mail-quota.js'
import type { GuestsProtocol } from './protocol.js'
import type { AnonymousSettings } from './settings.js'

export type GuestsNeeds = Pick<
  SignInNeeds,
  'database' | 'coordination' | 'clock' | 'random' | 'settings' | 'cookies' | 'adaptiveMfa'
> & {
  readonly registry: Registry
  readonly mail: MailQueue
  readonly email: MailQuotaSettings
  readonly anonymous: AnonymousSettings
}

export type GuestsTools = GuestsNeeds &
  Pick<SignInTools, 'lockout'> &
  CountsOutcomes & { readonly mailQuota: MailQuota }

export type GuestHandler<K extends keyof GuestsProtocol> = Handler<GuestsTools, GuestsProtocol, K>
