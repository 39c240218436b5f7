/** Dependencies of the commerce actor. */
import type { PaymentProviders } from './payment-provider.js'
import type { WriteNeeds } from '../../platform/write-needs.js'

export type CommerceNeeds = WriteNeeds & {
  readonly providers: PaymentProviders
}
