/** [adaptive_mfa]: a second factor when the risk of a sign-in is raised. */
import { count, flag, seconds } from '../../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../../runtime/kernel/config/section.js'

/** How long a browser or network stays known without a sign-in, in days. */
export const KNOWN_DAYS = 180

export const adaptiveMfaSettings = section(
  'adaptive_mfa',
  {
    enabled: flag(false).describe(
      'A sign-in with raised risk needs a code by mail, unless the account has a second factor, which is always asked for.',
    ),
    new_device: flag(true).describe(
      'A browser where the account has not signed in raises the risk.',
    ),
    new_network: flag(true).describe(
      'A network (IPv4 /24, IPv6 /48) where the account has not signed in raises the risk.',
    ),
    failures_max: count(3, 1, 1_000).describe(
      'Failed attempts for the name in auth.brute_force_lockout_secs that raise the risk.',
    ),
    code_ttl_secs: seconds(600, 3_600).describe('How long the code can be used.'),
    code_max_attempts: count(5, 1, 20).describe('Wrong attempts after which it becomes invalid.'),
  },
  { about: 'Second factors by risk, after a password, a text message or a wallet. Needs [email].' },
)

export type AdaptiveMfaSettings = SettingsOf<typeof adaptiveMfaSettings>
