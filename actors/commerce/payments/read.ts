/** Lists and reads what a merchant sells and has sold. */
import type { Handler } from '../../../runtime/kernel/actor.js'
import { chargeRows, findCharge } from '../../../storage/commerce/charges.js'
import { paymentLinks, prices, products } from '../../../storage/commerce/products.js'
import { refundsOfCharge } from '../../../storage/commerce/refunds.js'
import { subscriptionRows } from '../../../storage/commerce/subscriptions.js'
import { isUuid } from '../../domain/ids.js'
import type { CommerceNeeds } from './needs.js'
import type { CommerceProtocol } from './protocol.js'
import { lists, reads } from './reading.js'
import { chargeOf, linkOf, priceOf, productOf, refundOf, subscriptionOf } from './records.js'
import { inTenant } from '../../platform/in-tenant.js'

const UNKNOWN = { tag: 'unknown' } as const

export const listProducts = lists(products, productOf)
export const getProduct = reads(products, productOf)
export const listPrices = lists(prices, priceOf)
export const getPrice = reads(prices, priceOf)
export const listPaymentLinks = lists(paymentLinks, linkOf)
export const getPaymentLink = reads(paymentLinks, linkOf)
export const listCharges = lists(chargeRows, chargeOf)
export const getCharge = reads(chargeRows, chargeOf)
export const listSubscriptions = lists(subscriptionRows, subscriptionOf)
export const getSubscription = reads(subscriptionRows, subscriptionOf)

export const listRefunds: Handler<CommerceNeeds, CommerceProtocol, 'listRefunds'> = async (
  { database },
  { tenantId, id },
  context,
) => {
  if (!isUuid(id)) return UNKNOWN
  return inTenant(database, tenantId, context, async (tx) => {
    if ((await findCharge(tx, tenantId, id)) === undefined) return UNKNOWN
    const refunds = await refundsOfCharge(tx, tenantId, id)
    return { tag: 'refunds', refunds: refunds.map(refundOf) } as const
  })
}
