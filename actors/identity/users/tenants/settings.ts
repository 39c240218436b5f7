/** [tenant]: how the tenant of a request is resolved. */
import { slug } from '../../../../runtime/kernel/config/kinds.js'
import { section } from '../../../../runtime/kernel/config/section.js'

export const tenantSettings = section(
  'tenant',
  {
    default_tenant_slug: slug()
      .optional()
      .describe('Skips resolution by subdomain, for local use with one tenant.'),
  },
  { about: 'Tenant resolution.' },
)
