/** [organizations]: what owners of organizations may do, and how much of it. */
import { count, flag, seconds } from '../../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../../runtime/kernel/config/section.js'

const DAY_SECS = 86_400
const MEMBERS_MAX = 1_000_000

export const organizationsSettings = section(
  'organizations',
  {
    enabled: flag(true).describe(
      'Organizations, environments, invitations and transfers can be created over the API; false: 403 for everyone but operators of the deployment.',
    ),
    max_members: count(1_000, 1, MEMBERS_MAX).describe(
      'Members and open invitations of an organization without its own limit.',
    ),
    max_tenants: count(100, 1, MEMBERS_MAX).describe(
      'Environments of an organization without its own limit.',
    ),
    invitation_ttl_secs: seconds(7 * DAY_SECS, 90 * DAY_SECS).describe(
      'How long an invitation to an organization can be accepted.',
    ),
    transfer_ttl_secs: seconds(7 * DAY_SECS, 90 * DAY_SECS).describe(
      'How long the transfer of an environment to another organization can be accepted.',
    ),
  },
  { about: 'Policies of organizations.' },
)

export type OrganizationsSettings = SettingsOf<typeof organizationsSettings>
