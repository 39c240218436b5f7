/** Which database URL replaces a missing one (docs/reference/runtime.md). */
import type { Fallback } from '../kernel/config/assemble.js'
import type { Settings } from '../configuration/settings.js'

/**
 * Without `database.url` no URL is filled here: the start fills them with those of the embedded
 * database. The identity and listener URLs have fallbacks outside production only.
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
