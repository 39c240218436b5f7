/** [two_factor], [email_otp], [magic_link], [invitations], [user_self_service]. */
import { count, dependentFlag, flag, seconds } from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'

export const twoFactorSettings = section(
  'two_factor',
  {
    enabled: flag(false).describe(
      'Every sign-in of a user needs a second factor; otherwise only where a request requires it.',
    ),
  },
  { about: 'Second factors.' },
)

const TEN_MINUTES_SECS = 600

export const emailOtpSettings = section(
  'email_otp',
  {
    enabled: dependentFlag().describe('Users may sign in with a code sent by mail.'),
    ttl_secs: seconds(TEN_MINUTES_SECS, 3_600).describe('How long a code can be used.'),
    max_attempts: count(5, 1, 20).describe('Wrong attempts after which a code becomes invalid.'),
  },
  { about: 'Sign-in with a code by mail. Gives level 1 (aal1); needs [email].' },
)

export const magicLinkSettings = section(
  'magic_link',
  {
    enabled: dependentFlag().describe('Users may sign in with a link sent by mail.'),
    ttl_secs: seconds(TEN_MINUTES_SECS, 3_600).describe('How long a link can be used.'),
  },
  {
    about:
      'Sign-in with a link by mail, in the browser that requested it. Gives level 1 (aal1); needs [email].',
  },
)

export const invitationsSettings = section(
  'invitations',
  {
    enabled: dependentFlag().describe('Users who are invited to a tenant get a mail with a link.'),
    ttl_secs: seconds(604_800, 2_592_000).describe('How long an invitation can be accepted.'),
  },
  { about: 'Invitations of tenant users by mail. Needs [email].' },
)

export const userSelfServiceSettings = section(
  'user_self_service',
  {
    enabled: dependentFlag().describe(
      'Users sign up, reset a forgotten password and verify their address by mail.',
    ),
    reset_ttl_secs: seconds(3_600, 86_400).describe('How long a password reset link is valid.'),
    sign_up_default: dependentFlag().describe(
      'People may create accounts in tenants whose settings do not say so. A tenant decides with sign_up.',
    ),
    sign_up_ttl_secs: seconds(86_400, 604_800).describe('How long the link of a sign-up is valid.'),
  },
  {
    about: 'Self-service by mail: sign-up, password reset and address verification. Needs [email].',
  },
)

export type EmailOtpSettings = SettingsOf<typeof emailOtpSettings>
export type MagicLinkSettings = SettingsOf<typeof magicLinkSettings>
export type UserSelfServiceSettings = SettingsOf<typeof userSelfServiceSettings>
