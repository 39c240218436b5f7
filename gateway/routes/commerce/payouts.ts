/**
 * Refunds, subscriptions, settlements, disputes, payouts and merchant statements.
 * docs/reference/commerce.md.
 */
import { z } from 'zod'
import {
  type Changed,
  commerce,
  type Listed,
  type RefundOutcome,
  type Subscription,
} from '../../../actors/commerce/payments/protocol.js'
import { AMOUNT_MINOR_MAX } from '../../../actors/domain/commerce/currencies.js'
import type { Principal } from '../../../actors/domain/principal.js'
import { payouts } from '../../../actors/commerce/payouts/protocol.js'
import { callerOf } from '../../request/caller.js'
import { nextLink, PageQuery, readPage } from '../../request/paging.js'
import { json, problem, type Route, reply, route } from '../../route.js'
import { invalid } from './commerce.js'
import {
  chargeRecord,
  RefundedCharge,
  RefundRecord,
  refundRecord,
  SubscriptionRecord,
  subscriptionRecord,
} from './commerce-shapes.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'
import {
  BalanceRecord,
  balanceRecord,
  DisputeRecord,
  disputeRecord,
  PayoutRecord,
  payoutRecord,
  SettlementRecord,
  settlementRecord,
  StatementRecord,
  statementRecord,
} from './payout-shapes.js'

const AT = '/api/v1/commerce'
const named = z.object({ id: z.string().max(64) })
const readers = { scheme: 'bearer', scopes: ['commerce:read', 'commerce:manage'] } as const
const managers = { scheme: 'bearer', scopes: ['commerce:manage'] } as const
const shared = { tags: ['Commerce'], exposure: 'internal' } as const
const reading = { ...shared, method: 'GET', security: readers } as const
const writing = { ...shared, method: 'POST', security: managers } as const

const currency = z.string().regex(/^[A-Z]{3}$/)
const amount = z.int().min(1).max(AMOUNT_MINOR_MAX)
const unknown = problem(404, 'not-found', { detail: 'The resource does not exist in this tenant.' })
const notOpen = problem<{ readonly detail: string }, 'conflict'>(409, 'conflict', ({ detail }) => ({
  detail,
}))
const changedSubscription = reply(200, SubscriptionRecord, ({ row }: Changed<Subscription>) =>
  subscriptionRecord(row),
)

type Refunded = Extract<RefundOutcome, { tag: 'refunded' }>

type Paged = { readonly principal: Principal; readonly query: z.output<typeof PageQuery> }
const pageOf = ({ principal, query }: Paged) => ({
  tenantId: principal.tenantId,
  ...readPage(query),
})

/** A page of records, with a link to the next page. */
function listed<Row, Shape extends z.ZodType>(shape: Shape, show: (row: Row) => z.input<Shape>) {
  return reply(
    200,
    z.array(shape),
    ({ rows }: Listed<Row>) => rows.map(show),
    ({ next }, context) => nextLink(next, context),
  )
}

export const settlementRoutes: readonly Route[] = [
  route(commerce, 'refundCharge', {
    ...writing,
    path: `${AT}/charges/{id}/refund`,
    operationId: 'refundCharge',
    summary: 'Refund a charge in full or in part',
    description: 'Concurrent refunds never exceed the rest of the charge.',
    idempotent: true,
    params: named,
    body: json(
      z
        .object({
          amount_minor: amount.nullish().meta({ description: 'Default: the whole rest.' }),
          reason: z.string().trim().max(500).nullish(),
          external_reference: z
            .string()
            .trim()
            .min(1)
            .max(255)
            .nullish()
            .meta({
              description:
                'Your reference of the refund payment, such as a transaction hash. Required where the ' +
                'payment provider cannot refund, as with x402: the refund is then recorded.',
            }),
        })
        .meta({ id: 'RefundRequest' }),
      { optional: true },
    ),
    message: (request) => ({
      caller: callerOf(request),
      idempotency: request.idempotency,
      chargeId: request.params.id,
      amountMinor: request.body.amount_minor ?? null,
      reason: request.body.reason ?? null,
      externalReference: request.body.external_reference ?? null,
    }),
    replies: {
      refunded: reply(200, RefundedCharge, ({ charge, refund }: Refunded) => ({
        ...chargeRecord(charge),
        refund: refundRecord(refund),
      })),
      disputed: problem(409, 'conflict', { detail: 'The charge is in dispute.' }),
      not_paid: problem(409, 'conflict', { detail: 'The charge is not paid.' }),
      insufficient_funds: problem(409, 'conflict', {
        error: 'insufficient_balance',
        detail: 'The refund exceeds the balance at the payment provider, available and in reserve.',
      }),
      no_refunds: problem(409, 'conflict', {
        detail: 'This payment provider does not support refunds.',
      }),
      refused: problem(409, 'conflict', ({ code }) => ({
        detail: `The payment provider refused the refund: ${code}.`,
      })),
      unknown,
      invalid,
      ...idempotencyRefusals,
    },
  }),
  route(commerce, 'listRefunds', {
    ...reading,
    path: `${AT}/charges/{id}/refunds`,
    operationId: 'listRefunds',
    summary: 'List the refunds of a charge, oldest first',
    params: named,
    message: ({ params, principal }) => ({ tenantId: principal.tenantId, id: params.id }),
    replies: {
      refunds: reply(200, z.array(RefundRecord), ({ refunds }) => refunds.map(refundRecord)),
      unknown,
    },
  }),
  route(commerce, 'listSubscriptions', {
    ...reading,
    path: `${AT}/subscriptions`,
    operationId: 'listSubscriptions',
    summary: 'List the subscriptions of the tenant, newest first',
    query: PageQuery,
    message: pageOf,
    replies: { listed: listed(SubscriptionRecord, subscriptionRecord) },
  }),
  route(commerce, 'getSubscription', {
    ...reading,
    path: `${AT}/subscriptions/{id}`,
    operationId: 'getSubscription',
    summary: 'Read a subscription',
    params: named,
    message: ({ params, principal }) => ({ tenantId: principal.tenantId, id: params.id }),
    replies: {
      found: reply(200, SubscriptionRecord, ({ row }) => subscriptionRecord(row)),
      unknown,
    },
  }),
  route(commerce, 'cancelSubscription', {
    ...writing,
    path: `${AT}/subscriptions/{id}/cancel`,
    operationId: 'cancelSubscription',
    summary: 'Cancel a subscription at the end of its period or at once',
    description: 'At once: unpaid payment pages of the subscription are closed, too.',
    params: named,
    body: json(
      z.object({ at_period_end: z.boolean().default(true) }).meta({ id: 'CancelSubscription' }),
      { optional: true },
    ),
    message: (request) => ({
      caller: callerOf(request),
      id: request.params.id,
      atPeriodEnd: request.body.at_period_end,
    }),
    replies: { changed: changedSubscription, unknown, not_open: notOpen },
  }),
  route(commerce, 'simulateRenewal', {
    ...writing,
    path: `${AT}/subscriptions/{id}/simulate-renewal`,
    operationId: 'simulateRenewal',
    summary: 'In a sandbox: renew a subscription now with a given outcome',
    params: named,
    body: json(
      z.object({ outcome: z.enum(['succeed', 'decline']) }).meta({ id: 'SimulateRenewal' }),
    ),
    message: (request) => ({
      caller: callerOf(request),
      id: request.params.id,
      outcome: request.body.outcome,
    }),
    replies: { changed: changedSubscription, unknown, not_open: notOpen },
  }),
  route(payouts, 'listSettlements', {
    ...reading,
    path: `${AT}/settlements`,
    operationId: 'listSettlements',
    summary: 'List the settlements of the tenant, newest first',
    query: PageQuery,
    message: pageOf,
    replies: { listed: listed(SettlementRecord, settlementRecord) },
  }),
  route(payouts, 'listDisputes', {
    ...reading,
    path: `${AT}/disputes`,
    operationId: 'listDisputes',
    summary: 'List the disputes of the tenant, newest first',
    query: PageQuery,
    message: pageOf,
    replies: { listed: listed(DisputeRecord, disputeRecord) },
  }),
  route(payouts, 'closeDispute', {
    ...writing,
    path: `${AT}/disputes/{id}/close`,
    operationId: 'closeDispute',
    summary: 'In a sandbox: close a dispute with a given outcome',
    params: named,
    body: json(z.object({ outcome: z.enum(['won', 'lost']) }).meta({ id: 'CloseDispute' })),
    message: (request) => ({
      caller: callerOf(request),
      id: request.params.id,
      outcome: request.body.outcome,
    }),
    replies: {
      changed: reply(200, DisputeRecord, ({ row }) => disputeRecord(row)),
      closed: problem(409, 'conflict', { detail: 'The dispute is closed already.' }),
      not_sandbox: problem(409, 'conflict', {
        detail: 'The payment provider of the charge closes the dispute.',
      }),
      unknown,
    },
  }),
  route(payouts, 'listBalances', {
    ...reading,
    path: `${AT}/balances`,
    operationId: 'listBalances',
    summary: 'Read the balances of the merchant by currency, payment provider and account',
    message: ({ principal }) => ({ tenantId: principal.tenantId }),
    replies: {
      balances: reply(200, z.array(BalanceRecord), ({ balances }) => balances.map(balanceRecord)),
    },
  }),
  route(payouts, 'listPayouts', {
    ...reading,
    path: `${AT}/payouts`,
    operationId: 'listPayouts',
    summary: 'List the payouts of the tenant, newest first',
    query: PageQuery,
    message: pageOf,
    replies: { listed: listed(PayoutRecord, payoutRecord) },
  }),
  route(payouts, 'getPayout', {
    ...reading,
    path: `${AT}/payouts/{id}`,
    operationId: 'getPayout',
    summary: 'Read a payout',
    params: named,
    message: ({ params, principal }) => ({ tenantId: principal.tenantId, id: params.id }),
    replies: { found: reply(200, PayoutRecord, ({ row }) => payoutRecord(row)), unknown },
  }),
  route(payouts, 'createPayout', {
    ...writing,
    path: `${AT}/payouts`,
    operationId: 'createPayout',
    summary: 'Create a payout of the available balance',
    description: 'The payout is submitted at once. An event reports whether it was paid or failed.',
    idempotent: true,
    body: json(
      z
        .object({
          rail: z.string().max(32),
          currency,
          amount_minor: z
            .int()
            .min(1)
            .nullish()
            .meta({ description: 'Default: the whole available balance.' }),
        })
        .meta({ id: 'CreatePayout' }),
    ),
    message: (request) => ({
      caller: callerOf(request),
      idempotency: request.idempotency,
      rail: request.body.rail,
      currency: request.body.currency,
      amountMinor: request.body.amount_minor ?? null,
    }),
    replies: {
      created: reply(
        201,
        PayoutRecord,
        ({ row }) => payoutRecord(row),
        ({ row }) => ({ location: `${AT}/payouts/${row.id}` }),
      ),
      invalid,
      ...idempotencyRefusals,
    },
  }),
  route(payouts, 'listStatements', {
    ...reading,
    path: `${AT}/statements`,
    operationId: 'listStatements',
    summary: 'List the statements of the tenant, newest first',
    query: PageQuery,
    message: pageOf,
    replies: { listed: listed(StatementRecord, statementRecord) },
  }),
  route(payouts, 'getStatement', {
    ...reading,
    path: `${AT}/statements/{id}`,
    operationId: 'getStatement',
    summary: 'Read a statement',
    params: named,
    message: ({ params, principal }) => ({ tenantId: principal.tenantId, id: params.id }),
    replies: { found: reply(200, StatementRecord, ({ row }) => statementRecord(row)), unknown },
  }),
  route(payouts, 'createStatement', {
    ...writing,
    path: `${AT}/statements`,
    operationId: 'createStatement',
    summary: 'Create a statement of all ledger entries in a currency since the last one',
    description: 'The service also creates one at the beginning of every month (UTC).',
    idempotent: true,
    body: json(z.object({ currency }).meta({ id: 'CreateStatement' })),
    message: (request) => ({
      caller: callerOf(request),
      idempotency: request.idempotency,
      currency: request.body.currency,
    }),
    replies: {
      created: reply(
        201,
        StatementRecord,
        ({ row }) => statementRecord(row),
        ({ row }) => ({ location: `${AT}/statements/${row.id}` }),
      ),
      invalid,
      ...idempotencyRefusals,
    },
  }),
]
