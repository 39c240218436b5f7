/** The calls of a card provider, and what each does in its books. */
import type { Json } from '../api.js'
import type { CardBooks, Row } from './card-books.js'

export type Answer = { readonly status: number; readonly body: Json }
type Act = (books: CardBooks, fields: Json, id: string) => Answer

/** Method, path after `/v1/`, and what a call does. */
const ROUTES: readonly (readonly [method: string, path: RegExp, act: Act])[] = [
  ['POST', /^checkout\/sessions$/, createPage],
  ['GET', /^checkout\/sessions\/(\w+)$/, readPage],
  ['POST', /^checkout\/sessions\/(\w+)\/expire$/, expirePage],
  ['POST', /^payment_intents$/, createPayment],
  ['GET', /^payment_intents\/(\w+)$/, ({ payments }, _fields, id) => found(payments.get(id))],
  ['POST', /^payment_intents\/(\w+)\/confirm$/, confirmPayment],
  ['POST', /^payment_intents\/(\w+)\/cancel$/, cancelPayment],
  ['POST', /^refunds$/, createRefund],
  ['GET', /^refunds$/, listRefunds],
  ['GET', /^refunds\/(\w+)$/, ({ refunds }, _fields, id) => found(refunds.get(id))],
  ['GET', /^disputes\/(\w+)$/, ({ disputes }, _fields, id) => found(disputes.get(id))],
]

/** Does what a call asks for. */
export function act(books: CardBooks, method: string, path: string, fields: Json): Answer {
  for (const [routeMethod, route, run] of ROUTES) {
    const match = routeMethod === method ? route.exec(path.replace('/v1/', '')) : null
    if (match !== null) return run(books, fields, match[1] ?? '')
  }
  return MISSING
}

export const refused = (status: number, code: string, more: Json = {}): Answer => ({
  status,
  body: { error: { type: status === 402 ? 'card_error' : 'invalid_request_error', code, ...more } },
})

const MISSING = refused(404, 'resource_missing')
const ok = (body: Json): Answer => ({ status: 200, body })
const found = (row: Row | undefined): Answer => (row === undefined ? MISSING : ok(row))
const unexpected = (payment: Row): Answer =>
  refused(400, 'payment_intent_unexpected_state', { payment_intent: payment })

function createPage(books: CardBooks, fields: Json): Answer {
  const [item] = Object.values(fields['line_items'] as Json) as [Json]
  const price = item['price_data'] as Json
  const amount = Number(price['unit_amount']) * Number(item['quantity'])
  return amount >= 50 ? ok(books.newPage(fields, price, amount)) : refused(400, 'amount_too_small')
}

function readPage({ pages, payments }: CardBooks, fields: Json, id: string): Answer {
  const page = pages.get(id)
  const paymentId = page?.['payment_intent']
  if (page === undefined || typeof paymentId !== 'string' || fields['expand'] === undefined) {
    return found(page)
  }
  return ok({ ...page, payment_intent: payments.get(paymentId) })
}

function expirePage(books: CardBooks, fields: Json, id: string): Answer {
  const page = books.pages.get(id)
  if (page === undefined) return MISSING
  if (page['status'] !== 'open') return refused(400, 'page_not_open')
  books.expirePage(id)
  return readPage(books, fields, id)
}

function createPayment(books: CardBooks, fields: Json): Answer {
  return ok(books.newPayment(fields, 'requires_confirmation'))
}

function confirmPayment(books: CardBooks, _fields: Json, id: string): Answer {
  const payment = books.payments.get(id)
  if (payment === undefined) return MISSING
  if (payment['status'] !== 'requires_confirmation') return unexpected(payment)
  switch (books.card) {
    case 'succeed':
      books.setPayment(payment, 'succeeded', 'succeeded')
      return ok(payment)
    case 'process':
      payment['status'] = 'processing'
      return ok(payment)
    case 'authenticate':
      books.setPayment(payment, 'requires_action', 'requires_action')
      return ok(payment)
    case 'decline': {
      const error = { code: 'card_declined', decline_code: 'insufficient_funds' }
      payment['last_payment_error'] = error
      books.setPayment(payment, 'requires_payment_method', 'payment_failed')
      return refused(402, 'card_declined', { ...error, payment_intent: payment })
    }
  }
}

function cancelPayment(books: CardBooks, _fields: Json, id: string): Answer {
  const payment = books.payments.get(id)
  if (payment === undefined) return MISSING
  if (!String(payment['status']).startsWith('requires_')) return unexpected(payment)
  books.setPayment(payment, 'canceled', 'canceled')
  return ok(payment)
}

function createRefund(books: CardBooks, fields: Json): Answer {
  const payment = books.payments.get(String(fields['payment_intent']))
  if (payment?.['status'] !== 'succeeded') return MISSING
  const amount = Number(fields['amount'])
  if (amount > books.restOf(payment)) return refused(400, 'charge_already_refunded')
  return ok(books.newRefund(payment, amount, fields['metadata']))
}

function listRefunds({ refunds }: CardBooks, fields: Json): Answer {
  const of = fields['payment_intent']
  const data = [...refunds.values()].filter((one) => one['payment_intent'] === of)
  const from = data.findIndex((one) => one.id === fields['starting_after']) + 1
  // Short pages, so that more than one is read.
  const has_more = data.length > from + 2
  return ok({ object: 'list', data: data.slice(from, from + 2), has_more })
}
