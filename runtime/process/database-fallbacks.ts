/** Which database URL stands in for which. interface.md, Deployment configuration 5. */
import type { Fallback } from '../kernel/config/assemble.js'
import type { Settings } from '../configuration/settings.js'

/**
 * Without `database.url` nothing is filled here: the embedded database does that at start.
 * decisions.md section 23: identity and listener fall back outside production only.
 */
export const databaseFallbacks: readonly Fallback<Settings>[] = [
  ...(['identity_url', 'listener_url'] as const).map((name) => ({
    key: `database.${name}`,
    reads: ['database.url', 'security.production'],
    from: 'database.url, outside production',
    value: ({ database, security }: Settings) => (security.production ? undefined : database.url),
  })),
  ...(['auth_url', 'control_url', 'async_url', 'migration_url'] as const).map((name) => ({
    key: `database.${name}`,
    reads: ['database.url'],
    value: ({ database }: Settings) => database.url,
  })),
  {
    key: 'database.maintenance_url',
    reads: ['database.migration_url'],
    value: ({ database }) => database.migration_url,
  },
]
