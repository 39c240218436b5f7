/** [api_keys]: API keys of tenants. */
import { count, flag, seconds } from '../../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../../runtime/kernel/config/section.js'

const DAY_SECS = 86_400
const MAX_LIFETIME_SECS = 5 * 365 * DAY_SECS

export const apiKeysSettings = section(
  'api_keys',
  {
    enabled: flag(false).describe('Tenants may create API keys, and their APIs accept them.'),
    default_lifetime_secs: seconds(90 * DAY_SECS, MAX_LIFETIME_SECS).describe(
      'Lifetime of a key whose creator names none.',
    ),
    max_lifetime_secs: seconds(365 * DAY_SECS, MAX_LIFETIME_SECS).describe(
      'Longest lifetime of a key.',
    ),
    max_per_tenant: count(100, 1, 10_000).describe('Keys of one tenant that are not expired.'),
  },
  {
    about: 'API keys of tenants.',
    rules: [
      {
        keys: ['default_lifetime_secs', 'max_lifetime_secs'],
        holds: (s) => s.default_lifetime_secs <= s.max_lifetime_secs,
        rule: 'be at most api_keys.max_lifetime_secs',
        fix: 'lower api_keys.default_lifetime_secs',
      },
    ],
  },
)

export type ApiKeysSettings = SettingsOf<typeof apiKeysSettings>
