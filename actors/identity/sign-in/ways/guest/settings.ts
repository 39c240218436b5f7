/** [anonymous]: guests. */
import { count, flag, seconds } from '../../../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../../../runtime/kernel/config/section.js'

const DAY_SECS = 86_400

export const anonymousSettings = section(
  'anonymous',
  {
    enabled: flag(false).describe(
      'People may continue as a guest, without an address, in tenants whose settings allow it.',
    ),
    retention_secs: seconds(30 * DAY_SECS, 365 * DAY_SECS).describe(
      'A guest who was not seen for this time is deleted, unless an email address was proved.',
    ),
    requests_per_address_max: count(10).describe('New guests per network address and hour.'),
    per_tenant_per_day_max: count(1_000).describe('New guests of one tenant per day.'),
    code_ttl_secs: seconds(600, 3_600).describe(
      'How long the code that proves an email address can be used.',
    ),
    code_max_attempts: count(5, 1, 20).describe(
      'Wrong attempts after which such a code becomes invalid.',
    ),
  },
  {
    about: 'Guests: accounts without an address, which can be kept by proving one. Needs [email].',
  },
)

export type AnonymousSettings = SettingsOf<typeof anonymousSettings>
