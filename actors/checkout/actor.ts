/** Buyers: checkouts, the payment page, and what merchants look up afterwards. decisions.md 10. */
import { defineActor } from '../../runtime/kernel/actor.js'
import type { Clock } from '../../runtime/kernel/clock.js'
import type { Random } from '../../runtime/kernel/random.js'
import type { Sealer } from '../../storage/sealer.js'
import type { Database } from '../../storage/sql.js'
import type { Rails } from '../commerce/rail.js'
import { fulfillments } from './fulfillment.js'
import { checkouts } from './open.js'
import { payments } from './pay.js'
import { type CheckoutProtocol, checkout } from './protocol.js'

export type CheckoutNeeds = {
  readonly database: Database
  readonly sealer: Sealer
  readonly clock: Clock
  readonly random: Random
  readonly rails: Rails
  /** Counts payments by what became of them. */
  readonly paid: (rail: string, outcome: 'succeeded' | 'failed') => void
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
