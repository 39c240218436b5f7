/**
 * Schemas of refunds, subscriptions, settlements, disputes, payouts and statements.
 * docs/reference/commerce.md.
 */
import { z } from 'zod'
import type {
  Balance,
  Dispute,
  Payout,
  Settlement,
  Statement,
} from '../../../actors/commerce/payouts/protocol.js'

const money = { amount_minor: z.int(), currency: z.string() }
const times = { created_at: z.iso.datetime(), updated_at: z.iso.datetime() }

export const SettlementRecord = z
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
export const DisputeRecord = z
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
export const PayoutRecord = z
  .object({
    id: z.uuid(),
    rail: z.string(),
    ...money,
    status: z.enum(['submitted', 'paid', 'failed']),
    failure_code: z.string().optional(),
    ...times,
  })
  .meta({ id: 'Payout' })
export const StatementRecord = z
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
export const BalanceRecord = z
  .object({
    currency: z.string(),
    rail: z.string(),
    pending_minor: z.int(),
    held_minor: z.int(),
    available_minor: z.int(),
    in_transit_minor: z.int(),
  })
  .meta({ id: 'Balance', description: 'The money of the merchant by ledger account.' })

const timesOf = (row: { readonly createdAt: Date; readonly updatedAt: Date }) => ({
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})

export function settlementRecord(row: Settlement) {
  const { id, chargeId, rail, amountMinor, currency, status, holdReason } = row
  return {
    id,
    charge_id: chargeId,
    rail,
    amount_minor: amountMinor,
    currency,
    status,
    ...(holdReason === null ? {} : { hold_reason: holdReason }),
    ...timesOf(row),
  }
}

export function disputeRecord(row: Dispute) {
  const { id, chargeId, amountMinor, currency, reason, status, outcome } = row
  return {
    id,
    charge_id: chargeId,
    amount_minor: amountMinor,
    currency,
    reason,
    status,
    ...(outcome === null ? {} : { outcome }),
    ...timesOf(row),
  }
}

export function payoutRecord(row: Payout) {
  const { id, rail, amountMinor, currency, status, failureCode } = row
  return {
    id,
    rail,
    amount_minor: amountMinor,
    currency,
    status,
    ...(failureCode === null ? {} : { failure_code: failureCode }),
    ...timesOf(row),
  }
}

export function statementRecord(row: Statement) {
  return {
    id: row.id,
    currency: row.currency,
    opening_balance_minor: row.openingBalanceMinor,
    closing_balance_minor: row.closingBalanceMinor,
    totals: row.totals,
    period_start: row.periodStart.toISOString(),
    period_end: row.periodEnd.toISOString(),
    created_at: row.createdAt.toISOString(),
  }
}

export function balanceRecord(row: Balance) {
  return {
    currency: row.currency,
    rail: row.rail,
    pending_minor: row.pendingMinor,
    held_minor: row.heldMinor,
    available_minor: row.availableMinor,
    in_transit_minor: row.inTransitMinor,
  }
}
