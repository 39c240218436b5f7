/** A payment on the page of the card provider. */
import {
  type CardPaymentRow,
  markCardPaymentPaid,
} from '../../../../storage/commerce/card-payments.js'
import type { ChargeOrder, OrderName, TakeAnswer } from '../payment-provider.js'
import {
  type Calling,
  getCheckout,
  getPayment,
  keep,
  post,
  refuseUnnamed,
  send,
  waiting,
} from './calls.js'
import { idIn, type Members, membersOf } from './client.js'
import { checkoutState, isPageOf, mandateOf } from './objects.js'

const NAME_CHARS_MAX = 250
const EXPIRED = 'checkout_expired'

/** @returns undefined when the page must not be used. */
export async function openPage(
  calling: Calling,
  order: ChargeOrder & { readonly by: { readonly tag: 'buyer' } },
  row: CardPaymentRow,
  amount: number,
): Promise<TakeAnswer | undefined> {
  const { by, chargeId, tenantId, currency } = order
  const { productName, merchantName, url, customerEmail } = by.page
  const metadata = { svc_charge_id: chargeId, svc_tenant_id: tenantId }
  const params = {
    mode: 'payment',
    payment_method_types: ['card'],
    client_reference_id: chargeId,
    metadata,
    line_items: [
      {
        quantity: 1,
        price_data: {
          currency: currency.toLowerCase(),
          unit_amount: amount,
          product_data: { name: productName.slice(0, NAME_CHARS_MAX) },
        },
      },
    ],
    payment_intent_data: {
      metadata,
      description: merchantName.slice(0, NAME_CHARS_MAX),
      ...(by.again ? { setup_future_usage: 'off_session' } : {}),
    },
    ...(by.again ? { customer_creation: 'always' } : {}),
    customer_email: customerEmail,
    success_url: url,
    cancel_url: url,
  }
  const answer = await send(calling, row, '/v1/checkout/sessions', params, 'page')
  if (answer.tag === 'refused') return refuseUnnamed(calling, order, answer.code)
  const id = idIn(answer.object['id'])
  if (id === undefined) throw new Error('the card provider created a page without an id')
  if ((await keep(calling, row, { checkoutId: id, paymentId: null })) !== undefined)
    return judgePage(calling, order, answer.object, 'wait')
  // Another page is stored already, or the page is no longer needed. No buyer was redirected to
  // this one.
  await post(calling, order, `/v1/checkout/sessions/${id}/expire`)
  return undefined
}

export async function judgePage(
  calling: Calling,
  order: OrderName,
  page: Members,
  then: 'confirm' | 'wait' | 'cancel',
): Promise<TakeAnswer> {
  const state = checkoutState(page, order)
  switch (state.tag) {
    case 'paid': {
      const { tenantId, chargeId } = order
      const { paymentId } = state
      const payment =
        membersOf(page['payment_intent']) ?? (await getPayment(calling, order, paymentId))
      await calling.database.tenant(tenantId, (tx) =>
        markCardPaymentPaid(tx, tenantId, chargeId, paymentId),
      )
      return { tag: 'taken', reference: paymentId, mandate: mandateOf(payment), disputed: null }
    }
    case 'expired':
      return { tag: 'refused', code: EXPIRED }
    case 'processing':
      return waiting(calling, order, null)
    case 'open':
      if (then === 'cancel') return expirePage(calling, order, state.id)
      if (!isPageOf(state.url, calling.checkoutHosts, calling.plainHttp))
        throw new Error('the card provider returned a page on a host that is not allowed')
      return waiting(calling, order, state.url)
  }
}

async function expirePage(calling: Calling, order: OrderName, id: string): Promise<TakeAnswer> {
  const answer = await post(calling, order, `/v1/checkout/sessions/${id}/expire`)
  // The provider refuses when the buyer has just paid.
  const page = answer.tag === 'ok' ? answer.object : await getCheckout(calling, order, id)
  if (checkoutState(page, order).tag === 'open')
    throw new Error('the card provider did not expire a page')
  return judgePage(calling, order, page, 'wait')
}
