/** Disputes: the buyer's bank reclaims a payment. opened -> closed. */
import { columnsOf, tenantRows } from '../platform/portable/tenant-rows.js'
import { firstRow, type Transaction } from '../platform/sql.js'

export type DisputeRow = {
  id: string
  tenantId: string
  chargeId: string
  /** The rest of the charge when the dispute was opened. */
  amountMinor: number
  currency: string
  reason: string
  status: 'opened' | 'closed'
  outcome: 'won' | 'lost' | null
  createdAt: Date
  updatedAt: Date
}

const COLUMNS = columnsOf(
  'id tenant_id charge_id amount_minor currency reason status outcome created_at updated_at',
)

export const disputeRows = tenantRows<DisputeRow>('dispute', 'disputes', COLUMNS)

/** @returns undefined when the charge was disputed before. */
export const insertDispute = (
  tx: Transaction,
  row: Omit<DisputeRow, 'status' | 'outcome' | 'updatedAt'>,
) =>
  firstRow<DisputeRow>(tx, {
    name: 'dispute.insert',
    text: `insert into disputes (tenant_id, id, charge_id, amount_minor, currency, reason,
             created_at, updated_at)
           values ($1, $2, $3, $4, $5, $6, $7, $7) on conflict do nothing returning ${COLUMNS}`,
    values: [
      row.tenantId,
      row.id,
      row.chargeId,
      row.amountMinor,
      row.currency,
      row.reason,
      row.createdAt,
    ],
  })

/** opened -> closed. @returns undefined when it is not open. */
export const closeDisputeRow = (
  tx: Transaction,
  tenantId: string,
  id: string,
  outcome: 'won' | 'lost',
  now: Date,
) =>
  firstRow<DisputeRow>(tx, {
    name: 'dispute.close',
    text: `update disputes set status = 'closed', outcome = $3, updated_at = $4
           where tenant_id = $1 and id = $2 and status = 'opened' returning ${COLUMNS}`,
    values: [tenantId, id, outcome, now],
  })

/** The dispute of a charge. A charge has at most one. */
export const findDisputeOf = (tx: Transaction, tenantId: string, chargeId: string) =>
  firstRow<DisputeRow>(tx, {
    name: 'dispute.of_charge',
    text: `select ${COLUMNS} from disputes where tenant_id = $1 and charge_id = $2`,
    values: [tenantId, chargeId],
  })
