/** Buyer routes and the payment page (docs/reference/commerce.md). */
import { z } from 'zod'
import {
  type CardEventRefused,
  checkout,
  type CheckoutOpened,
  type CheckoutRefused,
  type SubscriptionOpened,
} from '../../../actors/commerce/payments/checkout/protocol.js'
import type { IdempotencyClaim } from '../../../actors/domain/idempotency.js'
import { idText } from '../../request/ids.js'
import { linkPage, payEndedPage, payPage, payUnknownPage } from '../../pages/commerce/checkout.js'
import { presenter } from '../../response/presenter.js'
import type { ReplyContext } from '../../response/replies.js'
import {
  choice,
  json,
  page,
  pageForm,
  problem,
  raw,
  type Route,
  reply,
  route,
  seeOther,
} from '../../route.js'
import {
  BuyerMetadata,
  FulfillmentView,
  fulfillmentView,
  Metadata,
  QUANTITY_MAX,
} from './commerce-shapes.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'
import { TypedEmail } from '../identity/user-shapes.js'

const AT = '/api/v1/public/commerce'

const details = {
  success_url: z.string().max(2048).nullish().meta({
    description:
      'The buyer is redirected here after the payment, with charge_id added to the query.',
  }),
  cancel_url: z
    .string()
    .max(2048)
    .nullish()
    .meta({ description: 'The buyer may return here without paying.' }),
  customer_email: TypedEmail.nullish(),
  buyer_country: z.string().max(8).nullish().meta({ description: 'ISO 3166-1 alpha-2.' }),
  buyer_region: z
    .string()
    .max(8)
    .nullish()
    .meta({ description: 'The part of an ISO 3166-2 code after the hyphen.' }),
  metadata: Metadata.nullish(),
}
const quantity = z.int().min(1).max(QUANTITY_MAX)
const priceId = idText()

const CheckoutBody = z
  .object({ price_id: priceId, quantity: quantity.default(1), ...details })
  .meta({ id: 'CheckoutSessionRequest' })
const SubscribeBody = z
  .object({ price_id: priceId, ...details })
  .meta({ id: 'SubscriptionCheckoutSessionRequest' })
const LinkBody = z
  .object({ quantity: quantity.nullish(), ...details })
  .meta({ id: 'PaymentLinkCheckoutRequest' })

const result = {
  checkout_url: z
    .url()
    .optional()
    .meta({
      description:
        'Redirect the buyer here. Omitted in a replay unless the idempotency key has 128 bits: a UUID, ' +
        '22 or more characters of base64url, or 32 or more of hex.',
    }),
  checkout_session_id: z.uuid(),
  x402_url: z.url().optional().meta({
    description: 'Agents pay the checkout here by x402. Present where the tenant offers x402.',
  }),
  charge_id: z.uuid(),
  status: z.literal('open'),
  amount_minor: z.int(),
  currency: z.string(),
  metadata: z.record(z.string(), z.unknown()),
  buyer_metadata: BuyerMetadata.optional(),
  expires_at: z.iso.datetime(),
}
const CheckoutResult = z.object(result).meta({ id: 'CheckoutResult' })
const SubscriptionCheckoutResult = z
  .object({
    ...result,
    subscription_id: z.uuid(),
    interval: z.enum(['day', 'week', 'month', 'year']),
    interval_count: z.int(),
  })
  .meta({ id: 'SubscriptionCheckoutResult' })

type Details = z.output<z.ZodObject<typeof details>>
const detailsOf = (body: Details, idempotency: IdempotencyClaim | null) => ({
  successUrl: body.success_url ?? null,
  cancelUrl: body.cancel_url ?? null,
  customerEmail: body.customer_email ?? null,
  buyerCountry: body.buyer_country ?? null,
  buyerRegion: body.buyer_region ?? null,
  metadata: body.metadata ?? {},
  idempotency,
})

const checkoutResult = presenter(CheckoutResult)
const subscriptionResult = presenter(SubscriptionCheckoutResult)
const openedRow = <Opened extends CheckoutOpened | SubscriptionOpened>(
  opened: Opened,
  { baseUrl }: ReplyContext,
) => ({
  ...opened,
  status: 'open' as const,
  checkoutUrl: opened.token === null ? null : `${baseUrl}/pay/${opened.token}`,
  // Undefined in the stored outcome of an older release.
  x402Url: opened.x402Path == null ? null : baseUrl + opened.x402Path,
})

type Refused = Extract<CheckoutRefused, { tag: 'refused' }>
const because = problem<Refused, 'bad-request'>(
  400,
  'bad-request',
  ({ error, pointer, detail }) => ({
    error,
    detail,
    errors: [{ pointer: `#${pointer}`, detail }],
  }),
)
const refusals = {
  refused: choice<Refused, Refused['error']>(({ error }) => error, {
    invalid_price: because,
    invalid_buyer: because,
    redirect_host_not_allowed: because,
    bad_request: because,
  }),
  no_way_to_pay: problem(409, 'conflict', {
    error: 'payment_method_unavailable',
    detail: 'The seller offers no payment method for this.',
  }),
  ...idempotencyRefusals,
}

const shared = {
  tags: ['Public commerce'],
  exposure: 'public',
  security: { scheme: 'anonymous' },
  throttle: [{ policy: 'commerce', by: 'address' }],
} as const
const hosted = {
  tags: ['Hosted pages'],
  exposure: 'internal',
  security: { scheme: 'browser' },
  errors: 'page',
  throttle: [{ policy: 'commerce', by: 'address' }],
  params: z.object({ token: z.string().max(64) }),
} as const

const opened = reply(200, CheckoutResult, (outcome: CheckoutOpened, context) =>
  checkoutResult(openedRow(outcome, context)),
)
/** Events of the provider are a few KiB. */
const CARD_EVENT_BYTES_MAX = 256 * 1024
const CARD_EVENT_FAULTS: Readonly<Record<CardEventRefused['reason'], string>> = {
  signature: 'The header Stripe-Signature is missing or not a signature of this body.',
  timestamp: 'The signature is more than 300 seconds old or in the future.',
  body: 'The body is not an event.',
}

const payGone = page(410, payEndedPage)
const payUnknown = page(404, payUnknownPage)

export const checkoutRoutes: readonly Route[] = [
  route(checkout, 'createCheckoutSession', {
    ...shared,
    method: 'POST',
    path: `${AT}/checkout-sessions`,
    summary: 'Open a checkout session for a price',
    capabilities: ['commerce.checkout'],
    idempotent: true,
    body: json(CheckoutBody),
    message: ({ body, idempotency }) => ({
      priceId: body.price_id,
      quantity: body.quantity,
      ...detailsOf(body, idempotency),
    }),
    replies: { opened, ...refusals },
  }),
  route(checkout, 'createSubscriptionCheckoutSession', {
    ...shared,
    method: 'POST',
    path: `${AT}/subscription-checkout-sessions`,
    summary: 'Open a checkout session for a subscription',
    description:
      'The subscription starts when the first payment succeeds. customer_email is required.',
    capabilities: ['commerce.subscriptions'],
    idempotent: true,
    body: json(SubscribeBody),
    message: ({ body, idempotency }) => ({
      priceId: body.price_id,
      ...detailsOf(body, idempotency),
    }),
    replies: {
      subscription_opened: reply(200, SubscriptionCheckoutResult, (outcome, context) =>
        subscriptionResult({ ...openedRow(outcome, context), ...outcome.recurring }),
      ),
      ...refusals,
    },
  }),
  route(checkout, 'checkoutPaymentLink', {
    ...shared,
    method: 'POST',
    path: `${AT}/payment-links/{payment_link_token}/checkout`,
    summary: 'Open a checkout session for a payment link',
    description:
      'Every member is optional, and so is the body. Where `metadata` and the link have the same ' +
      'member, the link wins; `buyer_metadata` keeps what was sent.',
    idempotent: true,
    params: z.object({ payment_link_token: z.string().max(64) }),
    body: json(LinkBody, { optional: true }),
    message: ({ params, body, idempotency }) => ({
      token: params.payment_link_token,
      quantity: body.quantity ?? null,
      ...detailsOf(body, idempotency),
    }),
    replies: {
      opened,
      ...refusals,
      unknown_link: problem(404, 'not-found', { detail: 'The payment link does not exist.' }),
    },
  }),
  route(checkout, 'getFulfillment', {
    ...shared,
    method: 'GET',
    path: `${AT}/fulfillment/{charge_id}`,
    summary: 'Look up the outcome of a charge',
    description:
      'For merchants who missed a webhook. The header X-Svc-Fulfillment-Secret holds a secret in ' +
      'force of an active subscription to at least one commerce.payment.* event.',
    params: z.object({ charge_id: z.string().max(64) }),
    headers: z.object({
      // The actor checks the header: a missing secret gets 401, like a wrong one.
      'x-svc-fulfillment-secret': z
        .string()
        .max(512)
        .optional()
        .meta({ param: { required: true } }),
    }),
    message: ({ params, headers }) => ({
      chargeId: params.charge_id,
      secret: headers['x-svc-fulfillment-secret'] ?? null,
    }),
    replies: {
      found: reply(200, FulfillmentView, ({ charge }) => fulfillmentView(charge)),
      unauthorized: problem(401, 'unauthorized', {
        reason: 'fulfillment_secret_wrong',
        detail: 'X-Svc-Fulfillment-Secret is missing or not a valid secret.',
        headers: { 'www-authenticate': 'X-Svc-Fulfillment-Secret realm="svc"' },
      }),
      unknown_charge: problem(404, 'not-found', {
        detail: 'The charge does not exist in this tenant.',
      }),
    },
  }),
  route(checkout, 'receiveCardEvent', {
    tags: ['Public commerce'],
    exposure: 'internal',
    security: { scheme: 'anonymous' },
    throttle: [{ policy: 'card-events', by: 'address' }],
    method: 'POST',
    path: '/api/v1/commerce/card/events',
    summary: 'Webhook of the card provider',
    description:
      'Called by the provider of commerce.card. Stripe-Signature is t=<seconds>,v1=<hex>, where v1 is ' +
      'HMAC-SHA256 over <t>.<body> under commerce.card.webhook_secret. An event is stored once by its ' +
      'id. The service then looks the object up at the provider.',
    headers: z.object({ 'stripe-signature': z.string().max(2048).optional() }),
    body: raw(['application/json'], { maxBytes: CARD_EVENT_BYTES_MAX }),
    message: ({ headers, body }) => ({ body, signature: headers['stripe-signature'] ?? null }),
    replies: {
      received: reply(200, z.object({ received: z.literal(true) }), () => ({
        received: true as const,
      })),
      event_refused: problem<CardEventRefused, 'bad-request'>(400, 'bad-request', ({ reason }) => ({
        detail: CARD_EVENT_FAULTS[reason],
      })),
      no_provider: problem(404, 'not-found', { detail: 'No card provider is configured.' }),
    },
  }),
  route(checkout, 'showPayment', {
    ...hosted,
    method: 'GET',
    path: '/pay/{token}',
    summary: 'Payment page',
    message: ({ params }) => ({ token: params.token }),
    replies: {
      page: page(200, payPage),
      link_page: page(200, linkPage),
      ended: payGone,
      unknown_page: payUnknown,
    },
  }),
  route(checkout, 'pay', {
    ...hosted,
    method: 'POST',
    path: '/pay/{token}',
    summary: 'Pay',
    body: pageForm({
      // The page of a payment link has no payment method to choose yet.
      rail: z.string().max(32).default(''),
      outcome: z.enum(['succeed', 'decline', 'dispute']).optional(),
      customer_email: TypedEmail.default(''),
    }),
    message: ({ params, body }) => ({
      token: params.token,
      rail: body.rail,
      outcome: body.outcome ?? null,
      customerEmail: body.customer_email,
    }),
    replies: {
      sent: seeOther(({ location }) => ({ location })),
      again: page(400, payPage),
      full: page(409, payPage),
      link_unpayable: page(409, linkPage),
      ended: payGone,
      unknown_page: payUnknown,
    },
  }),
]
