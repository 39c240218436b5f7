/** The way of a charge's money to its merchant: created -> held <-> released (decisions.md 10). */
import type { Transaction } from './sql.js'

export type SettlementStatus = 'created' | 'held' | 'released'

export type SettlementRow = {
  id: string
  tenantId: string
  chargeId: string
  rail: string
  /** What is left of it after refunds and disputes. */
  amountMinor: number
  currency: string
  status: SettlementStatus
  holdReason: 'clearing' | 'dispute' | null
  createdAt: Date
  updatedAt: Date
}

const COLUMNS = `s.id, s.tenant_id as "tenantId", s.charge_id as "chargeId", s.rail,
  s.amount_minor as "amountMinor", s.currency, s.status, s.hold_reason as "holdReason",
  s.created_at as "createdAt", s.updated_at as "updatedAt"`

export async function insertSettlement(
  tx: Transaction,
  row: Omit<SettlementRow, 'status' | 'holdReason' | 'updatedAt'> & { readonly dueAt: Date },
): Promise<SettlementRow> {
  const { rows } = await tx.query<SettlementRow>({
    name: 'settlement.insert',
    text: `insert into settlements as s (tenant_id, id, charge_id, rail, amount_minor, currency,
             due_at, created_at, updated_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $8) returning ${COLUMNS}`,
    values: [
      row.tenantId,
      row.id,
      row.chargeId,
      row.rail,
      row.amountMinor,
      row.currency,
      row.dueAt,
      row.createdAt,
    ],
  })
  return rows[0]!
}

/** The settlement of a charge, locked to the end of the transaction; undefined on direct rails. */
export async function lockSettlement(
  tx: Transaction,
  tenantId: string,
  chargeId: string,
): Promise<SettlementRow | undefined> {
  const { rows } = await tx.query<SettlementRow>({
    name: 'settlement.lock',
    text: `select ${COLUMNS} from settlements s where tenant_id = $1 and charge_id = $2
           for no key update`,
    values: [tenantId, chargeId],
  })
  return rows[0]
}
