/** [access_control]: access policies of tenants. */
import { count, flag } from '../../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../../runtime/kernel/config/section.js'

export const accessControlSettings = section(
  'access_control',
  {
    enabled: flag(false).describe(
      'Tenants may have access policies, which are evaluated at sign-in and at the issue of tokens.',
    ),
    max_policies_per_tenant: count(50, 1, 500).describe('Access policies of one tenant.'),
  },
  { about: 'Access policies of tenants.' },
)

export type AccessControlSettings = SettingsOf<typeof accessControlSettings>
