/** Outbound connections of sign-in: the mail worker, text messages and the CAPTCHA provider. */
import { catchingMailer } from '../../../actors/operations/mail/caught-mail.js'
import { logMailer, smtpMailer } from '../../../actors/operations/mail/client.js'
import { type MailQueue, openMailQueue } from '../../../actors/platform/mail/mail-queue.js'
import { mailOutcomes } from '../../../actors/operations/mail/metrics.js'
import { createMailRunner, type MailRunner } from '../../../actors/operations/mail/worker.js'
import {
  type Captcha,
  openCaptcha,
  providerWidget,
} from '../../../actors/identity/sign-in/limits/captcha.js'
import {
  textProvider,
  textSender,
  type TextSender,
} from '../../../actors/identity/sign-in/ways/phone/sender.js'
import { openPowCaptcha } from '../../../actors/identity/sign-in/limits/pow-captcha.js'
import {
  type CaptchaGate,
  captchaGate,
  NO_CAPTCHA,
} from '../../../actors/identity/sign-in/limits/captcha-gate.js'
import type { ProcessResources } from '../process-resources.js'
import { egressSettingsOf } from './egress-settings.js'

export function mailRunnerOf(resources: ProcessResources): MailRunner {
  const { database, sealer, random, metrics, log, caughtMail } = resources
  const { email } = resources.settings
  const mailer = email.provider === 'smtp' ? smtpMailer(email) : logMailer(log)
  return createMailRunner({
    database,
    listener: database.listener,
    sealer,
    mailer: caughtMail === undefined ? mailer : catchingMailer(mailer, caughtMail),
    random,
    outcomes: mailOutcomes(metrics.registry),
    schedule: email.retry_schedule_secs,
    shares: metrics.shares,
  })
}

export function mailQueueOf({
  database,
  sealer,
  random,
  clock,
  metrics,
  settings,
}: Pick<
  ProcessResources,
  'database' | 'sealer' | 'random' | 'clock' | 'metrics' | 'settings'
>): MailQueue {
  const { email, i18n } = settings
  const caught = email.smtp_catcher ? 'caught' : 'delivered'
  return openMailQueue({
    database,
    sealer,
    random,
    clock,
    bounds: {
      queuedMax: email.queue_max_per_tenant,
      perTenantMax: email.per_tenant_per_day_max,
      perSandboxMax: email.per_sandbox_per_day_max,
      perAddressMax: email.per_address_per_day_max,
      perAddressGapSecs: email.per_address_gap_secs,
    },
    destination: email.provider === 'smtp' ? caught : 'logged',
    shares: metrics.shares,
    i18n,
  })
}

export function textSenderOf({ settings, clock, metrics, log }: ProcessResources): TextSender {
  const provider = textProvider(settings.phone, egressSettingsOf(settings), log, () =>
    clock.nowSecs(),
  )
  return textSender(provider, metrics.registry, log)
}

export function captchaOf({ settings, coordination, clock, random }: ProcessResources): {
  readonly captcha: Captcha | null
  readonly gate: CaptchaGate
} {
  const { challenge } = settings
  if (!challenge.captcha_enabled) return { captcha: null, gate: NO_CAPTCHA }
  const { captcha_provider: provider, captcha_secret: secret, captcha_pow_bits: bits } = challenge
  if (provider === 'pow') {
    const captcha = openPowCaptcha({ secret: secret!, bits, counts: coordination, clock, random })
    const widget = () => ({ provider, challenge: captcha.challenge() })
    return { captcha, gate: captchaGate(captcha, widget, coordination, challenge) }
  }
  const own = { ...challenge, captcha_provider: provider }
  const captcha = openCaptcha({ challenge: own, settings: egressSettingsOf(settings) })
  const widget = providerWidget(own)
  return { captcha, gate: captchaGate(captcha, () => widget, coordination, challenge) }
}
