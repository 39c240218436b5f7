/** The current scopes of the creator of an initial access token, which bound the scopes of its clients. */
import { highestRole } from '../../domain/scopes.js'
import { findAgentCreator, type TokenCreator } from '../../../storage/oauth/client-registration.js'
import { findApplication } from '../../../storage/oauth/applications.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { findPersonRoles } from '../../../storage/identity/tenant-users.js'
import { agentScopes, HUMAN_SCOPES } from '../../domain/scopes.js'

/** Empty if the creator is gone or suspended. The look-up crosses tenants for accounts and agents. */
export async function creatorScopes(
  tx: Transaction,
  tenantId: string,
  { type, id }: TokenCreator,
): Promise<readonly string[]> {
  switch (type) {
    case 'human': {
      const roles = await findPersonRoles(tx, tenantId, id)
      return roles === undefined ? [] : HUMAN_SCOPES[highestRole(roles)]
    }
    case 'agent': {
      const agent = await findAgentCreator(tx, tenantId, id)
      return agent === undefined ? [] : agentScopes({ controlPlane: false, ...agent })
    }
    case 'service': {
      const application = await findApplication(tx, tenantId, id)
      return application?.status === 'active' ? application.scopes : []
    }
  }
}
