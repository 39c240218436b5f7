/** Payment links and checkout sessions paid by x402. docs/reference/commerce.md, x402. */
import { z } from 'zod'
import {
  type PaymentChallenge,
  type PayOutcome,
  type SettlementResponse,
  x402,
} from '../../../actors/commerce/payments/x402/protocol.js'
import { problem, type Route, reply, route } from '../../route.js'

const AT = '/api/v1/public/commerce'
const LINK_PATH = `${AT}/payment-links/{payment_link_token}/x402`
const SESSION_PATH = `${AT}/checkout-sessions/{checkout_session_id}/x402`
const PENDING_RETRY_SECS = 2
const tags = ['Public commerce'] as const
const linkParams = z.object({ payment_link_token: z.string().max(256) })
const sessionParams = z.object({ checkout_session_id: z.string().max(64) })
const capabilities = ['commerce.x402'] as const
const throttle = [{ policy: 'commerce', by: 'address' }] as const

/**
 * The actor validates the query, after it has found the link: an unknown link is 404, whatever the
 * query contains.
 */
const Buyer = z.object({
  buyer_country: z
    .string()
    .optional()
    .meta({ description: 'ISO 3166-1 alpha-2.', example: 'US', param: { required: true } }),
  buyer_region: z
    .string()
    .optional()
    .meta({
      description: 'The part of an ISO 3166-2 code after the hyphen.',
      example: 'CA',
      param: { required: true },
    }),
})

const Extensions = z.record(z.string(), z.looseObject({ info: z.looseObject({}) }))
const Requirements = z
  .looseObject({
    scheme: z.literal('exact'),
    network: z.string().meta({ example: 'eip155:8453' }),
    amount: z.string().optional().meta({ description: 'Atomic units.', example: '19990000' }),
    asset: z.string().meta({ example: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' }),
    payTo: z.string(),
    maxTimeoutSeconds: z.int(),
    extra: z.looseObject({ name: z.string(), version: z.string() }),
  })
  .meta({ id: 'X402PaymentRequirements' })
const PaymentRequired = z
  .looseObject({
    x402Version: z.int(),
    error: z.string(),
    resource: z
      .looseObject({ url: z.string(), description: z.string(), mimeType: z.string() })
      .optional(),
    accepts: z.array(Requirements),
    extensions: Extensions.optional(),
  })
  .meta({
    id: 'X402PaymentRequired',
    description:
      'The challenge, as in the PAYMENT-REQUIRED field. Where version 1 is supported, its challenge.',
  })
const Settlement = z
  .object({
    success: z.boolean(),
    transaction: z.string(),
    network: z.string(),
    payer: z.string(),
    amount: z.string().optional(),
    errorReason: z.string().optional(),
  })
  .meta({ id: 'X402Settlement' })
const Settled = z
  .object({
    charge_id: z.uuid(),
    status: z.literal('succeeded'),
    amount_minor: z.int(),
    currency: z.string(),
    metadata: z.record(z.string(), z.unknown()),
    settlement: Settlement,
    fulfillment_url: z.string(),
  })
  .meta({ id: 'X402Payment' })

type Challenged = { readonly challenge: PaymentChallenge }
type Answered = { readonly settlement: SettlementResponse }
type Paid = Extract<PayOutcome, { tag: 'settled' }>
type Refused = Extract<PayOutcome, { tag: 'refused' }>
type Malformed = Extract<PayOutcome, { tag: 'malformed' }>
type Pending = Extract<PayOutcome, { tag: 'pending' }>

const encoded = (message: object) => Buffer.from(JSON.stringify(message)).toString('base64')
const required = ({ challenge }: Challenged) => ({ 'payment-required': challenge.header })
/** Sets the response field of each version, so that any client finds its own. */
const response = ({ settlement }: Answered) => {
  const field = encoded(settlement)
  return { 'payment-response': field, 'x-payment-response': field }
}
const challengeBody = ({ challenge }: Challenged) =>
  challenge.body as z.input<typeof PaymentRequired>

const payment_required = reply<Challenged, typeof PaymentRequired>(
  402,
  PaymentRequired,
  challengeBody,
  required,
)
const unknown = problem(404, 'not-found', {
  detail: 'The payment link or checkout does not exist or cannot be paid by x402.',
})
const not_open = problem(409, 'conflict', {
  error: 'checkout_not_open',
  detail: 'The checkout is paid, is being paid, or has ended.',
})
const invalid_buyer = problem<{ parameter: string }, 'bad-request'>(
  400,
  'bad-request',
  ({ parameter }) => ({
    detail: 'The country and region of the buyer are required.',
    errors: [{ pointer: `query:${parameter}`, detail: 'Missing or not an ISO 3166 code.' }],
  }),
)

const Proofs = z.object({
  'payment-signature': z.string().optional().meta({
    description: 'PaymentPayload of x402 version 2, base64 of JSON.',
  }),
  'x-payment': z.string().optional().meta({
    description: 'PaymentPayload of x402 version 1, where the deployment supports it.',
  }),
})
const proofsIn = (headers: z.output<typeof Proofs>) => ({
  proof: headers['payment-signature'],
  proofV1: headers['x-payment'],
})

const byLink = (request: {
  readonly params: z.output<typeof linkParams>
  readonly query: z.output<typeof Buyer>
}) => ({
  target: { tag: 'link' as const, token: request.params.payment_link_token },
  buyerCountry: request.query.buyer_country,
  buyerRegion: request.query.buyer_region,
})
const bySession = ({ params }: { readonly params: z.output<typeof sessionParams> }) => ({
  target: { tag: 'session' as const, id: params.checkout_session_id },
  buyerCountry: undefined,
  buyerRegion: undefined,
})

const shared = {
  tags,
  exposure: 'public',
  security: { scheme: 'anonymous' },
  throttle,
  cors: 'public',
  capabilities,
} as const
const challenged = { payment_required, unknown, invalid_buyer, not_open }
const answered = {
  settled: reply<Paid, typeof Settled>(
    200,
    Settled,
    ({ chargeId, amountMinor, currency, metadata, settlement }, { baseUrl }) => ({
      charge_id: chargeId,
      status: 'succeeded' as const,
      amount_minor: amountMinor,
      currency,
      metadata,
      settlement,
      fulfillment_url: `${baseUrl}${AT}/fulfillment/${chargeId}`,
    }),
    response,
  ),
  refused: reply<Refused, typeof PaymentRequired>(
    402,
    PaymentRequired,
    challengeBody,
    (outcome) => ({
      ...required(outcome),
      ...response(outcome),
    }),
  ),
  malformed: problem<Malformed, 'bad-request'>(400, 'bad-request', ({ pointer, detail }) => ({
    detail: 'The payment proof is malformed.',
    errors: [{ pointer: `payment-signature#${pointer}`, detail }],
  })),
  identifier_reused: problem(409, 'conflict', {
    detail: 'This payment identifier was used for another payment.',
  }),
  pending: problem<Pending, 'service-unavailable'>(503, 'service-unavailable', ({ chargeId }) => ({
    detail: 'The outcome of the payment is not known yet. Send the same proof again.',
    retryAfterSecs: PENDING_RETRY_SECS,
    members: { charge_id: chargeId, charge_status: 'pending' },
  })),
  unavailable: problem(503, 'service-unavailable', {
    detail: 'The payment could not be verified. No money was taken.',
    retryAfterSecs: PENDING_RETRY_SECS,
  }),
  ...challenged,
}

const PAY =
  'A repeated proof gets the same response and does not settle twice. ' +
  'While the outcome is unknown, 503 with the charge: send the same proof again.'

export const x402Routes: readonly Route[] = [
  route(x402, 'getX402Challenge', {
    ...shared,
    method: 'GET',
    path: LINK_PATH,
    summary: 'Get the x402 challenge of a payment link',
    description:
      'Always 402 for a payable link. The PAYMENT-REQUIRED field holds the same JSON in base64.',
    params: linkParams,
    query: Buyer,
    message: byLink,
    replies: challenged,
  }),
  route(x402, 'payByX402', {
    ...shared,
    method: 'POST',
    path: LINK_PATH,
    summary: 'Pay a payment link with an x402 proof',
    description: PAY,
    params: linkParams,
    query: Buyer,
    headers: Proofs,
    message: (request) => ({ ...byLink(request), ...proofsIn(request.headers) }),
    replies: answered,
  }),
  route(x402, 'getX402Challenge', {
    ...shared,
    method: 'GET',
    path: SESSION_PATH,
    operationId: 'getCheckoutX402Challenge',
    summary: 'Get the x402 challenge of a checkout session',
    description:
      'The checkout of a price, a payment link, a subscription or the invoice of a renewal. 402 while ' +
      'it can be paid; the PAYMENT-REQUIRED field holds the same JSON in base64.',
    params: sessionParams,
    message: bySession,
    replies: challenged,
  }),
  route(x402, 'payByX402', {
    ...shared,
    method: 'POST',
    path: SESSION_PATH,
    operationId: 'payCheckoutByX402',
    summary: 'Pay a checkout session with an x402 proof',
    description: `${PAY} After a failed payment the session stays open.`,
    params: sessionParams,
    headers: Proofs,
    message: (request) => ({ ...bySession(request), ...proofsIn(request.headers) }),
    replies: answered,
  }),
]
