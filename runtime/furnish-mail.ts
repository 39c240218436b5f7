/** Outward connections of signing in: the worker that sends mail, and the provider of CAPTCHAs. */
import { logMailer, smtpMailer } from '../actors/notify/client.js'
import { mailOutcomes } from '../actors/notify/metrics.js'
import { createMailWorker, type MailWorker } from '../actors/notify/worker.js'
import { type Captcha, openCaptcha } from '../actors/risk/captcha.js'
import { type CaptchaGate, captchaGate, NO_CAPTCHA } from '../actors/risk/gate.js'
import type { House } from './house.js'
import { egressSettingsOf } from './outward.js'

export function mailWorkerOf(house: House): MailWorker {
  const { database, sealer, random, metrics, log } = house
  const { email } = house.settings
  return createMailWorker({
    database,
    listener: database.listener,
    sealer,
    mailer: email.provider === 'smtp' ? smtpMailer(email) : logMailer(log),
    random,
    outcomes: mailOutcomes(metrics.registry),
    schedule: email.retry_schedule_secs,
  })
}

export function captchaOf({ settings, coordination }: House): {
  readonly captcha: Captcha | null
  readonly gate: CaptchaGate
} {
  const { challenge } = settings
  if (!challenge.captcha_enabled) return { captcha: null, gate: NO_CAPTCHA }
  const captcha = openCaptcha({ challenge, settings: egressSettingsOf(settings) })
  return { captcha, gate: captchaGate(captcha, coordination, challenge) }
}
