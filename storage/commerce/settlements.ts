/** Settlements: the way of a charge's money to its merchant. created -> held <-> released. */
import { columnsOf, tenantRows } from '../platform/portable/tenant-rows.js'
import { execute, firstRow, onlyRow, type Transaction } from '../platform/sql.js'
import { claims } from './due-rows.js'

export type SettlementStatus = 'created' | 'held' | 'released'

export type SettlementRow = {
  id: string
  tenantId: string
  chargeId: string
  rail: string
  /** Rest after refunds and disputes. */
  amountMinor: number
  currency: string
  status: SettlementStatus
  holdReason: 'clearing' | 'dispute' | null
  createdAt: Date
  updatedAt: Date
}

const COLUMNS = columnsOf(
  'id tenant_id charge_id rail amount_minor currency status hold_reason created_at updated_at',
  's',
)

export const settlementRows = tenantRows<SettlementRow>('settlement', 'settlements s', COLUMNS)

export const insertSettlement = (
  tx: Transaction,
  row: Omit<SettlementRow, 'status' | 'holdReason' | 'updatedAt'> & { readonly dueAt: Date },
) =>
  onlyRow<SettlementRow>(tx, {
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

/**
 * Locks the settlement of a charge until the end of the transaction. Undefined for direct payments.
 */
export const lockSettlement = (tx: Transaction, tenantId: string, chargeId: string) =>
  firstRow<SettlementRow>(tx, {
    name: 'settlement.lock',
    text: `select ${COLUMNS} from settlements s where tenant_id = $1 and charge_id = $2
           for no key update`,
    values: [tenantId, chargeId],
  })

type SettlementStep = {
  readonly tenantId: string
  readonly id: string
  readonly from: SettlementStatus
  readonly to: 'held' | 'released'
  readonly holdReason: 'clearing' | 'dispute' | null
  /** When a worker moves it on. Null when only a dispute can. */
  readonly dueAt: Date | null
  readonly now: Date
}

/** Moves a settlement by one step. @returns undefined when it has another status by now. */
export const moveSettlement = (tx: Transaction, step: SettlementStep) =>
  firstRow<SettlementRow>(tx, {
    name: 'settlement.move',
    text: `update settlements s set status = $4, hold_reason = $5, due_at = $6, updated_at = $7
           where s.tenant_id = $1 and s.id = $2 and s.status = $3 returning ${COLUMNS}`,
    values: [step.tenantId, step.id, step.from, step.to, step.holdReason, step.dueAt, step.now],
  })

/** Subtracts a refund or a lost dispute. Lock the settlement first. */
export const reduceSettlement = (
  tx: Transaction,
  tenantId: string,
  id: string,
  byMinor: number,
  now: Date,
) =>
  execute(tx, {
    name: 'settlement.reduce',
    text: `update settlements set amount_minor = amount_minor - $3, updated_at = $4
           where tenant_id = $1 and id = $2`,
    values: [tenantId, id, byMinor, now],
  })

/** Leases what is due: settlements that move on. */
export const claimSettlements = claims<SettlementRow>('settlement', 'settlements', 's', COLUMNS)
