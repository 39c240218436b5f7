/** What the handlers of organizations get. */
import type { ActorRef, Handler, MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import type { Database } from '../../../../storage/platform/sql.js'
import type { TokensProtocol } from '../../../oauth/tokens/protocol.js'
import type { TenantsProtocol } from '../tenants/protocol.js'
import type { OrganizationsProtocol } from './protocol.js'
import type { OrganizationsSettings } from './settings.js'

export type OrganizationsNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly tenants: ActorRef<TenantsProtocol>
  readonly tokens: ActorRef<TokensProtocol>
  readonly limits: OrganizationsSettings
}

export type OrganizationsTools = OrganizationsNeeds & {
  /** Read once. */
  readonly controlPlaneId: (context: MessageContext) => Promise<string>
}

export type Handling<K extends keyof OrganizationsProtocol> = Handler<
  OrganizationsTools,
  OrganizationsProtocol,
  K
>

export function organizationsTools(needs: OrganizationsNeeds): OrganizationsTools {
  let id: string | undefined
  return {
    ...needs,
    controlPlaneId: async (context) =>
      (id ??= (await needs.tenants.ensureControlPlane({}, context)).tenant.id),
  }
}
