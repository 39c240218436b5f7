/** What the handlers of billing get. Plans and organizations belong to no tenant: their transactions cross tenants. */
import type { ActorRef, Handler } from '../../../../runtime/kernel/actor.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import type { Database } from '../../../../storage/platform/sql.js'
import type { OrganizationsProtocol } from '../organizations/protocol.js'
import type { TenantsProtocol } from '../tenants/protocol.js'
import type { BillingProtocol } from './protocol.js'

export type BillingNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly tenants: ActorRef<TenantsProtocol>
  readonly organizations: ActorRef<OrganizationsProtocol>
}

export type Handling<K extends keyof BillingProtocol> = Handler<BillingNeeds, BillingProtocol, K>
