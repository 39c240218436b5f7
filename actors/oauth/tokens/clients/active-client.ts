/** Finds an active application of an active tenant, in any tenant. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import {
  type AuthorizingClientRow,
  findAuthorizingClient,
} from '../../../../storage/oauth/applications.js'
import type { Database } from '../../../../storage/platform/sql.js'
import { isUuid } from '../../../domain/ids.js'

export async function activeClient(
  database: Database,
  clientId: string,
  context: MessageContext,
): Promise<AuthorizingClientRow | null> {
  if (!isUuid(clientId)) return null
  // The tenant is unknown until the application is found, so the look-up crosses tenants.
  const row = await database.system((tx) => findAuthorizingClient(tx, clientId), {
    pool: 'identity',
    signal: context.signal,
  })
  return row !== undefined && row.status === 'active' && row.tenantActive ? row : null
}
