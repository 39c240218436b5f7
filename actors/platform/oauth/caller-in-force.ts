/** Whether work that outlives its request goes on: its caller is checked again. */
import { findApiKey } from '../../../storage/oauth/api-keys.js'
import { readTokenStatus } from '../../../storage/oauth/token-sessions.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { Principal } from '../../domain/principal.js'
import { tokenStatusQuery } from '../../domain/token-status.js'
import { creatorScopes } from './creator-scopes.js'

/**
 * False once the token is revoked, or the API key is deleted, has expired or has lost one of its scopes. Crosses tenants,
 * because the agent's home tenant may differ from its token's tenant.
 */
export async function isCallerInForce(
  tx: Transaction,
  principal: Principal,
  now: Date,
): Promise<boolean> {
  const { tenantId, subject, scopes, apiKey } = principal
  const [status] = await readTokenStatus(tx, [tokenStatusQuery(principal)])
  if (status === undefined) return false
  if (apiKey !== true) return Object.values(status).every(Boolean)
  const key = await findApiKey(tx, tenantId, subject)
  if (key === undefined || key.expiresAt <= now || !status.tenantActive) return false
  const held = await creatorScopes(tx, tenantId, key.maker)
  return scopes.every((scope) => held.includes(scope))
}
