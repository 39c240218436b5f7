/**
 * Interprets the objects of the card provider. Pure. Throws for an object that does not belong to
 * the order.
 */
import { ownAmount, providerAmount } from './amounts.js'
import { idIn, idOf, type Members, membersOf } from './client.js'
import { httpsUrl, PAGE } from '../../../domain/entities/https-url.js'
import { isUuid } from '../../../domain/ids.js'
import type { DoneAnswer, OrderName, ProviderDispute, ProviderRefund } from '../payment-provider.js'

const CODE = /^[a-z0-9_]{1,64}$/
const AUTHENTICATION = 'authentication_required'
const URL_CHARS_MAX = 8192

type CheckoutState =
  | { readonly tag: 'open'; readonly id: string; readonly url: string }
  | { readonly tag: 'paid'; readonly paymentId: string }
  /** Checkout is complete but the money has not arrived. */
  | { readonly tag: 'processing' }
  | { readonly tag: 'expired' }

/** @throws when the page belongs to another charge or amount. */
export function checkoutState(page: Members, order: OrderName): CheckoutState {
  demandFits(page, order, page['amount_total'])
  const id = idOf(page['id'])
  const { status, payment_status: paid, url } = page
  if (status === 'expired') return { tag: 'expired' }
  if (status === 'complete') {
    if (paid !== 'paid') return { tag: 'processing' }
    const paymentId = idIn(page['payment_intent'])
    if (paymentId === undefined) throw new Error('a paid page has no payment')
    return { tag: 'paid', paymentId }
  }
  if (status !== 'open' || id === undefined || typeof url !== 'string') {
    throw new Error('the card provider returned a page in an unknown state')
  }
  return { tag: 'open', id, url }
}

type PaymentState =
  | { readonly tag: 'unconfirmed'; readonly id: string }
  | { readonly tag: 'processing'; readonly id: string }
  | { readonly tag: 'succeeded'; readonly id: string }
  /** The card was declined, or its holder has to authenticate. */
  | { readonly tag: 'declined'; readonly id: string; readonly code: string }
  | { readonly tag: 'canceled'; readonly id: string; readonly code: string | null }

/** @throws when the payment belongs to another charge or amount, or its state is unknown. */
export function paymentState(payment: Members, order: OrderName): PaymentState {
  demandFits(payment, order, payment['amount'])
  const id = idOf(payment['id'])
  if (id === undefined) throw new Error('the card provider returned a payment without an id')
  const error = membersOf(payment['last_payment_error'])
  const code = codeIn(error?.['decline_code']) ?? codeIn(error?.['code'])
  switch (payment['status']) {
    case 'requires_confirmation':
      return { tag: 'unconfirmed', id }
    case 'processing':
      return { tag: 'processing', id }
    case 'succeeded':
      return { tag: 'succeeded', id }
    case 'requires_action':
      return { tag: 'declined', id, code: AUTHENTICATION }
    case 'requires_payment_method':
      return { tag: 'declined', id, code: code ?? 'card_declined' }
    case 'canceled':
      return { tag: 'canceled', id, code: code ?? null }
    default:
      throw new Error('the card provider returned a payment in an unknown state')
  }
}

function demandFits(object: Members, order: OrderName, amount: unknown): void {
  const { svc_charge_id: chargeId, svc_tenant_id: tenantId } = membersOf(object['metadata']) ?? {}
  const { currency } = object
  const matches =
    chargeId === order.chargeId &&
    tenantId === order.tenantId &&
    amount === providerAmount(order.amountMinor, order.currency) &&
    typeof currency === 'string' &&
    currency.toUpperCase() === order.currency
  if (!matches) throw new Error('the card provider returned another payment')
}

/**
 * The saved payment method of a payment in the form of `subscriptions.mandate`.
 * @returns null when no method was to be saved. A part that the provider omitted stays empty, so
 *   that the next renewal is refused.
 */
export function mandateOf(payment: Members): string | null {
  if (payment['setup_future_usage'] !== 'off_session') return null
  return `${idIn(payment['customer']) ?? ''}:${idIn(payment['payment_method']) ?? ''}`
}

export function readMandate(
  mandate: string,
): { readonly customerId: string; readonly methodId: string } | undefined {
  const [customer, method, ...rest] = mandate.split(':')
  const [customerId, methodId] = [idOf(customer), idOf(method)]
  if (customerId === undefined || methodId === undefined || rest.length > 0) return undefined
  return { customerId, methodId }
}

/** @throws when the state is unknown. */
export function refundAnswer(refund: Members): DoneAnswer {
  switch (refund['status']) {
    case 'succeeded':
      return { tag: 'done' }
    case 'pending':
    case 'requires_action':
      return { tag: 'pending' }
    case 'failed':
    case 'canceled':
      return { tag: 'refused', code: codeIn(refund['failure_reason']) ?? 'refund_failed' }
    default:
      throw new Error('the card provider returned a refund in an unknown state')
  }
}

/** @throws when the object is not a refund of a payment. */
export function refundOf(refund: Members): ProviderRefund {
  const paymentId = idIn(refund['payment_intent'])
  const { amount, currency } = refund
  const code = typeof currency === 'string' ? currency.toUpperCase() : ''
  const amountMinor = typeof amount === 'number' ? ownAmount(amount, code) : undefined
  if (paymentId === undefined || amountMinor === undefined) {
    throw new Error('the card provider returned an invalid refund')
  }
  const named = membersOf(refund['metadata'])?.['svc_refund_id']
  const refundId = typeof named === 'string' && isUuid(named) ? named : null
  return { paymentId, refundId, amountMinor, currency: code, answer: refundAnswer(refund) }
}

/**
 * The final states of a dispute. `warning_*` is an inquiry: the bank takes no money back while it
 * lasts.
 */
const DISPUTE_OVER: Readonly<Record<string, 'won' | 'lost'>> = {
  won: 'won',
  warning_closed: 'won',
  prevented: 'won',
  charge_refunded: 'won',
  lost: 'lost',
}

/** @throws when the object is not a dispute over a payment. */
export function disputeOf(dispute: Members): ProviderDispute {
  const paymentId = idIn(dispute['payment_intent'])
  const { amount, currency, status, reason } = dispute
  if (paymentId === undefined || typeof currency !== 'string' || typeof status !== 'string') {
    throw new Error('the card provider returned an invalid dispute')
  }
  const code = currency.toUpperCase()
  return {
    paymentId,
    amountMinor: (typeof amount === 'number' ? ownAmount(amount, code) : undefined) ?? null,
    currency: code,
    reason: codeIn(reason) ?? 'general',
    status: Object.hasOwn(DISPUTE_OVER, status) ? DISPUTE_OVER[status]! : 'open',
  }
}

function codeIn(value: unknown): string | undefined {
  return typeof value === 'string' && CODE.test(value) ? value : undefined
}

/** True if a buyer may be redirected to the URL: an https page on an allowed host. */
export function isPageOf(url: string, hosts: readonly string[], plainHttp: boolean): boolean {
  const http = plainHttp ? 'of loopback hosts' : undefined
  const page = httpsUrl(url, { ...PAGE, max: URL_CHARS_MAX, http })
  if (page === null) return false
  const { host, port } = page
  // A host without a port means port 443.
  const named = port === '' ? `${host}:443` : host
  return hosts.some((allowed) => allowed.toLowerCase() === host || allowed.toLowerCase() === named)
}
