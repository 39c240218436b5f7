/** [challenge]: the CAPTCHA. */
import { z } from 'zod'
import { count, flag, secret, text, url } from '../../../../runtime/kernel/config/kinds.js'
import type { RulesOf } from '../../../../runtime/kernel/config/section.js'

export const captchaShape = {
  captcha_enabled: flag(false).describe('Ask humans for a CAPTCHA. Production needs it.'),
  captcha_secret: secret()
    .optional()
    .describe('Secret shared with the CAPTCHA provider; with pow any random secret.'),
  captcha_provider: z
    .enum(['pow', 'turnstile', 'hcaptcha', 'recaptcha'])
    .default('pow')
    .describe(
      'pow is built in: the browser does a proof of work. Or Cloudflare Turnstile, hCaptcha, reCAPTCHA v2.',
    ),
  captcha_pow_bits: count(17, 8, 24).describe(
    'With pow: leading zero bits. Each more doubles the work of the browser.',
  ),
  captcha_site_key: text('1x00000000000000000000AA')
    .optional()
    .describe('Public key of the site, which the widget of a provider needs. Not used by pow.'),
  captcha_verify_url: url(['https:'], 'an https URL', 'https://captcha.example.com/siteverify')
    .optional()
    .describe("Verification endpoint, if not the provider's."),
  captcha_script_url: url(['https:'], 'an https URL', 'https://captcha.example.com/api.js')
    .optional()
    .describe("Script URL of the widget, if not the provider's."),
  captcha_after_failures: count(3, 1, 1_000).describe(
    'Failed sign-ins for one email address after which a CAPTCHA is required.',
  ),
  captcha_after_address_failures: count(10, 1, 10_000).describe(
    'Failed sign-ins from one network address in 15 minutes after which a CAPTCHA is required.',
  ),
  captcha_degraded_per_minute: count(30, 1, 100_000).describe(
    'With fail-degraded: sign-ins per minute that pass without CAPTCHA while the provider is down.',
  ),
  fail_mode: z
    .enum(['fail-closed', 'fail-degraded'])
    .default('fail-closed')
    .describe('Behaviour while the CAPTCHA provider is unavailable; there is no fail-open.'),
}

export const captchaRules: RulesOf<typeof captchaShape> = [
  {
    keys: ['captcha_secret', 'captcha_enabled'],
    holds: (challenge) => !challenge.captcha_enabled || challenge.captcha_secret !== undefined,
    rule: 'be set when challenge.captcha_enabled is true',
    fix: 'set SVC_CHALLENGE__CAPTCHA_SECRET',
  },
  {
    keys: ['captcha_site_key', 'captcha_enabled'],
    holds: (challenge) =>
      !challenge.captcha_enabled ||
      challenge.captcha_provider === 'pow' ||
      challenge.captcha_site_key !== undefined,
    rule: 'be set when challenge.captcha_provider is not pow: the widget does not work without it',
    fix: 'set challenge.captcha_site_key to the public key that the provider gave you',
  },
]
