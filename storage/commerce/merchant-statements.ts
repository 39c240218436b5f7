/** Merchant statements: each covers every ledger entry since the previous one, exactly once. */
import { columnsOf, tenantRows } from '../platform/portable/tenant-rows.js'
import { allRows, firstRow, type Transaction } from '../platform/sql.js'

export type MerchantStatementRow = {
  id: string
  tenantId: string
  currency: string
  firstSequence: number
  lastSequence: number
  /** The merchant's money in all accounts. Positive when the service owes it. */
  openingBalanceMinor: number
  closingBalanceMinor: number
  /** Change of the balance by kind of ledger entry. */
  totals: Record<string, { count: number; amount_minor: number }>
  periodStart: Date
  periodEnd: Date
  createdAt: Date
}

const COLUMNS = columnsOf(`id tenant_id currency first_sequence last_sequence
  opening_balance_minor closing_balance_minor totals period_start period_end created_at`)

export const statementRows = tenantRows<MerchantStatementRow>('statement', 'statements', COLUMNS)

/**
 * Issues a statement over a currency's book up to now. The lock of the book prevents concurrent
 * entries, so that no entry is covered twice or omitted.
 * @returns undefined when nothing was booked since the last statement.
 */
export async function insertMerchantStatement(
  tx: Transaction,
  tenantId: string,
  currency: string,
  id: string,
  now: Date,
): Promise<MerchantStatementRow | undefined> {
  await tx.query({
    name: 'statement.lock_book',
    text: 'select 1 from ledger_books where tenant_id = $1 and currency = $2 for no key update',
    values: [tenantId, currency],
  })
  return firstRow<MerchantStatementRow>(tx, {
    name: 'statement.insert',
    text: `with before as (
             select coalesce(max(last_sequence), 0) as last_sequence,
               (array_agg(closing_balance_minor order by last_sequence desc))[1] as balance,
               max(period_end) as period_end
             from statements where tenant_id = $1 and currency = $2),
           told as (
             select e.sequence, e.kind, e.created_at,
               -coalesce(sum(l.amount_minor) filter (where l.account <> 'clearing'), 0) as amount
             from ledger_entries e join ledger_lines l on l.tenant_id = e.tenant_id
               and l.entry_id = e.id
             where e.tenant_id = $1 and e.currency = $2
               and e.sequence > (select last_sequence from before)
             group by e.sequence, e.kind, e.created_at),
           kinds as (
             select jsonb_object_agg(kind, jsonb_build_object('count', count, 'amount_minor', amount))
               as totals
             from (select kind, count(*) as count, sum(amount)::bigint as amount
                   from told group by kind) k)
           insert into statements (tenant_id, id, currency, first_sequence, last_sequence,
             opening_balance_minor, closing_balance_minor, totals, period_start, period_end,
             created_at)
           select $1, $3, $2, min(told.sequence), max(told.sequence),
             coalesce((select balance from before), 0),
             coalesce((select balance from before), 0) + sum(told.amount)::bigint,
             (select totals from kinds),
             coalesce((select period_end from before), min(told.created_at)), $4, $4
           from told having count(*) > 0
           returning ${COLUMNS}`,
    values: [tenantId, currency, id, now],
  })
}

/**
 * Books with entries, whose last statement is older than the start of the month. Crosses tenants.
 */
export const booksToClose = (tx: Transaction, monthStart: Date, limit: number) =>
  allRows<{ tenantId: string; currency: string }>(tx, {
    name: 'statement.books_to_close',
    text: `select b.tenant_id as "tenantId", b.currency from ledger_books b
           where not exists (select from statements s where s.tenant_id = b.tenant_id
                   and s.currency = b.currency and (s.period_end >= $1
                     or s.last_sequence = b.last_sequence))
             and exists (select from ledger_entries e where e.tenant_id = b.tenant_id
                   and e.currency = b.currency and e.sequence = 1 and e.created_at < $1)
           limit $2`,
    values: [monthStart, limit],
  })
