/** What whoever made an initial access token may do now: its clients get no more (RFC 7591 section 3). */
import { highestRole } from '../../domain/scopes.js'
import { findAgentMaker, type TokenMaker } from '../../../storage/oauth/client-registration.js'
import { findApplication } from '../../../storage/oauth/applications.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { findPersonRoles } from '../../../storage/identity/tenant-users.js'
import { agentScopes, HUMAN_SCOPES } from '../../domain/scopes.js'

/** Nothing for somebody who is gone or suspended. Accounts and agents' homes: it crosses tenants. */
export async function heldNow(
  tx: Transaction,
  tenantId: string,
  { type, id }: TokenMaker,
): Promise<readonly string[]> {
  switch (type) {
    case 'human': {
      const roles = await findPersonRoles(tx, tenantId, id)
      return roles === undefined ? [] : HUMAN_SCOPES[highestRole(roles)]
    }
    case 'agent': {
      const agent = await findAgentMaker(tx, tenantId, id)
      return agent === undefined ? [] : agentScopes({ controlPlane: false, ...agent })
    }
    case 'service': {
      const application = await findApplication(tx, tenantId, id)
      return application?.status === 'active' ? application.scopes : []
    }
  }
}
