/** [auth]: password hashing and brute-force limits. Breached passwords: keys of [challenge]. */
import { count, flag, seconds, url } from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'

/** The coordination backends support windows of at most 30 days (storage/platform/coordination/port.ts). */
const WINDOW_SECS_MAX = 2_592_000

export const authSettings = section(
  'auth',
  {
    argon2_memory_kib: count(65_536, 8, 4_194_304).describe(
      'Memory of one hash in KiB. Production: at least 65536.',
    ),
    argon2_iterations: count(3, 1, 1_000).describe('Passes over the memory.'),
    argon2_parallelism: count(1, 1, 255).describe('Lanes of one hash. Production: 1.'),
    argon2_max_concurrent: count(4, 1, 256).describe('Hashes computed concurrently.'),
    argon2_waiting_per_tenant_max: count(32, 1, 65_536).describe(
      'Sign-ins of one tenant that may wait for a hash. Further ones get 503.',
    ),
    brute_force_max_attempts: count(10).describe('Failed attempts before an account is locked.'),
    brute_force_lockout_secs: seconds(900, WINDOW_SECS_MAX).describe(
      'How long an account stays locked.',
    ),
    password_verify_ip_max_attempts: count(60).describe('Password checks per address and window.'),
    password_verify_ip_window_secs: seconds(60, WINDOW_SECS_MAX).describe('That window.'),
    registration_rate_limit_max: count(10).describe(
      'Registrations per address and window (quota `registration`), in addition to 100 a day.',
    ),
    registration_rate_limit_window_secs: seconds(60, WINDOW_SECS_MAX).describe('That window.'),
  },
  {
    about: 'Password hashing (RFC 9106) and limits on guessing.',
    rules: [
      {
        keys: ['argon2_memory_kib', 'argon2_parallelism'],
        holds: (auth) => auth.argon2_memory_kib >= 8 * auth.argon2_parallelism,
        rule: 'be at least 8 KiB per lane (RFC 9106 section 3.1)',
        fix: 'raise argon2_memory_kib or lower argon2_parallelism',
      },
    ],
  },
)

export type AuthSettings = SettingsOf<typeof authSettings>

export const breachShape = {
  hibp_enabled: flag(false).describe('Refuse breached passwords. Required in production.'),
  hibp_url: url(['https:'], 'an https URL', 'https://api.pwnedpasswords.com')
    .default('https://api.pwnedpasswords.com')
    .describe('Breached-password range API; GET {hibp_url}/range/{five hexadecimal digits}.'),
}
