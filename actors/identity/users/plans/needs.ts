/** What the handlers of billing get. Plans and organizations belong to no tenant: their transactions cross tenants. */
import type { ActorRef, Handler } from '../../../../runtime/kernel/actor.js'
import type { OrganizationsProtocol } from '../organizations/protocol.js'
import type { TenantsProtocol } from '../tenants/protocol.js'
import type { BillingProtocol } from './protocol.js'
import type { WriteNeeds } from '../../../platform/write-needs.js'

export type BillingNeeds = WriteNeeds & {
  readonly tenants: ActorRef<TenantsProtocol>
  readonly organizations: ActorRef<OrganizationsProtocol>
}

export type Handling<K extends keyof BillingProtocol> = Handler<BillingNeeds, BillingProtocol, K>
