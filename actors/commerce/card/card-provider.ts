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
import type { Clock } from '../../../runtime/kernel/clock.js'
import {
  abandonCardPayment,
  beginCardPayment,
  type CardPaymentRow,
  claimLookUp,
  findCardPayment,
  nameCardPayment,
  noteCheckoutPayment,
  noteFailedCall,
  noteLookUp,
} from '../../../storage/commerce/card-payments.js'
import type { Database } from '../../../storage/platform/sql.js'
import { providerAmount } from './amounts.js'
import {
  type CardClient,
  KEY_REUSED,
  idIn,
  type Members,
  membersOf,
  type ProviderAnswer,
  ProviderUnavailable,
} from './client.js'
import {
  checkoutState,
  disputeOf,
  isPageOf,
  mandateOf,
  paymentState,
  readMandate,
  refundAnswer,
  refundOf,
} from './objects.js'
import { readWebhook } from './webhooks.js'
import { type CardRefunds, cardRefunds } from './refunds.js'
import type {
  ChargeOrder,
  OrderName,
  PendingAnswer,
  PaymentProvider,
  TakeAnswer,
} from '../payments/payment-provider.js'

export const CARD_PROVIDER = 'card'

/** Minimum time between two look-ups for a buyer who waits at our page. */
const LOOK_UP_PAUSE_MS = 5_000
/**
 * First delay before a worker looks a payment up. The delay doubles each time. Webhooks usually
 * arrive sooner.
 */
const ASK_AGAIN_MS_FIRST = 60_000
const ASK_AGAIN_MS_MAX = 900_000
const NAME_CHARS_MAX = 250

/** Maximum number of idempotency keys tried in a row. */
const KEYS_MAX = 10

const NOT_CHARGEABLE = 'amount_not_supported'
const NO_MANDATE = 'no_payment_method'
const ABANDONED = 'abandoned'
const EXPIRED = 'checkout_expired'
const NO_PAYOUTS = 'payouts_not_supported'

export type CardProviderNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly client: CardClient
  readonly webhookSecret: string
  /** Hosts of the provider's pages. An entry with a port allows that port only. */
  readonly checkoutHosts: readonly string[]
  /** Allows provider pages over http on loopback, for tests. Refused in production. */
  readonly plainHttp: boolean
  readonly clearingMs: number
}

export function cardProvider(needs: CardProviderNeeds): PaymentProvider {
  const { database, clock, client, webhookSecret, checkoutHosts, plainHttp, clearingMs } = needs
  const refunds: CardRefunds = cardRefunds(client)

  const rowOf = ({ tenantId, chargeId }: OrderName, signal: AbortSignal) =>
    database.tenant(tenantId, (tx) => beginCardPayment(tx, tenantId, chargeId, clock.now()), {
      signal,
    })

  /**
   * Sends a creation or a confirmation. The provider stores a server error under the idempotency
   * key, so the next call uses another key. A key whose first call had other parameters is replaced
   * at once. Neither can take money twice: a creation takes none, and a confirmed payment is never
   * confirmed again.
   */
  async function send(
    row: CardPaymentRow,
    path: string,
    params: Members,
    step: string,
    signal: AbortSignal,
  ): Promise<ProviderAnswer> {
    const idempotencyKey = `svc_${row.chargeId}_${step}_${row.failedCalls}`
    try {
      const { tenantId } = row
      return await client.call({ tenantId, method: 'POST', path, params, idempotencyKey, signal })
    } catch (error) {
      if (!(error instanceof ProviderUnavailable) || !error.isKept) throw error
      await database.tenant(row.tenantId, (tx) => noteFailedCall(tx, row))
      const again = { ...row, failedCalls: row.failedCalls + 1 }
      if (error.fault !== KEY_REUSED || row.failedCalls >= KEYS_MAX) throw error
      return send(again, path, params, step, signal)
    }
  }

  async function get(
    { tenantId }: OrderName,
    path: string,
    params: Members,
    signal: AbortSignal,
  ): Promise<Members> {
    const answer = await client.call({ tenantId, method: 'GET', path, params, signal })
    if (answer.tag === 'ok') return answer.object
    throw new Error(`the card provider refused a look-up: ${answer.code}`)
  }

  /** @returns undefined when the provider does not know the object. */
  async function find(path: string, signal: AbortSignal): Promise<Members | undefined> {
    const answer = await client.call({ tenantId: '', method: 'GET', path, signal })
    if (answer.tag === 'ok') return answer.object
    if (answer.code === 'resource_missing') return undefined
    throw new Error(`the card provider refused a look-up: ${answer.code}`)
  }

  const getCheckout = (order: OrderName, id: string, signal: AbortSignal) =>
    get(order, `/v1/checkout/sessions/${id}`, { expand: ['payment_intent'] }, signal)
  const getPayment = (order: OrderName, id: string, signal: AbortSignal) =>
    get(order, `/v1/payment_intents/${id}`, {}, signal)

  /** Stores the id of the created object. @returns undefined when the object must not be used. */
  async function keep(
    row: CardPaymentRow,
    named: Pick<CardPaymentRow, 'checkoutId' | 'paymentId'>,
  ): Promise<CardPaymentRow | undefined> {
    const { tenantId, chargeId } = row
    return database.tenant(tenantId, async (tx) => {
      const kept = await nameCardPayment(tx, { tenantId, chargeId, ...named })
      if (kept !== undefined) return kept
      const now = await findCardPayment(tx, tenantId, chargeId)
      // Two concurrent callers received the response to the same creation.
      const same = now?.checkoutId === named.checkoutId && named.checkoutId !== null
      return same || (now?.paymentId === named.paymentId && named.paymentId !== null)
        ? now
        : undefined
    })
  }

  async function openPage(
    order: ChargeOrder & { readonly by: { readonly tag: 'buyer' } },
    row: CardPaymentRow,
    amount: number,
    signal: AbortSignal,
  ): Promise<TakeAnswer> {
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
    const answer = await send(row, '/v1/checkout/sessions', params, 'page', signal)
    if (answer.tag === 'refused') return refuseUnnamed(order, answer.code, signal)
    const id = idIn(answer.object['id'])
    if (id === undefined) throw new Error('the card provider created a page without an id')
    if ((await keep(row, { checkoutId: id, paymentId: null })) !== undefined) {
      return judgePage(order, answer.object, false, signal)
    }
    // Another page is stored already, or the page is no longer needed. No buyer was redirected to
    // this one.
    await client.call({
      tenantId,
      method: 'POST',
      path: `/v1/checkout/sessions/${id}/expire`,
      signal,
    })
    return conclude({ ...order, abandoned: false }, signal)
  }

  /** Fails the charge after the provider refused the creation: no payment exists, and none will. */
  async function refuseUnnamed(
    { tenantId, chargeId }: OrderName,
    code: string,
    signal: AbortSignal,
  ): Promise<TakeAnswer> {
    const abandoned = await database.tenant(
      tenantId,
      (tx) => abandonCardPayment(tx, tenantId, chargeId, clock.now()),
      { signal },
    )
    if (abandoned === undefined) throw new Error('a payment has an id and was refused at once')
    return { tag: 'refused', code }
  }

  async function judgePage(
    order: OrderName,
    page: Members,
    abandoned: boolean,
    signal: AbortSignal,
  ): Promise<TakeAnswer> {
    const state = checkoutState(page, order)
    switch (state.tag) {
      case 'paid': {
        const { tenantId, chargeId } = order
        const { paymentId } = state
        const payment =
          membersOf(page['payment_intent']) ?? (await getPayment(order, paymentId, signal))
        await database.tenant(tenantId, (tx) =>
          noteCheckoutPayment(tx, tenantId, chargeId, paymentId),
        )
        return { tag: 'taken', reference: paymentId, mandate: mandateOf(payment), disputed: null }
      }
      case 'expired':
        return { tag: 'refused', code: EXPIRED }
      case 'processing':
        return waiting(order, null, signal)
      case 'open': {
        if (abandoned) return expirePage(order, state.id, signal)
        if (!isPageOf(state.url, checkoutHosts, plainHttp)) {
          throw new Error('the card provider returned a page on a host that is not allowed')
        }
        return waiting(order, state.url, signal)
      }
    }
  }

  async function expirePage(
    order: OrderName,
    id: string,
    signal: AbortSignal,
  ): Promise<TakeAnswer> {
    const path = `/v1/checkout/sessions/${id}/expire`
    const answer = await client.call({ tenantId: order.tenantId, method: 'POST', path, signal })
    // The provider refuses when the buyer has just paid.
    const page = answer.tag === 'ok' ? answer.object : await getCheckout(order, id, signal)
    if (checkoutState(page, order).tag === 'open') {
      throw new Error('the card provider did not expire a page')
    }
    return judgePage(order, page, false, signal)
  }

  async function waiting(
    { tenantId, chargeId }: OrderName,
    sendTo: string | null,
    signal: AbortSignal,
  ): Promise<PendingAnswer> {
    const row = await database.tenant(
      tenantId,
      async (tx) => {
        await noteLookUp(tx, tenantId, chargeId)
        return findCardPayment(tx, tenantId, chargeId)
      },
      { signal },
    )
    const pauseMs = ASK_AGAIN_MS_FIRST * 2 ** Math.min(row?.lookUps ?? 0, 10)
    const askAgainAt = new Date(clock.now().getTime() + Math.min(pauseMs, ASK_AGAIN_MS_MAX))
    return { tag: 'pending', sendTo, askAgainAt }
  }

  /** Creates the payment of a renewal without confirming it. */
  async function openPayment(
    order: ChargeOrder & { readonly by: { readonly tag: 'mandate' } },
    row: CardPaymentRow,
    amount: number,
    signal: AbortSignal,
  ): Promise<TakeAnswer> {
    const { by, chargeId, tenantId, currency } = order
    const mandate = readMandate(by.mandate)
    if (mandate === undefined) return refuseUnnamed(order, NO_MANDATE, signal)
    const params = {
      amount,
      currency: currency.toLowerCase(),
      customer: mandate.customerId,
      payment_method: mandate.methodId,
      payment_method_types: ['card'],
      metadata: { svc_charge_id: chargeId, svc_tenant_id: tenantId },
    }
    const answer = await send(row, '/v1/payment_intents', params, 'payment', signal)
    if (answer.tag === 'refused') return refuseUnnamed(order, answer.code, signal)
    const id = idIn(answer.object['id'])
    if (id === undefined) throw new Error('the card provider created a payment without an id')
    const kept = await keep(row, { checkoutId: null, paymentId: id })
    if (kept !== undefined) return judgePayment(order, kept, answer.object, 'confirm', signal)
    await client.call({
      tenantId,
      method: 'POST',
      path: `/v1/payment_intents/${id}/cancel`,
      signal,
    })
    return conclude({ ...order, abandoned: false }, signal)
  }

  /** @param then handles a payment that is not confirmed yet. */
  async function judgePayment(
    order: OrderName,
    row: CardPaymentRow,
    payment: Members,
    then: 'confirm' | 'wait' | 'cancel',
    signal: AbortSignal,
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
        return cancelPayment(order, row, state.id, state.code, signal)
      case 'unconfirmed':
        if (then === 'wait') return { tag: 'pending', sendTo: null, askAgainAt: null }
        if (then === 'cancel') return cancelPayment(order, row, state.id, ABANDONED, signal)
        return confirmPayment(order, row, state.id, signal)
    }
  }

  async function confirmPayment(
    order: OrderName,
    row: CardPaymentRow,
    id: string,
    signal: AbortSignal,
  ): Promise<TakeAnswer> {
    const path = `/v1/payment_intents/${id}/confirm`
    const answer = await send(row, path, { off_session: true }, 'confirm', signal)
    if (answer.tag === 'ok') {
      if (paymentState(answer.object, order).tag === 'unconfirmed') {
        throw new Error('the card provider did not confirm a payment')
      }
      return judgePayment(order, row, answer.object, 'wait', signal)
    }
    const now = await getPayment(order, id, signal)
    // The provider refused without trying the card, for example because the payment method was
    // removed.
    return paymentState(now, order).tag === 'unconfirmed'
      ? cancelPayment(order, row, id, answer.code, signal)
      : judgePayment(order, row, now, 'wait', signal)
  }

  /** Cancels a payment permanently unless it has succeeded. */
  async function cancelPayment(
    order: OrderName,
    row: CardPaymentRow,
    id: string,
    code: string,
    signal: AbortSignal,
  ): Promise<TakeAnswer> {
    const path = `/v1/payment_intents/${id}/cancel`
    const params = { cancellation_reason: 'abandoned' }
    const answer = await client.call({
      tenantId: order.tenantId,
      method: 'POST',
      path,
      params,
      signal,
    })
    const now = answer.tag === 'ok' ? answer.object : await getPayment(order, id, signal)
    const state = paymentState(now, order)
    if (state.tag === 'declined' || state.tag === 'unconfirmed') {
      throw new Error('the card provider did not cancel a payment')
    }
    return state.tag === 'canceled'
      ? { tag: 'refused', code: state.code ?? code }
      : judgePayment(order, row, now, 'wait', signal)
  }

  async function take(order: ChargeOrder, signal: AbortSignal): Promise<TakeAnswer> {
    const row = await rowOf(order, signal)
    if (row.abandoned) return { tag: 'refused', code: ABANDONED }
    if (row.checkoutId !== null) {
      return judgePage(order, await getCheckout(order, row.checkoutId, signal), false, signal)
    }
    if (row.paymentId !== null) {
      const payment = await getPayment(order, row.paymentId, signal)
      return judgePayment(order, row, payment, 'confirm', signal)
    }
    const amount = providerAmount(order.amountMinor, order.currency)
    if (amount === undefined) return refuseUnnamed(order, NOT_CHARGEABLE, signal)
    const { by } = order
    return by.tag === 'buyer'
      ? openPage({ ...order, by }, row, amount, signal)
      : openPayment({ ...order, by }, row, amount, signal)
  }

  async function conclude(
    order: OrderName & { readonly abandoned: boolean },
    signal: AbortSignal,
  ): Promise<TakeAnswer> {
    const { tenantId, chargeId, abandoned } = order
    const row = await database.tenant(
      tenantId,
      async (tx) => {
        // No payment id is stored, so no payment can be paid.
        const gone = abandoned && (await abandonCardPayment(tx, tenantId, chargeId, clock.now()))
        return gone || beginCardPayment(tx, tenantId, chargeId, clock.now())
      },
      { signal },
    )
    if (row.abandoned) return { tag: 'refused', code: ABANDONED }
    if (row.checkoutId !== null) {
      return judgePage(order, await getCheckout(order, row.checkoutId, signal), abandoned, signal)
    }
    if (row.paymentId !== null) {
      const payment = await getPayment(order, row.paymentId, signal)
      return judgePayment(order, row, payment, abandoned ? 'cancel' : 'wait', signal)
    }
    // The buyer may still continue from our page.
    return waiting(order, null, signal)
  }

  return {
    name: CARD_PROVIDER,
    offers: (environment, { amountMinor, currency }) =>
      environment === 'production' && providerAmount(amountMinor, currency) !== undefined,
    leadsTo: checkoutHosts.flatMap((host) =>
      plainHttp ? [`https://${host}`, `http://${host}`] : [`https://${host}`],
    ),
    clearingMs,
    take,
    conclude,

    async lookUp(order, signal) {
      const { tenantId, chargeId } = order
      const now = clock.now()
      const notSince = new Date(now.getTime() - LOOK_UP_PAUSE_MS)
      const claimed = await database.tenant(
        tenantId,
        (tx) => claimLookUp(tx, tenantId, chargeId, now, notSince),
        { signal },
      )
      return claimed ? conclude({ ...order, abandoned: false }, signal) : undefined
    },

    async refund(order, signal) {
      const { tenantId, chargeId, amountMinor, currency } = order
      const row = await database.tenant(tenantId, (tx) => findCardPayment(tx, tenantId, chargeId), {
        signal,
      })
      if (row?.paymentId == null) throw new Error('a paid charge has no payment id at the provider')
      const amount = providerAmount(amountMinor, currency)
      if (amount === undefined) return { tag: 'refused', code: NOT_CHARGEABLE }
      const { paymentId } = row
      const existing = await refunds.find({ ...order, paymentId }, signal)
      if (existing !== undefined) return refundAnswer(existing)
      return refunds.make({ ...order, paymentId, amount }, signal)
    },

    payOut: async () => ({ tag: 'refused', code: NO_PAYOUTS }),

    notifications: {
      readWebhook: (body, signature, now) => readWebhook(webhookSecret, body, signature, now),
      async dispute(id, signal) {
        const dispute = await find(`/v1/disputes/${id}`, signal)
        return dispute && disputeOf(dispute)
      },
      async refund(id, signal) {
        const refund = await find(`/v1/refunds/${id}`, signal)
        return refund && refundOf(refund)
      },
    },
  }
}
