/** [tenant]: how the tenant of a request is resolved. */
import { z } from 'zod'
import { notes } from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'

export const tenantSettings = section(
  'tenant',
  {
    default_tenant_slug: z
      .string()
      .regex(/^[a-z0-9-]{3,63}$/)
      .register(notes, { words: '3 to 63 of a-z, 0-9 and "-"', example: 'acme' })
      .optional()
      .describe('Skips resolution by subdomain, for local use with one tenant.'),
  },
  { about: 'Tenant resolution.' },
)

export type TenantSettings = SettingsOf<typeof tenantSettings>
