/** The last owner of an organization stays able to log in. */
import { keepsOwnersWithout } from '../../../../storage/identity/organization-members.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import type { Caller } from '../../../domain/audit.js'

/**
 * True if the caller may end the agent's logins. The operator of the deployment may always, everyone else where the
 * organizations that the agent owns keep another owner.
 * @param tenantId the tenant in which the logins end, null for every tenant.
 */
export async function mayBeLocked(
  tx: Transaction,
  { principal }: Caller,
  agentId: string,
  tenantId: string | null,
): Promise<boolean> {
  if (principal.scopes.includes('deployment:manage')) return true
  return keepsOwnersWithout(tx, agentId, tenantId)
}
