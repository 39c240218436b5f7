/** Buyers: checkouts, the payment page, and what merchants look up afterwards. decisions.md 10. */
import { defineActor } from '../../runtime/kernel/actor.js'
import type { Sealer } from '../../storage/sealer.js'
import type { Database } from '../../storage/sql.js'
import type { DeskNeeds } from '../commerce/desk.js'
import { fulfillments } from './fulfillment.js'
import { checkouts } from './open.js'
import { payments } from './pay.js'
import { type CheckoutProtocol, checkout } from './protocol.js'

export type CheckoutNeeds = DeskNeeds & {
  readonly database: Database
  readonly sealer: Sealer
  readonly settings: {
    readonly checkout_ttl_secs: number
    readonly redirect_hosts: readonly string[]
  }
}

const anyOrder = () => undefined

export const checkoutActor = defineActor<CheckoutProtocol, CheckoutNeeds>({
  address: checkout,
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 128 },
  lane: {
    checkout: anyOrder,
    subscribe: anyOrder,
    checkoutLink: anyOrder,
    show: anyOrder,
    pay: anyOrder,
    fulfillment: anyOrder,
  },
  supervision: { onFailure: 'resume' },
  create: (needs) => ({ ...checkouts(needs), ...payments(needs), ...fulfillments(needs) }),
})
