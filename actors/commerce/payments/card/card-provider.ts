/**
 * The card payment provider: an API compatible with Stripe's. Buyers pay on the provider's own
 * page, so card numbers never reach this service. Renewals charge the payment method that the
 * provider saved.
 *
 * No step that can move money runs before the provider's payment id is stored. A page is created,
 * its id is stored, then the buyer is redirected to it. A payment is created unconfirmed, its id is
 * stored, then it is confirmed. After a crash the stored id is looked up. When the response to a
 * creation is lost, the creation is repeated under the same idempotency key. If the provider
 * created a second object, that object can never be paid.
 */
import {
  abandonCardPayment,
  beginCardPayment,
  type CardPaymentRow,
  claimLookUp,
  findCardPayment,
} from '../../../../storage/commerce/card-payments.js'
import type {
  ChargeOrder,
  OrderName,
  PaymentProvider,
  RefundOrder,
  TakeAnswer,
} from '../payment-provider.js'
import { providerAmount } from './amounts.js'
import {
  type Calling,
  type CardProviderNeeds,
  find,
  getCheckout,
  getPayment,
  refuseUnnamed,
  waiting,
} from './calls.js'
import { disputeOf, refundAnswer, refundOf } from './objects.js'
import { judgePage, openPage } from './page.js'
import { ABANDONED, judgePayment, openPayment } from './payment.js'
import { cardRefunds } from './refunds.js'
import { readWebhook } from './webhooks.js'
import { inTenant } from '../../../platform/in-tenant.js'

export const CARD_PROVIDER = 'card'

/** Minimum time between two look-ups for a buyer who waits at our page. */
const LOOK_UP_PAUSE_MS = 5_000
const NOT_CHARGEABLE = 'amount_not_supported'
const NO_PAYOUTS = 'payouts_not_supported'

/** The answer for a payment that has an id at the provider. Undefined without one. */
async function named(
  calling: Calling,
  order: OrderName,
  row: CardPaymentRow,
  then: 'confirm' | 'wait' | 'cancel',
): Promise<TakeAnswer | undefined> {
  const { checkoutId, paymentId } = row
  if (row.abandoned) return { tag: 'refused', code: ABANDONED }
  if (checkoutId !== null)
    return judgePage(calling, order, await getCheckout(calling, order, checkoutId), then)
  if (paymentId === null) return undefined
  const payment = await getPayment(calling, order, paymentId)
  return judgePayment(calling, order, row, payment, then)
}

async function take(calling: Calling, order: ChargeOrder): Promise<TakeAnswer> {
  const { database, clock } = calling
  const { by, tenantId, chargeId, amountMinor, currency } = order
  const row = await inTenant(database, tenantId, calling, (tx) =>
    beginCardPayment(tx, tenantId, chargeId, clock.now()),
  )
  const known = await named(calling, order, row, 'confirm')
  if (known !== undefined) return known
  const amount = providerAmount(amountMinor, currency)
  if (amount === undefined) return refuseUnnamed(calling, order, NOT_CHARGEABLE)
  const opened =
    by.tag === 'buyer'
      ? await openPage(calling, { ...order, by }, row, amount)
      : await openPayment(calling, { ...order, by }, row, amount)
  return opened ?? conclude(calling, { ...order, abandoned: false })
}

async function conclude(
  calling: Calling,
  order: OrderName & { readonly abandoned: boolean },
): Promise<TakeAnswer> {
  const { database, clock } = calling
  const { tenantId, chargeId, abandoned } = order
  const row = await inTenant(database, tenantId, calling, async (tx) => {
    // No payment id is stored, so no payment can be paid.
    const gone = abandoned && (await abandonCardPayment(tx, tenantId, chargeId, clock.now()))
    return gone || beginCardPayment(tx, tenantId, chargeId, clock.now())
  })
  const known = await named(calling, order, row, abandoned ? 'cancel' : 'wait')
  // The buyer may still continue from our page.
  return known ?? waiting(calling, order, null)
}

async function lookUp(calling: Calling, order: OrderName): Promise<TakeAnswer | undefined> {
  const { database, clock } = calling
  const { tenantId, chargeId } = order
  const now = clock.now()
  const notSince = new Date(now.getTime() - LOOK_UP_PAUSE_MS)
  const claimed = await inTenant(database, tenantId, calling, (tx) =>
    claimLookUp(tx, tenantId, chargeId, now, notSince),
  )
  return claimed ? conclude(calling, { ...order, abandoned: false }) : undefined
}

async function refund(calling: Calling, order: RefundOrder) {
  const { database, client, signal } = calling
  const { tenantId, chargeId, amountMinor, currency } = order
  const row = await inTenant(database, tenantId, calling, (tx) =>
    findCardPayment(tx, tenantId, chargeId),
  )
  if (row?.paymentId == null) throw new Error('a paid charge has no payment id at the provider')
  const amount = providerAmount(amountMinor, currency)
  if (amount === undefined) return { tag: 'refused' as const, code: NOT_CHARGEABLE }
  const { paymentId } = row
  const refunds = cardRefunds(client)
  const existing = await refunds.find({ ...order, paymentId }, signal)
  if (existing !== undefined) return refundAnswer(existing)
  return refunds.make({ ...order, paymentId, amount }, signal)
}

export function cardProvider(needs: CardProviderNeeds): PaymentProvider {
  const { client, webhookSecret, checkoutHosts, plainHttp, clearingMs } = needs
  return {
    name: CARD_PROVIDER,
    offers: (environment, { amountMinor, currency }) =>
      environment === 'production' && providerAmount(amountMinor, currency) !== undefined,
    leadsTo: checkoutHosts.flatMap((host) =>
      plainHttp ? [`https://${host}`, `http://${host}`] : [`https://${host}`],
    ),
    clearingMs,
    take: (order, signal) => take({ ...needs, signal }, order),
    conclude: (order, signal) => conclude({ ...needs, signal }, order),
    lookUp: (order, signal) => lookUp({ ...needs, signal }, order),
    refund: (order, signal) => refund({ ...needs, signal }, order),
    payOut: async () => ({ tag: 'refused', code: NO_PAYOUTS }),
    notifications: {
      readWebhook: (body, signature, now) => readWebhook(webhookSecret, body, signature, now),
      async dispute(id, signal) {
        const dispute = await find(client, `/v1/disputes/${id}`, signal)
        return dispute && disputeOf(dispute)
      },
      async refund(id, signal) {
        const found = await find(client, `/v1/refunds/${id}`, signal)
        return found && refundOf(found)
      },
    },
  }
}
