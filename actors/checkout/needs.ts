/** What a checkout is given. */
import type { Sealer } from '../../storage/sealer.js'
import type { Database } from '../../storage/sql.js'
import type { DeskNeeds } from '../commerce/desk.js'

export type CheckoutNeeds = DeskNeeds & {
  readonly database: Database
  readonly sealer: Sealer
  readonly settings: {
    readonly checkout_ttl_secs: number
    readonly redirect_hosts: readonly string[]
  }
}
