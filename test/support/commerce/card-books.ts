/** The books of a card provider, as in its dashboard: pages, payments, refunds, disputes and the events about them. */
import { randomUUID } from 'node:crypto'
import type { Json } from '../api.js'

/** Outcome of a charge to a saved payment method. */
export type CardOutcome = 'succeed' | 'decline' | 'authenticate' | 'process'
export type ProviderEvent = { readonly id: string; readonly type: string; readonly body: string }
export type Row = Record<string, unknown> & { readonly id: string }

const idOf = (prefix: string) => `${prefix}_${randomUUID().replaceAll('-', '')}`

export class CardBooks {
  readonly url: string
  /** Every event in order, as the provider would send it. */
  readonly events: ProviderEvent[] = []
  readonly pages = new Map<string, Row>()
  readonly payments = new Map<string, Row>()
  readonly refunds = new Map<string, Row>()
  readonly disputes = new Map<string, Row>()
  /** Outcome of charges to saved payment methods. */
  card: CardOutcome = 'succeed'
  /** State of new refunds. */
  refundState: 'succeeded' | 'pending' | 'failed' = 'succeeded'
  /** Host of page URLs, instead of the provider's own. */
  pageOrigin: string | null = null

  constructor(url: string) {
    this.url = url
  }

  pageOf(chargeId: unknown): Row {
    const page = [...this.pages.values()].find((one) => one['client_reference_id'] === chargeId)
    if (page === undefined) throw new Error('the provider has no page of this charge')
    return page
  }

  paymentsOf(chargeId: unknown): Row[] {
    return [...this.payments.values()].filter(
      ({ metadata }) => (metadata as Json)['svc_charge_id'] === chargeId,
    )
  }

  newPage(fields: Json, price: Json, amount: number): Row {
    const id = idOf('cs')
    const page: Row = {
      id,
      object: 'checkout.session',
      url: `${this.pageOrigin ?? this.url}/c/pay/${id}#fidk`,
      status: 'open',
      payment_status: 'unpaid',
      payment_intent: null,
      amount_total: amount,
      currency: price['currency'],
      metadata: fields['metadata'],
      client_reference_id: fields['client_reference_id'],
      asked: fields,
    }
    this.pages.set(id, page)
    return page
  }

  newPayment(fields: Json, status: string): Row {
    const payment: Row = {
      id: idOf('pi'),
      object: 'payment_intent',
      amount: Number(fields['amount']),
      currency: fields['currency'],
      customer: fields['customer'] ?? null,
      payment_method: fields['payment_method'] ?? null,
      setup_future_usage: fields['setup_future_usage'] ?? null,
      metadata: fields['metadata'] ?? {},
      last_payment_error: null,
      status,
    }
    this.payments.set(payment.id, payment)
    return payment
  }

  /** Sets the status of a payment, which is an event. */
  setPayment(payment: Row, status: string, type: string): void {
    payment['status'] = status
    this.happened(`payment_intent.${type}`, payment)
  }

  newRefund(payment: Row, amount: number, metadata: unknown): Row {
    const row: Row = {
      id: idOf('re'),
      object: 'refund',
      amount,
      currency: payment['currency'],
      payment_intent: payment.id,
      metadata,
      failure_reason: this.refundState === 'failed' ? 'lost_or_stolen_card' : null,
      status: this.refundState,
    }
    this.refunds.set(row.id, row)
    this.happened('refund.created', row)
    return row
  }

  /** The buyer pays on the page, like a browser that was redirected there. */
  buyerPays(address: string | null): void {
    const page = this.pages.get(/\/c\/pay\/(\w+)/.exec(address ?? '')?.[1] ?? '')
    if (page?.['status'] !== 'open') throw new Error(`there is no page to pay at ${address}`)
    const asked = page['asked'] as Json
    const fields = {
      ...(asked['payment_intent_data'] as Json),
      amount: page['amount_total'],
      currency: page['currency'],
      customer: asked['customer_creation'] === 'always' ? idOf('cus') : undefined,
      payment_method: idOf('pm'),
    }
    const payment = this.newPayment(fields, 'succeeded')
    const paid = { status: 'complete', payment_status: 'paid', payment_intent: payment.id }
    Object.assign(page, paid)
    this.happened('payment_intent.succeeded', payment)
    this.happened('checkout.session.completed', page)
  }

  expirePage(id: string): void {
    const page = this.pages.get(id)!
    Object.assign(page, { status: 'expired', url: null })
    this.happened('checkout.session.expired', page)
  }

  settlePayment(id: string, status: 'succeeded' | 'requires_payment_method'): void {
    const type = status === 'succeeded' ? 'succeeded' : 'payment_failed'
    this.setPayment(this.payments.get(id)!, status, type)
  }

  settleRefund(id: string, status: 'succeeded' | 'failed'): void {
    const row = this.refunds.get(id)!
    row['status'] = status
    if (status === 'failed') row['failure_reason'] = 'expired_or_canceled_card'
    this.happened(status === 'failed' ? 'refund.failed' : 'refund.updated', row)
  }

  /** A refund made at the provider's dashboard. */
  refundByHand(paymentId: unknown, amount: number): void {
    const payment = this.payments.get(String(paymentId))
    if (payment === undefined || amount > this.restOf(payment)) throw new Error('nothing to refund')
    this.newRefund(payment, amount, {})
  }

  /** What refunds have left of a payment. */
  restOf(payment: Row): number {
    const refunded = [...this.refunds.values()].filter(
      (one) => one['payment_intent'] === payment.id && one['status'] !== 'failed',
    )
    return Number(payment['amount']) - sumOf(refunded)
  }

  dispute(paymentId: unknown, amount?: number): Row {
    const payment = this.payments.get(String(paymentId))!
    const row: Row = {
      id: idOf('du'),
      object: 'dispute',
      amount: amount ?? payment['amount'],
      currency: payment['currency'],
      payment_intent: payment.id,
      reason: 'fraudulent',
      status: 'needs_response',
    }
    this.disputes.set(row.id, row)
    this.happened('charge.dispute.created', row)
    return row
  }

  closeDispute(id: string, status: 'won' | 'lost'): void {
    const row = this.disputes.get(id)!
    row['status'] = status
    this.happened('charge.dispute.closed', row)
  }

  /** Balance of the account: payments less refunds and lost disputes, in the provider's units. */
  held(): number {
    const sum = (rows: Map<string, Row>, counted: string) =>
      sumOf([...rows.values()].filter(({ status }) => status === counted))
    return (
      sum(this.payments, 'succeeded') - sum(this.refunds, 'succeeded') - sum(this.disputes, 'lost')
    )
  }

  private happened(type: string, object: Row): void {
    const id = idOf('evt')
    const created = Math.floor(Date.now() / 1000)
    const body = JSON.stringify({ id, object: 'event', type, created, data: { object } })
    this.events.push({ id, type, body })
  }
}

function sumOf(rows: readonly Row[]): number {
  return rows.reduce((total, row) => total + Number(row['amount']), 0)
}
