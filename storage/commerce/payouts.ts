/** Payouts: transfers of the available balance to the merchant. submitted -> paid or failed. */
import { tenantInForce } from '../platform/in-force.js'
import { columnsOf, tenantRows } from '../platform/portable/tenant-rows.js'
import { firstRow, onlyRow, type Transaction } from '../platform/sql.js'
import { claims } from './due-rows.js'

export type PayoutRow = {
  id: string
  tenantId: string
  rail: string
  amountMinor: number
  currency: string
  status: 'submitted' | 'paid' | 'failed'
  failureCode: string | null
  createdAt: Date
  updatedAt: Date
}

const COLUMNS = columnsOf(
  'id tenant_id rail amount_minor currency status failure_code created_at updated_at',
  'p',
)

export const payoutRows = tenantRows<PayoutRow>('payout', 'payouts p', COLUMNS)

export const insertPayout = (
  tx: Transaction,
  row: Omit<PayoutRow, 'status' | 'failureCode' | 'updatedAt'> & { readonly dueAt: Date },
) =>
  onlyRow<PayoutRow>(tx, {
    name: 'payout.insert',
    text: `insert into payouts as p (tenant_id, id, rail, amount_minor, currency, due_at,
             created_at, updated_at)
           values ($1, $2, $3, $4, $5, $6, $7, $7) returning ${COLUMNS}`,
    values: [
      row.tenantId,
      row.id,
      row.rail,
      row.amountMinor,
      row.currency,
      row.dueAt,
      row.createdAt,
    ],
  })

/** submitted -> paid, or failed with a code. @returns undefined when it has ended before. */
export const finishPayout = (
  tx: Transaction,
  tenantId: string,
  id: string,
  failureCode: string | null,
  now: Date,
) =>
  firstRow<PayoutRow>(tx, {
    name: 'payout.finish',
    text: `update payouts p set due_at = null, failure_code = $3, updated_at = $4,
             status = case when $3::text is null then 'paid' else 'failed' end
           where tenant_id = $1 and id = $2 and status = 'submitted' returning ${COLUMNS}`,
    values: [tenantId, id, failureCode, now],
  })

/** Leases what is due: payouts that a provider has not answered. */
export const claimPayouts = claims<PayoutRow>(
  'payout',
  'payouts',
  'p',
  COLUMNS,
  `and ${tenantInForce('d.tenant_id')}`,
)
