/** Records of settlements, disputes, payouts, statements and balances. docs/reference/commerce.md. */
import { z } from 'zod'

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
