/** What the actors of the ways to sign in have in common: dependencies, limits and the risk judgement. */
import type { Registry } from 'prom-client'
import type { MailQueue } from '../../../platform/mail/mail-queue.js'
import type { CountsOutcomes } from '../../../platform/metrics.js'
import type { SignInNeeds, SignInTools } from '../flow/progress.js'
import { adaptiveMfa } from '../second-factors/risk.js'
import { lockout } from './lockout.js'
import { type MailQuota, mailQuota, type MailQuotaSettings } from './mail-quota.js'

export type WayNeeds = Pick<
  SignInNeeds,
  'database' | 'coordination' | 'clock' | 'random' | 'settings' | 'cookies' | 'adaptiveMfa'
> & {
  readonly registry: Registry
  readonly mail: MailQueue
  readonly email: MailQuotaSettings
}

type Limits = Pick<SignInTools, 'lockout' | 'adaptive'> & { readonly mailQuota: MailQuota }

export type WayTools = Limits & CountsOutcomes

export function limitsOf(needs: WayNeeds): Limits {
  const { coordination, settings, clock, email } = needs
  const quota = mailQuota(coordination, email)
  return {
    lockout: lockout(coordination, settings, clock),
    mailQuota: quota,
    adaptive: adaptiveMfa(needs, quota),
  }
}
