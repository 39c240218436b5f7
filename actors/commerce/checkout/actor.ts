/**
 * Buyer-facing operations: checkouts, the payment page and the fulfillment lookup
 * (docs/reference/commerce.md).
 */
import { defineActor } from '../../../runtime/kernel/actor.js'
import { fulfillments } from './fulfillment.js'
import { cardEvents } from './card-events.js'
import { checkouts } from './open.js'
import { payments } from './pay.js'
import { type CheckoutProtocol, checkout } from './protocol.js'
import type { CheckoutNeeds } from './needs.js'

export const checkoutActor = defineActor<CheckoutProtocol, CheckoutNeeds>({
  address: checkout,
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 128 },
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const opening = checkouts(needs)
    const { checkout, subscribe, checkoutLink } = opening
    return {
      checkout,
      subscribe,
      checkoutLink,
      ...payments(needs, opening),
      ...fulfillments(needs),
      ...cardEvents(needs),
    }
  },
})
