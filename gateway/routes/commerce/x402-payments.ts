/** x402 payments as their merchant sees them, and the resolution of unknown outcomes. */
import { z } from 'zod'
import { x402 } from '../../../actors/commerce/payments/x402/protocol.js'
import { callerOf } from '../../request/caller.js'
import { PageQuery, readPage } from '../../request/paging.js'
import { presenter } from '../../response/presenter.js'
import { json, problem, type Route, route } from '../../route.js'
import { listed, named, reading, shown, writing } from './merchant-routes.js'

const AT = '/api/v1/commerce/x402-payments'
const capabilities = ['commerce.x402'] as const
const states = z.enum(['verifying', 'settling', 'unknown', 'settled', 'failed'])
const transaction = z.string().regex(/^0x[0-9a-fA-F]{64}$/)

const PaymentRecord = z
  .object({
    id: z.uuid(),
    charge_id: z.uuid(),
    payment_link_id: z.uuid().optional(),
    checkout_session_id: z.uuid().optional(),
    state: states.meta({ description: 'unknown: the settlement is not confirmed yet.' }),
    network: z.string().meta({ example: 'eip155:8453' }),
    asset: z.string(),
    payer: z.string(),
    pay_to: z.string(),
    amount: z.string().meta({ description: 'Atomic units of the asset.', example: '19990000' }),
    nonce: z.string(),
    valid_before: z.string().meta({
      description: 'Unix seconds. After this the authorization cannot be spent.',
    }),
    transaction: z.string().nullable().meta({
      description:
        'May be a hash that the facilitator named and that is not confirmed on the chain.',
    }),
    error_reason: z.string().nullable(),
    checks: z.int().meta({ description: 'Number of checks so far.' }),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'X402PaymentRecord' })

const paymentRecord = presenter(PaymentRecord)

const Resolution = z
  .discriminatedUnion('outcome', [
    z.object({ outcome: z.literal('settled'), transaction }),
    z.object({ outcome: z.literal('failed') }),
  ])
  .meta({ id: 'X402Resolution' })

export const x402PaymentRoutes: readonly Route[] = [
  route(x402, 'listX402Payments', {
    ...reading,
    capabilities,
    path: AT,
    summary: 'List the x402 payments of the tenant, newest first',
    query: PageQuery.safeExtend({ state: states.optional() }),
    message: ({ query, principal }) => ({
      tenantId: principal.tenantId,
      ...readPage(query),
      state: query.state ?? null,
    }),
    replies: { listed: listed(PaymentRecord, paymentRecord) },
  }),
  route(x402, 'resolveX402Payment', {
    ...writing,
    capabilities,
    path: `${AT}/{id}/resolve`,
    summary: 'Resolve a payment of unknown outcome',
    description:
      'For payments whose outcome neither the chain nor the facilitator reveals. Look the nonce up on the ' +
      'chain first. 409 when known facts contradict the outcome, and for `failed` until a minute ' +
      'after valid_before: until then the authorization could be spent. A repetition gets 200.',
    params: named,
    body: json(Resolution),
    message: (request) => ({
      caller: callerOf(request),
      id: request.params.id,
      resolution: request.body,
    }),
    replies: {
      changed: shown(PaymentRecord, paymentRecord),
      refused_resolution: problem(409, 'conflict', ({ detail }) => ({ detail })),
      unknown: problem(404, 'not-found', { detail: 'The payment does not exist in this tenant.' }),
    },
  }),
]
