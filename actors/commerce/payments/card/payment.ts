/** A payment by the saved method of a buyer: a renewal. */
import type { CardPaymentRow } from '../../../../storage/commerce/card-payments.js'
import type { ChargeOrder, OrderName, TakeAnswer } from '../payment-provider.js'
import { type Calling, getPayment, keep, post, refuseUnnamed, send } from './calls.js'
import { idIn, type Members } from './client.js'
import { paymentState, readMandate } from './objects.js'

const NO_MANDATE = 'no_payment_method'
export const ABANDONED = 'abandoned'

/** Creates the payment of a renewal without confirming it. @returns undefined when it must not be used. */
export async function openPayment(
  calling: Calling,
  order: ChargeOrder & { readonly by: { readonly tag: 'mandate' } },
  row: CardPaymentRow,
  amount: number,
): Promise<TakeAnswer | undefined> {
  const { by, chargeId, tenantId, currency } = order
  const mandate = readMandate(by.mandate)
  if (mandate === undefined) return refuseUnnamed(calling, order, NO_MANDATE)
  const params = {
    amount,
    currency: currency.toLowerCase(),
    customer: mandate.customerId,
    payment_method: mandate.methodId,
    payment_method_types: ['card'],
    metadata: { svc_charge_id: chargeId, svc_tenant_id: tenantId },
  }
  const answer = await send(calling, row, '/v1/payment_intents', params, 'payment')
  if (answer.tag === 'refused') return refuseUnnamed(calling, order, answer.code)
  const id = idIn(answer.object['id'])
  if (id === undefined) throw new Error('the card provider created a payment without an id')
  const kept = await keep(calling, row, { checkoutId: null, paymentId: id })
  if (kept !== undefined) return judgePayment(calling, order, kept, answer.object, 'confirm')
  await post(calling, order, `/v1/payment_intents/${id}/cancel`)
  return undefined
}

/** @param then handles a payment that is not confirmed yet. */
export async function judgePayment(
  calling: Calling,
  order: OrderName,
  row: CardPaymentRow,
  payment: Members,
  then: 'confirm' | 'wait' | 'cancel',
): Promise<TakeAnswer> {
  const state = paymentState(payment, order)
  switch (state.tag) {
    case 'succeeded':
      return { tag: 'taken', reference: state.id, mandate: null, disputed: null }
    case 'canceled':
      return { tag: 'refused', code: state.code ?? ABANDONED }
    case 'processing':
      return { tag: 'pending', sendTo: null, askAgainAt: null }
    case 'declined':
      return cancelPayment(calling, order, row, state.id, state.code)
    case 'unconfirmed':
      if (then === 'wait') return { tag: 'pending', sendTo: null, askAgainAt: null }
      if (then === 'cancel') return cancelPayment(calling, order, row, state.id, ABANDONED)
      return confirmPayment(calling, order, row, state.id)
  }
}

async function confirmPayment(
  calling: Calling,
  order: OrderName,
  row: CardPaymentRow,
  id: string,
): Promise<TakeAnswer> {
  const path = `/v1/payment_intents/${id}/confirm`
  const answer = await send(calling, row, path, { off_session: true }, 'confirm')
  if (answer.tag === 'ok') {
    if (paymentState(answer.object, order).tag === 'unconfirmed')
      throw new Error('the card provider did not confirm a payment')
    return judgePayment(calling, order, row, answer.object, 'wait')
  }
  const now = await getPayment(calling, order, id)
  // The provider refused without trying the card, for example because the payment method was
  // removed.
  return paymentState(now, order).tag === 'unconfirmed'
    ? cancelPayment(calling, order, row, id, answer.code)
    : judgePayment(calling, order, row, now, 'wait')
}

/** Cancels a payment permanently unless it has succeeded. */
async function cancelPayment(
  calling: Calling,
  order: OrderName,
  row: CardPaymentRow,
  id: string,
  code: string,
): Promise<TakeAnswer> {
  const path = `/v1/payment_intents/${id}/cancel`
  const answer = await post(calling, order, path, { cancellation_reason: 'abandoned' })
  const now = answer.tag === 'ok' ? answer.object : await getPayment(calling, order, id)
  const state = paymentState(now, order)
  if (state.tag === 'declined' || state.tag === 'unconfirmed')
    throw new Error('the card provider did not cancel a payment')
  return state.tag === 'canceled'
    ? { tag: 'refused', code: state.code ?? code }
    : judgePayment(calling, order, row, now, 'wait')
}
