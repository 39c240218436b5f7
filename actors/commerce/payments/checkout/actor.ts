/**
 * Buyer-facing operations: checkouts, the payment page and the fulfillment lookup
 * (docs/reference/commerce.md).
 */
import { defineActor } from '../../../../runtime/kernel/actor.js'
import { receiveCardEvent } from './card-event.js'
import { getFulfillment } from './fulfillment.js'
import type { CheckoutNeeds } from './needs.js'
import {
  checkoutPaymentLink,
  createCheckoutSession,
  createSubscriptionCheckoutSession,
} from './open.js'
import { pay } from './pay.js'
import { type CheckoutProtocol, checkout } from './protocol.js'
import { showPayment } from './show-payment.js'

export const checkoutActor = defineActor<CheckoutProtocol, CheckoutNeeds>({
  address: checkout,
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 128 },
  supervision: { onFailure: 'resume' },
  handlers: {
    createCheckoutSession,
    createSubscriptionCheckoutSession,
    checkoutPaymentLink,
    showPayment,
    pay,
    getFulfillment,
    receiveCardEvent,
  },
})
