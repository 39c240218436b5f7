/** Dependencies of the commerce actor. */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import type { Database } from '../../../storage/platform/sql.js'
import type { PaymentProviders } from './payment-provider.js'

export type CommerceNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly providers: PaymentProviders
}
