/**
 * Merchant operations: catalog, charges, refunds and subscriptions. `charges.ts` moves the money.
 */
import { defineActor } from '../../../runtime/kernel/actor.js'
import {
  changePaymentLink,
  changePrice,
  changeProduct,
  createPaymentLink,
  createPrice,
  createProduct,
} from './catalog.js'
import type { CommerceNeeds } from './needs.js'
import { type CommerceProtocol, commerce } from './protocol.js'
import {
  getCharge,
  getPaymentLink,
  getPrice,
  getProduct,
  getSubscription,
  listCharges,
  listPaymentLinks,
  listPrices,
  listProducts,
  listRefunds,
  listSubscriptions,
} from './read.js'
import { refundCharge } from './refund-charge.js'
import { cancelSubscription, simulateRenewal } from './subscriptions.js'

export const commerceActor = defineActor<CommerceProtocol, CommerceNeeds>({
  address: commerce,
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 128 },
  lane: {
    refundCharge: ({ chargeId }) => chargeId,
    cancelSubscription: ({ id }) => id,
    simulateRenewal: ({ id }) => id,
  },
  supervision: { onFailure: 'resume' },
  handlers: {
    createProduct,
    listProducts,
    getProduct,
    changeProduct,
    createPrice,
    listPrices,
    getPrice,
    changePrice,
    createPaymentLink,
    listPaymentLinks,
    getPaymentLink,
    changePaymentLink,
    listCharges,
    getCharge,
    refundCharge,
    listRefunds,
    listSubscriptions,
    getSubscription,
    cancelSubscription,
    simulateRenewal,
  },
})
