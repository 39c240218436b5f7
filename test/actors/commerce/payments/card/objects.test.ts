/** Parsing of card provider objects: amounts, URLs, states. */
import test from 'ava'
import * as fc from 'fast-check'
import { ownAmount, providerAmount } from '../../../../../actors/commerce/payments/card/amounts.js'
import {
  formOf,
  judgeAnswer,
  ProviderUnavailable,
} from '../../../../../actors/commerce/payments/card/client.js'
import {
  checkoutState,
  disputeOf,
  isPageOf,
  mandateOf,
  paymentState,
  readMandate,
} from '../../../../../actors/commerce/payments/card/objects.js'

const bytes = (value: unknown) => Buffer.from(JSON.stringify(value))

test('amounts convert to provider units and back unchanged, or are refused', (t) => {
  for (const [amount, currency, sent] of [
    [1999, 'USD', 1999],
    [500, 'JPY', 500],
    [500, 'ISK', 50_000],
    [500, 'UGX', 50_000],
    [500, 'MGA', 5],
    [501, 'MGA', undefined],
    [1230, 'KWD', 1230],
    [1234, 'KWD', undefined],
    [1, 'CLF', undefined],
    [1, 'XXX', undefined],
  ] as const) {
    t.is(providerAmount(amount, currency), sent, `${amount} ${currency}`)
  }
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 999_999_999_999 }),
      fc.constantFrom('USD', 'JPY', 'ISK', 'UGX', 'MGA', 'KWD'),
      (amount, currency) => {
        const sent = providerAmount(amount, currency)
        return sent === undefined || ownAmount(sent, currency) === amount
      },
    ),
  )
  t.is(ownAmount(150, 'ISK'), undefined)
  t.is(ownAmount(-1, 'USD'), undefined)
})

test('nested parameters are named as the provider names them', (t) => {
  t.is(
    decodeURIComponent(
      formOf({ a: { b: [{ c: 1 }, 'x y'] }, none: null, gone: undefined, f: false }),
    ),
    'a[b][0][c]=1&a[b][1]=x+y&f=false',
  )
  t.is(formOf({ name: 'a&b=c\r\nd' }), 'name=a%26b%3Dc%0D%0Ad')
})

test('only 200 and refusals with an error are final answers', (t) => {
  t.deepEqual(judgeAnswer(200, bytes({ id: 'pi_1' })), { tag: 'ok', object: { id: 'pi_1' } })
  const declined = { type: 'card_error', code: 'card_declined', decline_code: 'lost_card' }
  t.like(judgeAnswer(402, bytes({ error: declined })), { tag: 'refused', code: 'lost_card' })
  t.like(judgeAnswer(400, bytes({ error: { code: '<script>', type: 'x' } })), { code: 'x' })
  for (const [status, body] of [
    [500, { error: declined }],
    [409, { error: declined }],
    [429, { error: declined }],
    [401, { error: declined }],
    [302, { id: 'pi_1' }],
    [402, 'nonsense'],
    [402, { error: 'nonsense' }],
    [200, [1]],
    [400, { error: { type: 'idempotency_error' } }],
  ] as const) {
    t.throws(() => judgeAnswer(status, bytes(body)), { instanceOf: ProviderUnavailable })
  }
})

const order = { tenantId: 't', chargeId: 'c', amountMinor: 1999, currency: 'USD' }
const ours = { metadata: { svc_charge_id: 'c', svc_tenant_id: 't' }, currency: 'usd' }

test('an object of another charge, tenant, amount or currency is an error', (t) => {
  const payment = { id: 'pi_1', status: 'succeeded', amount: 1999, ...ours }
  t.deepEqual(paymentState(payment, order), { tag: 'succeeded', id: 'pi_1' })
  const page = {
    id: 'cs_1',
    status: 'complete',
    payment_status: 'paid',
    payment_intent: payment,
    amount_total: 1999,
    ...ours,
  }
  t.deepEqual(checkoutState(page, order), { tag: 'paid', paymentId: 'pi_1' })
  for (const change of [
    { amount: 1, amount_total: 1 },
    { amount: '1999', amount_total: '1999' },
    { currency: 'eur' },
    { metadata: {} },
    { metadata: { ...ours.metadata, svc_charge_id: 'd' } },
    { metadata: { ...ours.metadata, svc_tenant_id: 'u' } },
    { status: 'something' },
  ]) {
    t.throws(
      () => paymentState({ ...payment, ...change }, order),
      undefined,
      JSON.stringify(change),
    )
    t.throws(() => checkoutState({ ...page, ...change }, order), undefined, JSON.stringify(change))
  }
})

test('a buyer is redirected to https pages of allowed hosts only', (t) => {
  const hosts = ['checkout.stripe.com', 'pay.example:8443']
  for (const url of [
    'https://checkout.stripe.com/c/pay/cs_1#fid',
    'https://checkout.stripe.com:443/x',
    'https://pay.example:8443/x',
  ]) {
    t.true(isPageOf(url, hosts, false), url)
  }
  for (const url of [
    'http://checkout.stripe.com/x',
    'https://checkout.stripe.com.evil.example/x',
    'https://evil.example/checkout.stripe.com',
    'https://checkout.stripe.com@evil.example/x',
    'https://user:pw@checkout.stripe.com/x',
    'https://checkout.stripe.com\\@evil.example/x',
    'https://checkout.stripe.com:444/x',
    'https://pay.example/x',
    '//checkout.stripe.com/x',
    'javascript:alert(1)',
    'https://checkout.stripe.com/\r\nset-cookie: a=b',
    '',
  ]) {
    t.false(isPageOf(url, hosts, false), url)
  }
  t.true(isPageOf('http://127.0.0.1:99/x', ['127.0.0.1:99'], true))
  t.false(isPageOf('http://127.0.0.1:99/x', ['127.0.0.1:99'], false))
  t.false(isPageOf('http://evil.example/x', ['evil.example'], true))
})

test('a saved payment method is read back as it was stored', (t) => {
  const saved = {
    setup_future_usage: 'off_session',
    customer: { id: 'cus_1' },
    payment_method: 'pm_1',
  }
  const mandate = mandateOf(saved)
  t.is(mandate, 'cus_1:pm_1')
  t.deepEqual(readMandate(mandate!), { customerId: 'cus_1', methodId: 'pm_1' })
  t.is(mandateOf({ ...saved, setup_future_usage: null }), null)
  t.is(
    mandateOf({ setup_future_usage: 'off_session' }),
    ':',
    'a subscription has one, if an empty one',
  )
  for (const wrong of [':', 'cus_1:', ':pm_1', 'cus_1', 'cus_1:pm_1:x', '../x:pm_1']) {
    t.is(readMandate(wrong), undefined, wrong)
  }
})

test('an inquiry that ends takes nothing back', (t) => {
  const dispute = {
    id: 'du_1',
    payment_intent: 'pi_1',
    amount: 5,
    currency: 'usd',
    reason: 'fraudulent',
  }
  for (const [status, seen] of [
    ['needs_response', 'open'],
    ['warning_needs_response', 'open'],
    ['warning_closed', 'won'],
    ['won', 'won'],
    ['lost', 'lost'],
    ['toString', 'open'],
  ] as const) {
    t.is(disputeOf({ ...dispute, status }).status, seen)
  }
  t.throws(() => disputeOf({ ...dispute, status: 'lost', payment_intent: null }))
})
