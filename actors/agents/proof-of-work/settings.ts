/** [challenge]: proof of work, CAPTCHA, breached passwords. */
import { z } from 'zod'
import { count, flag, secret, seconds, text, url } from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'

export const challengeSettings = section(
  'challenge',
  {
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
    hibp_enabled: flag(false).describe('Refuse breached passwords. Required in production.'),
    hibp_url: url(['https:'], 'an https URL', 'https://api.pwnedpasswords.com')
      .default('https://api.pwnedpasswords.com')
      .describe('Breached-password range API; GET {hibp_url}/range/{five hexadecimal digits}.'),
    pow_difficulty_bits: count(20, 1, 28).describe('Leading zero bits of a proof of work.'),
    pow_trickle_per_minute: count(120, 1, 1_000_000).describe(
      'Registration starts per minute, tenant and process without added difficulty.',
    ),
    pow_flood_bits_max: count(4, 0, 8).describe(
      'Most bits added to pow_difficulty_bits, one per doubling above pow_trickle_per_minute.',
    ),
    pow_min_duration_secs: count(2, 0, 60).describe('Minimum time between challenge and proof.'),
    pow_ttl_secs: seconds(300, 3_600).describe('Lifetime of a proof-of-work challenge.'),
    pow_max_invalid: count(10, 1, 1_000).describe(
      'Invalid proofs after which a challenge expires.',
    ),
    agent_challenge_ttl_secs: seconds(120, 600).describe('Lifetime of a login challenge.'),
  },
  {
    about: 'Protection against automated abuse.',
    rules: [
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
      {
        keys: ['pow_min_duration_secs', 'pow_ttl_secs'],
        holds: (challenge) => challenge.pow_min_duration_secs < challenge.pow_ttl_secs,
        rule: 'be less than challenge.pow_ttl_secs',
        fix: 'lower pow_min_duration_secs or raise pow_ttl_secs',
      },
    ],
  },
)

export type ChallengeSettings = SettingsOf<typeof challengeSettings>
