/**
 * A card provider on loopback with the part of the Stripe API that svc uses: it keeps books of its
 * own, honours idempotency keys (including server errors), signs webhooks, and can be made to fail.
 */
import { createHmac, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Dispatcher, request } from 'undici'
import { serviceAgent } from '../../../runtime/client/connections.js'
import type { Json } from '../api.js'

export const CARD_KEY = 'sk_test_51LoopbackProviderKey'
export const CARD_WEBHOOK_SECRET = 'whsec_loopback_provider_secret'

/** Outcome of a call: `hang_*` never answers, `error_*` answers 500, before or after its effect. */
export type Mishap = 'none' | 'hang_before' | 'hang_after' | 'error_before' | 'error_after'
/** Outcome of a charge to a saved payment method. */
export type CardOutcome = 'succeed' | 'decline' | 'authenticate' | 'process'

export type Called = {
  readonly method: string
  readonly path: string
  readonly fields: Json
  readonly idempotencyKey: string | null
}
export type ProviderEvent = { readonly id: string; readonly type: string; readonly body: string }

type Row = Record<string, unknown> & { readonly id: string }
type Answer = { readonly status: number; readonly body: Json }
type Kept = { readonly fields: string; answer: Answer | null }

export interface CardProvider {
  readonly url: string
  /** Settings that make the service use it. */
  readonly environment: Readonly<Record<string, string>>
  readonly calls: Called[]
  /** Every event in order, as the provider would send it. */
  readonly events: ProviderEvent[]
  readonly pages: Map<string, Row>
  readonly payments: Map<string, Row>
  readonly refunds: Map<string, Row>
  readonly disputes: Map<string, Row>
  /** Chosen for each call. Default none. */
  mishap: (call: Called) => Mishap
  /** Keeps a call waiting. Default: none. */
  wait: (call: Called) => Promise<void>
  /** Outcome of charges to saved payment methods. */
  card: CardOutcome
  /** State of new refunds. */
  refundState: 'succeeded' | 'pending' | 'failed'
  /** Host of page URLs, instead of the provider's own. */
  pageOrigin: string | null
  count(method: string, path: RegExp): number
  /** The page of a charge. */
  pageOf(chargeId: unknown): Row
  paymentsOf(chargeId: unknown): Row[]
  /** The buyer pays on the page, like a browser that was redirected there. */
  buyerPays(address: string | null): void
  expirePage(id: string): void
  settlePayment(id: string, status: 'succeeded' | 'requires_payment_method'): void
  settleRefund(id: string, status: 'succeeded' | 'failed'): void
  /** A refund made at the provider's dashboard. */
  refundByHand(paymentId: unknown, amount: number): void
  dispute(paymentId: unknown, amount?: number): Row
  closeDispute(id: string, status: 'won' | 'lost'): void
  /** Balance of the account: payments less refunds and lost disputes, in the provider's units. */
  held(): number
  /** A day passes: idempotency keys are forgotten. */
  forgetKeys(): void
  /** Delivers a webhook as the provider would. @returns the status of the response. */
  deliver(
    to: { readonly baseUrl: string; readonly ca?: string | undefined },
    event: Pick<ProviderEvent, 'body'>,
    more?: { readonly secret?: string; readonly atMs?: number; readonly signature?: string | null },
  ): Promise<number>
  close(): Promise<void>
}

export async function startCardProvider(): Promise<CardProvider> {
  const calls: Called[] = []
  const events: ProviderEvent[] = []
  const pages = new Map<string, Row>()
  const payments = new Map<string, Row>()
  const refunds = new Map<string, Row>()
  const disputes = new Map<string, Row>()
  const kept = new Map<string, Kept>()
  const idOf = (prefix: string) => `${prefix}_${randomUUID().replaceAll('-', '')}`

  function happened(type: string, object: Row): void {
    const id = idOf('evt')
    const created = Math.floor(Date.now() / 1000)
    const body = JSON.stringify({ id, object: 'event', type, created, data: { object } })
    events.push({ id, type, body })
  }

  const refused = (status: number, code: string, more: Json = {}): Answer => ({
    status,
    body: {
      error: { type: status === 402 ? 'card_error' : 'invalid_request_error', code, ...more },
    },
  })
  const ok = (body: Json): Answer => ({ status: 200, body })
  const missing = refused(404, 'resource_missing')

  function newPayment(fields: Json, status: string): Row {
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
    payments.set(payment.id, payment)
    return payment
  }

  function createPage(fields: Json): Answer {
    const [item] = Object.values(fields['line_items'] as Json) as [Json]
    const price = item['price_data'] as Json
    const amount = Number(price['unit_amount']) * Number(item['quantity'])
    if (!(amount >= 50)) return refused(400, 'amount_too_small')
    const id = idOf('cs')
    const page: Row = {
      id,
      object: 'checkout.session',
      url: `${provider.pageOrigin ?? provider.url}/c/pay/${id}#fidk`,
      status: 'open',
      payment_status: 'unpaid',
      payment_intent: null,
      amount_total: amount,
      currency: price['currency'],
      metadata: fields['metadata'],
      client_reference_id: fields['client_reference_id'],
      asked: fields,
    }
    pages.set(id, page)
    return ok(page)
  }

  function confirm(payment: Row): Answer {
    if (payment['status'] !== 'requires_confirmation') {
      return refused(400, 'payment_intent_unexpected_state', { payment_intent: payment })
    }
    if (provider.card === 'succeed' || provider.card === 'process') {
      payment['status'] = provider.card === 'succeed' ? 'succeeded' : 'processing'
      if (provider.card === 'succeed') happened('payment_intent.succeeded', payment)
      return ok(payment)
    }
    if (provider.card === 'authenticate') {
      payment['status'] = 'requires_action'
      happened('payment_intent.requires_action', payment)
      return ok(payment)
    }
    payment['status'] = 'requires_payment_method'
    payment['last_payment_error'] = { code: 'card_declined', decline_code: 'insufficient_funds' }
    happened('payment_intent.payment_failed', payment)
    const error = payment['last_payment_error'] as Json
    return refused(402, 'card_declined', { ...error, payment_intent: payment })
  }

  function refund(fields: Json): Answer {
    const payment = payments.get(String(fields['payment_intent']))
    if (payment?.['status'] !== 'succeeded') return missing
    const amount = Number(fields['amount'])
    const before = [...refunds.values()].filter(
      (one) => one['payment_intent'] === payment.id && one['status'] !== 'failed',
    )
    const given = before.reduce((sum, one) => sum + Number(one['amount']), 0)
    if (given + amount > Number(payment['amount'])) return refused(400, 'charge_already_refunded')
    const row: Row = {
      id: idOf('re'),
      object: 'refund',
      amount,
      currency: payment['currency'],
      payment_intent: payment.id,
      metadata: fields['metadata'],
      failure_reason: provider.refundState === 'failed' ? 'lost_or_stolen_card' : null,
      status: provider.refundState,
    }
    refunds.set(row.id, row)
    happened('refund.created', row)
    return ok(row)
  }

  function act({ method, path, fields }: Called): Answer {
    const [, kind = '', id = '', verb = ''] =
      /^\/v1\/(checkout\/sessions|payment_intents|refunds|disputes)(?:\/(\w+))?(?:\/(\w+))?$/.exec(
        path,
      ) ?? []
    if (kind === 'checkout/sessions') {
      if (method === 'POST' && id === '') return createPage(fields)
      const page = pages.get(id)
      if (page === undefined) return missing
      if (verb === 'expire') {
        if (page['status'] !== 'open') return refused(400, 'page_not_open')
        provider.expirePage(id)
      }
      const paymentId = page['payment_intent']
      const expanded = typeof paymentId === 'string' && fields['expand'] !== undefined
      return ok(expanded ? { ...page, payment_intent: payments.get(paymentId) } : page)
    }
    if (kind === 'payment_intents') {
      if (method === 'POST' && id === '') return ok(newPayment(fields, 'requires_confirmation'))
      const payment = payments.get(id)
      if (payment === undefined) return missing
      if (verb === 'confirm') return confirm(payment)
      if (verb === 'cancel') {
        if (!String(payment['status']).startsWith('requires_')) {
          return refused(400, 'payment_intent_unexpected_state', { payment_intent: payment })
        }
        payment['status'] = 'canceled'
        happened('payment_intent.canceled', payment)
      }
      return ok(payment)
    }
    if (kind === 'refunds') {
      if (method === 'POST') return refund(fields)
      if (id !== '') return refunds.has(id) ? ok(refunds.get(id)!) : missing
      const of = fields['payment_intent']
      const data = [...refunds.values()].filter((one) => one['payment_intent'] === of)
      const from = data.findIndex((one) => one.id === fields['starting_after']) + 1
      // Short pages, so that more than one is read.
      return ok({
        object: 'list',
        data: data.slice(from, from + 2),
        has_more: data.length > from + 2,
      })
    }
    const dispute = kind === 'disputes' ? disputes.get(id) : undefined
    return dispute === undefined ? missing : ok(dispute)
  }

  /** The first response under an idempotency key is final, including a server error. */
  function answerTo(call: Called, mishap: Mishap): Answer {
    const { idempotencyKey: key, fields, path } = call
    const run = (): Answer => {
      if (mishap === 'error_before') return { status: 500, body: { error: { type: 'api_error' } } }
      const answer = act(call)
      return mishap === 'error_after'
        ? { status: 500, body: { error: { type: 'api_error' } } }
        : answer
    }
    if (key === null) return run()
    const known = kept.get(key)
    const asked = JSON.stringify([path, fields])
    if (known?.answer != null) {
      if (known.fields === asked) return known.answer
      return { status: 400, body: { error: { type: 'idempotency_error' } } }
    }
    const entry: Kept = { fields: asked, answer: null }
    kept.set(key, entry)
    // A copy, so that later changes do not affect the stored response.
    const answer = structuredClone(run())
    entry.answer = answer
    return answer
  }

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const url = new URL(incoming.url ?? '/', provider.url)
    const method = incoming.method ?? 'GET'
    const text = method === 'POST' ? Buffer.concat(chunks).toString() : url.search.slice(1)
    const key = incoming.headers['idempotency-key']
    const call: Called = {
      method,
      path: url.pathname,
      fields: nested(text),
      idempotencyKey: typeof key === 'string' ? key : null,
    }
    calls.push(call)
    const say = ({ status, body }: Answer) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (incoming.headers.authorization !== `Bearer ${CARD_KEY}`) {
      return void say(refused(401, 'invalid_api_key'))
    }
    await provider.wait(call)
    const mishap = provider.mishap(call)
    if (mishap === 'hang_before') return
    const answer = answerTo(call, mishap)
    if (mishap !== 'hang_after') say(answer)
  }

  const server = createServer((incoming, response) => {
    serve(incoming, response).catch((error: unknown) => {
      response.destroy(error instanceof Error ? error : undefined)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const agents = new Map<string, Dispatcher>()

  const provider: CardProvider = {
    url: `http://127.0.0.1:${port}`,
    environment: {
      SVC_COMMERCE__CARD__PROVIDER: 'stripe_compatible',
      SVC_COMMERCE__CARD__API_BASE_URL: `http://127.0.0.1:${port}`,
      SVC_COMMERCE__CARD__SECRET_KEY: CARD_KEY,
      SVC_COMMERCE__CARD__WEBHOOK_SECRET: CARD_WEBHOOK_SECRET,
      SVC_COMMERCE__CARD__CHECKOUT_HOSTS: `127.0.0.1:${port}`,
      SVC_COMMERCE__CARD__TIMEOUT_SECS: '2',
    },
    calls,
    events,
    pages,
    payments,
    refunds,
    disputes,
    mishap: () => 'none',
    wait: () => Promise.resolve(),
    card: 'succeed',
    refundState: 'succeeded',
    pageOrigin: null,
    count: (method, path) =>
      calls.filter((one) => one.method === method && path.test(one.path)).length,
    pageOf(chargeId) {
      const page = [...pages.values()].find((one) => one['client_reference_id'] === chargeId)
      if (page === undefined) throw new Error('the provider has no page of this charge')
      return page
    },
    paymentsOf: (chargeId) =>
      [...payments.values()].filter(
        ({ metadata }) => (metadata as Json)['svc_charge_id'] === chargeId,
      ),
    buyerPays(address) {
      const page = pages.get(/\/c\/pay\/(\w+)/.exec(address ?? '')?.[1] ?? '')
      if (page?.['status'] !== 'open') throw new Error(`there is no page to pay at ${address}`)
      const asked = page['asked'] as Json
      const about = asked['payment_intent_data'] as Json
      const payment = newPayment(
        {
          ...about,
          amount: page['amount_total'],
          currency: page['currency'],
          customer: asked['customer_creation'] === 'always' ? idOf('cus') : undefined,
          payment_method: idOf('pm'),
        },
        'succeeded',
      )
      Object.assign(page, {
        status: 'complete',
        payment_status: 'paid',
        payment_intent: payment.id,
      })
      happened('payment_intent.succeeded', payment)
      happened('checkout.session.completed', page)
    },
    expirePage(id) {
      const page = pages.get(id)!
      page['status'] = 'expired'
      page['url'] = null
      happened('checkout.session.expired', page)
    },
    settlePayment(id, status) {
      const payment = payments.get(id)!
      payment['status'] = status
      happened(
        status === 'succeeded' ? 'payment_intent.succeeded' : 'payment_intent.payment_failed',
        payment,
      )
    },
    settleRefund(id, status) {
      const row = refunds.get(id)!
      row['status'] = status
      if (status === 'failed') row['failure_reason'] = 'expired_or_canceled_card'
      happened(status === 'failed' ? 'refund.failed' : 'refund.updated', row)
    },
    refundByHand(paymentId, amount) {
      const made = refund({ payment_intent: paymentId, amount, metadata: {} })
      if (made.status !== 200) throw new Error(JSON.stringify(made.body))
    },
    dispute(paymentId, amount) {
      const payment = payments.get(String(paymentId))!
      const row: Row = {
        id: idOf('du'),
        object: 'dispute',
        amount: amount ?? payment['amount'],
        currency: payment['currency'],
        payment_intent: payment.id,
        reason: 'fraudulent',
        status: 'needs_response',
      }
      disputes.set(row.id, row)
      happened('charge.dispute.created', row)
      return row
    },
    closeDispute(id, status) {
      const row = disputes.get(id)!
      row['status'] = status
      happened('charge.dispute.closed', row)
    },
    held() {
      const sum = (rows: Iterable<Row>, counts: (row: Row) => boolean) =>
        [...rows].filter(counts).reduce((total, row) => total + Number(row['amount']), 0)
      return (
        sum(payments.values(), ({ status }) => status === 'succeeded') -
        sum(refunds.values(), ({ status }) => status === 'succeeded') -
        sum(disputes.values(), ({ status }) => status === 'lost')
      )
    },
    forgetKeys: () => kept.clear(),
    async deliver({ baseUrl, ca }, { body }, more = {}) {
      const { secret = CARD_WEBHOOK_SECRET, atMs = Date.now() } = more
      const at = Math.floor(atMs / 1000)
      const mac = createHmac('sha256', secret).update(`${at}.${body}`).digest('hex')
      const signature =
        more.signature === undefined ? `t=${at},v1=${mac},v0=${'0'.repeat(64)}` : more.signature
      const key = ca ?? ''
      const dispatcher =
        agents.get(key) ?? serviceAgent(ca === undefined ? {} : { connect: { ca } })
      agents.set(key, dispatcher)
      const answer = await request(new URL('/api/v1/commerce/card/events', baseUrl), {
        dispatcher,
        method: 'POST',
        headers: {
          'content-type': 'application/json; charset=utf-8',
          ...(signature === null ? {} : { 'stripe-signature': signature }),
        },
        body,
      })
      await answer.body.dump()
      return answer.statusCode
    },
    async close() {
      await Promise.all([...agents.values()].map((agent) => agent.close()))
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return provider
}

/** `a[b][0]=1` as `{a: {b: {0: '1'}}}`. */
function nested(text: string): Json {
  const root: Json = {}
  for (const [name, value] of new URLSearchParams(text)) {
    const path = name.split(/\[|\]\[|\]/).filter((part) => part !== '')
    let at = root
    for (const part of path.slice(0, -1)) at = (at[part] ??= {}) as Json
    at[path.at(-1)!] = value
  }
  return root
}
