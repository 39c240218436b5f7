/** [scim]: directory provisioning. */
import { count, flag } from '../../../runtime/kernel/config/kinds.js'
import { section } from '../../../runtime/kernel/config/section.js'

export const scimSettings = section(
  'scim',
  {
    enabled: flag(false).describe('Serve /scim/v2, and the operations that manage its tokens.'),
    groups_enabled: flag(false).describe(
      'Serve /scim/v2/Groups. Its groups are the roles of a tenant.',
    ),
    max_results: count(200, 1, 1_000).describe('Largest page of a list.'),
  },
  { about: 'Directory provisioning (RFC 7644).' },
)
