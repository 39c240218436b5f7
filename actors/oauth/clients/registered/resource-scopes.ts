/** The scopes of API resources that an application may list among its own. */
import { resourceScopeNames } from '../../../../storage/oauth/api-resources.js'
import type { Database } from '../../../../storage/platform/sql.js'
import type { ApplicationDraft } from './protocol.js'
import { areOwnScopes } from './rules.js'
import { inTenant } from '../../../platform/in-tenant.js'

/**
 * Reads the resources only if the draft has a scope that this service does not define.
 * @param which all resources of the tenant, or those that are open to any client.
 */
export async function resourceScopesFor(
  database: Database,
  tenantId: string,
  draft: Pick<ApplicationDraft, 'scopes'>,
  which: 'all' | 'open',
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (areOwnScopes(draft)) return []
  return inTenant(database, tenantId, { signal }, (tx) => resourceScopeNames(tx, tenantId, which))
}
