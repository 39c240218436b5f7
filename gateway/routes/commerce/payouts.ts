/**
 * Refunds, subscriptions, settlements, disputes, payouts and merchant statements.
 * docs/reference/commerce.md.
 */
import { z } from 'zod'
import { commerce, type RefundOutcome } from '../../../actors/commerce/payments/protocol.js'
import { AMOUNT_MINOR_MAX } from '../../../actors/domain/commerce/currencies.js'
import { payouts } from '../../../actors/commerce/payments/payouts/protocol.js'
import { callerOf } from '../../request/caller.js'
import { presenter } from '../../response/presenter.js'
import { json, problem, type Route, reply, route } from '../../route.js'
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
  created,
  invalid,
  lists,
  named,
  reading,
  reads,
  shown,
  unknown,
  writing,
} from './merchant-routes.js'

const AT = '/api/v1/commerce'
const currency = z.string().regex(/^[A-Z]{3}$/)
const amount = z.int().min(1).max(AMOUNT_MINOR_MAX)
const notOpen = problem<{ readonly detail: string }, 'conflict'>(409, 'conflict', ({ detail }) => ({
  detail,
}))
const changedSubscription = shown(SubscriptionRecord, subscriptionRecord)
const money = { amount_minor: z.int(), currency: z.string() }
const times = { created_at: z.iso.datetime(), updated_at: z.iso.datetime() }

const SettlementRecord = z
  .object({
    id: z.uuid(),
    charge_id: z.uuid(),
    rail: z.string(),
    ...money,
    status: z.enum(['created', 'held', 'released']),
    hold_reason: z.enum(['clearing', 'dispute']).optional(),
    ...times,
  })
  .meta({ id: 'Settlement' })
const DisputeRecord = z
  .object({
    id: z.uuid(),
    charge_id: z.uuid(),
    ...money,
    reason: z.string(),
    status: z.enum(['opened', 'closed']),
    outcome: z.enum(['won', 'lost']).optional(),
    ...times,
  })
  .meta({ id: 'Dispute' })
const PayoutRecord = z
  .object({
    id: z.uuid(),
    rail: z.string(),
    ...money,
    status: z.enum(['submitted', 'paid', 'failed']),
    failure_code: z.string().optional(),
    ...times,
  })
  .meta({ id: 'Payout' })
const StatementRecord = z
  .object({
    id: z.uuid(),
    currency: z.string(),
    opening_balance_minor: z.int(),
    closing_balance_minor: z.int(),
    totals: z
      .record(z.string(), z.object({ count: z.int(), amount_minor: z.int() }))
      .meta({ description: 'Change of the balance by kind of ledger entry.' }),
    period_start: z.iso.datetime(),
    period_end: z.iso.datetime(),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Statement' })
const BalanceRecord = z
  .object({
    currency: z.string(),
    rail: z.string(),
    pending_minor: z.int(),
    held_minor: z.int(),
    available_minor: z.int(),
    in_transit_minor: z.int(),
  })
  .meta({ id: 'Balance', description: 'The money of the merchant by ledger account.' })

const disputeRecord = presenter(DisputeRecord)
const payoutRecord = presenter(PayoutRecord)
const statementRecord = presenter(StatementRecord)
const balanceRecord = presenter(BalanceRecord)

type Refunded = Extract<RefundOutcome, { tag: 'refunded' }>

export const settlementRoutes: readonly Route[] = [
  route(commerce, 'refundCharge', {
    ...writing,
    path: `${AT}/charges/{id}/refund`,
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
    summary: 'List the refunds of a charge, oldest first',
    params: named,
    message: ({ params, principal }) => ({ tenantId: principal.tenantId, id: params.id }),
    replies: {
      refunds: reply(200, z.array(RefundRecord), ({ refunds }) => refunds.map(refundRecord)),
      unknown,
    },
  }),
  lists(commerce, 'listSubscriptions', 'subscriptions', SubscriptionRecord, subscriptionRecord),
  reads(commerce, 'getSubscription', 'subscriptions', SubscriptionRecord, subscriptionRecord),
  route(commerce, 'cancelSubscription', {
    ...writing,
    path: `${AT}/subscriptions/{id}/cancel`,
    summary: 'Cancel a subscription at the end of its period or immediately',
    description: 'An immediate cancellation also closes unpaid payment pages of the subscription.',
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
  lists(payouts, 'listSettlements', 'settlements', SettlementRecord, presenter(SettlementRecord)),
  lists(payouts, 'listDisputes', 'disputes', DisputeRecord, disputeRecord),
  route(payouts, 'closeDispute', {
    ...writing,
    path: `${AT}/disputes/{id}/close`,
    summary: 'In a sandbox: close a dispute with a given outcome',
    params: named,
    body: json(z.object({ outcome: z.enum(['won', 'lost']) }).meta({ id: 'CloseDispute' })),
    message: (request) => ({
      caller: callerOf(request),
      id: request.params.id,
      outcome: request.body.outcome,
    }),
    replies: {
      changed: shown(DisputeRecord, disputeRecord),
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
    summary: 'Read the balances of the merchant by currency, payment provider and account',
    message: ({ principal }) => ({ tenantId: principal.tenantId }),
    replies: {
      balances: reply(200, z.array(BalanceRecord), ({ balances }) => balances.map(balanceRecord)),
    },
  }),
  lists(payouts, 'listPayouts', 'payouts', PayoutRecord, payoutRecord),
  reads(payouts, 'getPayout', 'payouts', PayoutRecord, payoutRecord),
  route(payouts, 'createPayout', {
    ...writing,
    path: `${AT}/payouts`,
    summary: 'Create a payout of the available balance',
    description:
      'The payout is submitted immediately. An event reports whether it was paid or failed.',
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
      created: created('payouts', PayoutRecord, payoutRecord),
      invalid,
      ...idempotencyRefusals,
    },
  }),
  lists(payouts, 'listStatements', 'statements', StatementRecord, statementRecord),
  reads(payouts, 'getStatement', 'statements', StatementRecord, statementRecord),
  route(payouts, 'createStatement', {
    ...writing,
    path: `${AT}/statements`,
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
      created: created('statements', StatementRecord, statementRecord),
      invalid,
      ...idempotencyRefusals,
    },
  }),
]
