/** What the handlers of organizations get. */
import type { ActorRef, Handler, MessageContext } from '../../../../runtime/kernel/actor.js'
import type { TokensProtocol } from '../../../oauth/tokens/protocol.js'
import type { TenantsProtocol } from '../tenants/protocol.js'
import type { OrganizationsProtocol } from './protocol.js'
import type { OrganizationsSettings } from './settings.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

export type OrganizationsNeeds = WriteNeeds & {
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
