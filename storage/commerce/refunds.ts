/**
 * Refunds of charges, in part or in full. The amount requested from a provider is reserved on the
 * charge.
 */
import { lockCharge } from './charges.js'
import { lockBook } from './ledger.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'
import { allRows, execute, firstRow, isChanged, type Transaction } from '../platform/sql.js'
import { claims } from './due-rows.js'

export type RefundRow = {
  id: string
  tenantId: string
  chargeId: string
  amountMinor: number
  reason: string | null
  /** `recorded`: the merchant sent the money back without the service. */
  status: 'pending' | 'succeeded' | 'failed' | 'recorded'
  failureCode: string | null
  /** The merchant's reference of the refund payment, if any. */
  externalReference: string | null
  createdAt: Date
}

const COLUMNS = columnsOf(
  'id tenant_id charge_id amount_minor reason status failure_code external_reference created_at',
  'r',
)

/** The refundable rest of a charge. */
const REST = `(c.amount_minor - c.refunded_amount_minor - c.refunding_amount_minor
  - c.reversed_amount_minor)`

/**
 * The merchant's money at a provider: the available balance, and in reserve what will become
 * available. Disputed money and pending refunds do not count. Needs the lock of the book. $1 is the
 * tenant, `c` the charge.
 */
const FUNDS = `((select coalesce(sum(-a.balance_minor), 0) from ledger_accounts a
   where a.tenant_id = $1 and a.currency = c.currency and a.rail = c.rail
     and a.account = 'available')
  + (select coalesce(sum(s.amount_minor), 0) from settlements s
     where s.tenant_id = $1 and s.currency = c.currency and s.rail = c.rail
       and (s.status = 'created' or s.hold_reason = 'clearing'))
  - (select coalesce(sum(o.refunding_amount_minor), 0) from charges o
     where o.tenant_id = $1 and o.currency = c.currency and o.rail = c.rail
       and o.refunding_amount_minor > 0))`

/**
 * Reserves a part of the rest of a paid, undisputed charge. Never more than the merchant's money at
 * the provider: the platform does not lend.
 * @param amountMinor null: the whole rest.
 * @returns the reserved amount, `left` when it exceeds the rest of the charge, or `funds` when it
 *   exceeds the merchant's money.
 */
export async function reserveRefund(
  tx: Transaction,
  charge: { readonly tenantId: string; readonly id: string; readonly currency: string },
  amountMinor: number | null,
  now: Date,
): Promise<number | 'left' | 'funds'> {
  const { tenantId, id, currency } = charge
  // Lock order: the charge, then the book.
  await lockCharge(tx, tenantId, id)
  await lockBook(tx, tenantId, currency)
  const { rows } = await tx.query<{ reserved: number }>({
    name: 'refund.reserve',
    text: `with asked as (
             select c.id, coalesce($3, ${REST}) as amount
             from charges c where c.tenant_id = $1 and c.id = $2
               and c.status in ('succeeded', 'refunded')
               and ${REST} > 0 and ${REST} >= coalesce($3, ${REST})
               and ${FUNDS} >= coalesce($3, ${REST}))
           update charges c set updated_at = $4,
             refunding_amount_minor = c.refunding_amount_minor + asked.amount
           from asked where c.tenant_id = $1 and c.id = asked.id
           returning asked.amount as reserved`,
    values: [tenantId, id, amountMinor, now],
  })
  const [row] = rows
  if (row !== undefined) return row.reserved
  const left = await tx.query<{ enough: boolean }>({
    name: 'refund.left',
    text: `select ${REST} > 0 and ${REST} >= coalesce($3, ${REST}) as enough
           from charges c where c.tenant_id = $1 and c.id = $2`,
    values: [tenantId, id, amountMinor],
  })
  return left.rows[0]?.enough === true ? 'funds' : 'left'
}

/**
 * Books a refund that the merchant sent without the service.
 * @returns the amount. Undefined when it exceeds the rest of the charge.
 */
export async function recordRefunded(
  tx: Transaction,
  tenantId: string,
  chargeId: string,
  amountMinor: number | null,
  now: Date,
): Promise<number | undefined> {
  await lockCharge(tx, tenantId, chargeId)
  const { rows } = await tx.query<{ recorded: number }>({
    name: 'refund.record',
    text: `with asked as (
             select c.id, coalesce($3, ${REST}) as amount
             from charges c where c.tenant_id = $1 and c.id = $2
               and c.status in ('succeeded', 'refunded')
               and ${REST} > 0 and ${REST} >= coalesce($3, ${REST}))
           update charges c set updated_at = $4, status = 'refunded',
             refunded_amount_minor = c.refunded_amount_minor + asked.amount
           from asked where c.tenant_id = $1 and c.id = asked.id
           returning asked.amount as recorded`,
    values: [tenantId, chargeId, amountMinor, now],
  })
  return rows[0]?.recorded
}

/** Refunds of a charge, oldest first. */
export const refundsOfCharge = (tx: Transaction, tenantId: string, chargeId: string) =>
  allRows<RefundRow>(tx, {
    name: 'refund.of_charge',
    text: `select ${COLUMNS} from refunds r where tenant_id = $1 and charge_id = $2
           order by created_at, id`,
    values: [tenantId, chargeId],
  })

export const insertRefund = (
  tx: Transaction,
  row: Pick<
    RefundRow,
    | 'id'
    | 'tenantId'
    | 'chargeId'
    | 'amountMinor'
    | 'reason'
    | 'status'
    | 'externalReference'
    | 'createdAt'
  > & {
    /** Null unless the refund is pending. */
    readonly dueAt: Date | null
  },
) =>
  execute(tx, {
    name: 'refund.insert',
    text: `insert into refunds (tenant_id, id, charge_id, amount_minor, reason, due_at, created_at,
             updated_at, status, external_reference)
           values ($1, $2, $3, $4, $5, $6, $7, $7, $8, $9)`,
    values: [
      row.tenantId,
      row.id,
      row.chargeId,
      row.amountMinor,
      row.reason,
      row.dueAt,
      row.createdAt,
      row.status,
      row.externalReference,
    ],
  })

export const findRefund = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<RefundRow>(tx, {
    name: 'refund.find',
    text: `select ${COLUMNS} from refunds r where tenant_id = $1 and id = $2`,
    values: [tenantId, id],
  })

/** pending -> succeeded or failed: the reservation becomes a refund, or is released. */
export const finishRefund = (
  tx: Transaction,
  tenantId: string,
  id: string,
  failureCode: string | null,
  now: Date,
) =>
  isChanged(tx, {
    name: 'refund.finish',
    text: `with ended as (
             update refunds set status = case when $3::text is null then 'succeeded' else 'failed' end,
               failure_code = $3, due_at = null, updated_at = $4
             where tenant_id = $1 and id = $2 and status = 'pending'
             returning tenant_id, charge_id, amount_minor, status)
           update charges c set updated_at = $4,
             refunding_amount_minor = c.refunding_amount_minor - ended.amount_minor,
             refunded_amount_minor = c.refunded_amount_minor
               + case when ended.status = 'succeeded' then ended.amount_minor else 0 end,
             status = case when ended.status = 'succeeded' then 'refunded' else c.status end
           from ended where c.tenant_id = ended.tenant_id and c.id = ended.charge_id`,
    values: [tenantId, id, failureCode, now],
  })

/** Leases what is due: refunds that a provider has not answered. */
export const claimRefunds = claims<RefundRow>('refund', 'refunds', 'r', COLUMNS)

/**
 * Reserves a refund that was made at the provider, so that it is booked like a refund made here.
 * @returns false when it exceeds the rest of the charge.
 */
export const reserveForeignRefund = (
  tx: Transaction,
  tenantId: string,
  chargeId: string,
  amountMinor: number,
  now: Date,
) =>
  isChanged(tx, {
    name: 'refund.reserve_foreign',
    text: `update charges c set updated_at = $4,
             refunding_amount_minor = c.refunding_amount_minor + $3
           where c.tenant_id = $1 and c.id = $2 and c.status in ('succeeded', 'refunded')
             and ${REST} >= $3`,
    values: [tenantId, chargeId, amountMinor, now],
  })

/**
 * succeeded -> failed: the provider could not carry the refund out. Its amount belongs to the rest
 * of the charge again.
 */
export const revertRefund = (
  tx: Transaction,
  tenantId: string,
  id: string,
  failureCode: string,
  now: Date,
) =>
  isChanged(tx, {
    name: 'refund.revert',
    text: `with reverted as (
             update refunds set status = 'failed', failure_code = $3, updated_at = $4
             where tenant_id = $1 and id = $2 and status = 'succeeded'
             returning tenant_id, charge_id, amount_minor)
           update charges c set updated_at = $4,
             refunded_amount_minor = c.refunded_amount_minor - reverted.amount_minor,
             status = case when c.refunded_amount_minor > reverted.amount_minor
                        then 'refunded' else 'succeeded' end
           from reverted where c.tenant_id = reverted.tenant_id and c.id = reverted.charge_id`,
    values: [tenantId, id, failureCode, now],
  })
