/** Refunds: parts of a charge on their way back. What is asked of a rail is reserved on the charge. */
import type { Transaction } from './sql.js'

export type RefundRow = {
  id: string
  tenantId: string
  chargeId: string
  amountMinor: number
  reason: string | null
  status: 'pending' | 'succeeded' | 'failed'
  failureCode: string | null
  createdAt: Date
}

const COLUMNS = `r.id, r.tenant_id as "tenantId", r.charge_id as "chargeId",
  r.amount_minor as "amountMinor", r.reason, r.status, r.failure_code as "failureCode",
  r.created_at as "createdAt"`

/**
 * Reserves a part of what is left of a paid charge that is not in dispute.
 * @param amountMinor null: all that is left.
 * @returns how much was reserved; undefined when that much is not left.
 */
export async function reserveRefund(
  tx: Transaction,
  tenantId: string,
  chargeId: string,
  amountMinor: number | null,
  now: Date,
): Promise<number | undefined> {
  const { rows } = await tx.query<{ reserved: number }>({
    name: 'refund.reserve',
    text: `with charge as (
             select tenant_id, id, amount_minor - refunded_amount_minor - refunding_amount_minor
               - reversed_amount_minor as rest
             from charges where tenant_id = $1 and id = $2 and status in ('succeeded', 'refunded')
             for no key update)
           update charges c set updated_at = $4,
             refunding_amount_minor = c.refunding_amount_minor + coalesce($3, charge.rest)
           from charge where c.tenant_id = charge.tenant_id and c.id = charge.id
             and charge.rest > 0 and charge.rest >= coalesce($3, charge.rest)
           returning coalesce($3, charge.rest) as reserved`,
    values: [tenantId, chargeId, amountMinor, now],
  })
  return rows[0]?.reserved
}

export async function insertRefund(
  tx: Transaction,
  row: Pick<RefundRow, 'id' | 'tenantId' | 'chargeId' | 'amountMinor' | 'reason' | 'createdAt'> & {
    readonly dueAt: Date
  },
): Promise<void> {
  await tx.query({
    name: 'refund.insert',
    text: `insert into refunds (tenant_id, id, charge_id, amount_minor, reason, due_at, created_at,
             updated_at)
           values ($1, $2, $3, $4, $5, $6, $7, $7)`,
    values: [
      row.tenantId,
      row.id,
      row.chargeId,
      row.amountMinor,
      row.reason,
      row.dueAt,
      row.createdAt,
    ],
  })
}

export async function findRefund(
  tx: Transaction,
  tenantId: string,
  id: string,
): Promise<RefundRow | undefined> {
  const { rows } = await tx.query<RefundRow>({
    name: 'refund.find',
    text: `select ${COLUMNS} from refunds r where tenant_id = $1 and id = $2`,
    values: [tenantId, id],
  })
  return rows[0]
}

/** pending -> succeeded or failed; the reservation becomes a refund, or is given up. */
export async function finishRefund(
  tx: Transaction,
  tenantId: string,
  id: string,
  failureCode: string | null,
  now: Date,
): Promise<boolean> {
  const { rowCount } = await tx.query({
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
  return rowCount === 1
}

/** Refunds whose rail has to be asked, until `leasedUntil`; other workers take others. Crosses tenants. */
export async function claimRefunds(
  tx: Transaction,
  now: Date,
  leasedUntil: Date,
  limit: number,
): Promise<RefundRow[]> {
  const { rows } = await tx.query<RefundRow>({
    name: 'refund.claim',
    text: `update refunds r set due_at = $2
           from (select tenant_id, id from refunds where due_at <= $1
                 order by due_at limit $3 for update skip locked) due
           where r.tenant_id = due.tenant_id and r.id = due.id
           returning ${COLUMNS}`,
    values: [now, leasedUntil, limit],
  })
  return rows
}
