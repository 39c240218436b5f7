/**
 * The double-entry ledger. Debits are positive, credits negative. The lines of an entry sum to
 * zero, which the database checks with the posting and again at commit. Entries are numbered per tenant and currency in commit
 * order, without gaps.
 */
import { allRows, execute, onlyValue, type Transaction } from '../platform/sql.js'

/**
 * `clearing` is owed by a payment provider. The other accounts are the merchant's: `pending` (on
 * its way), `held`, `available` (for payouts) and `in_transit` (in a payout).
 */
export type LedgerAccount = 'clearing' | 'pending' | 'held' | 'available' | 'in_transit'

type LedgerLine = {
  readonly account: LedgerAccount
  readonly rail: string
  readonly amountMinor: number
}

type NewLedgerEntry = {
  readonly tenantId: string
  readonly id: string
  readonly currency: string
  /** Each subject and kind is booked once, except `settlement.*`. */
  readonly kind: LedgerKind
  /** Id of the charge, refund, settlement, dispute or payout. */
  readonly subjectId: string
  readonly lines: readonly LedgerLine[]
  readonly createdAt: Date
}

type LedgerKind =
  | 'charge'
  | 'charge.direct'
  | 'refund'
  | 'refund.reverted'
  | 'refund.direct'
  | 'settlement.held'
  | 'settlement.released'
  | 'dispute.lost'
  | 'payout'
  | 'payout.paid'
  | 'payout.failed'

/**
 * Books an entry. Concurrent entries of the tenant and currency wait until the end of the
 * transaction. Lines with amount zero are omitted, and an entry without lines is not booked.
 */
export async function postEntry(tx: Transaction, entry: NewLedgerEntry): Promise<void> {
  const lines = entry.lines.filter(({ amountMinor }) => amountMinor !== 0)
  if (lines.length === 0) return
  const posting = tx.query({
    name: 'ledger.post',
    text: `with book as (
             insert into ledger_books as b (tenant_id, currency, last_sequence) values ($1, $3, 1)
             on conflict (tenant_id, currency) do update set last_sequence = b.last_sequence + 1
             returning last_sequence),
           entry as (
             insert into ledger_entries (tenant_id, currency, sequence, id, kind, subject_id,
               created_at)
             select $1, $3, last_sequence, $2, $4, $5, $6 from book returning id)
           insert into ledger_lines (tenant_id, entry_id, number, currency, rail, account,
             amount_minor)
           select $1, entry.id, l.number, $3, l.rail, l.account, l.amount
           from entry, unnest($7::text[], $8::text[], $9::bigint[])
             with ordinality as l (rail, account, amount, number)`,
    values: [
      entry.tenantId,
      entry.id,
      entry.currency,
      entry.kind,
      entry.subjectId,
      entry.createdAt,
      lines.map(({ rail }) => rail),
      lines.map(({ account }) => account),
      lines.map(({ amountMinor }) => amountMinor),
    ],
  })
  const checking = tx.query({
    name: 'ledger.require_balance',
    text: 'select svc_ledger_require_balance($1, $2)',
    values: [entry.tenantId, entry.id],
  })
  await Promise.all([posting, checking])
}

/**
 * Maximum balance for an account to accept payments. Accounts hold exact integers up to
 * 2^53 - 1 (0012_commerce). The reserve above this limit covers a thousand maximum charges in
 * progress, with their refunds and disputes.
 */
export const BOOK_MINOR_MAX = 8_000_000_000_000_000

/**
 * True if the accounts of a payment provider have room for the amount. Checked before the provider
 * is called: money that was taken must be booked.
 */
export const roomInBooks = (
  tx: Transaction,
  tenantId: string,
  currency: string,
  rail: string,
  amountMinor: number,
) =>
  onlyValue<boolean>(tx, {
    name: 'ledger.room',
    text: `select coalesce(max(abs(balance_minor)), 0) + $4::bigint <= $5::bigint as room
           from ledger_accounts where tenant_id = $1 and currency = $2 and rail = $3`,
    values: [tenantId, currency, rail, amountMinor, BOOK_MINOR_MAX],
  })

export type LedgerBalance = {
  currency: string
  rail: string
  account: LedgerAccount
  /** Debits minus credits: the merchant's money is negative. */
  balanceMinor: number
}

export const balanceRows = (tx: Transaction, tenantId: string) =>
  allRows<LedgerBalance>(tx, {
    name: 'ledger.balances',
    text: `select currency, rail, account, balance_minor as "balanceMinor" from ledger_accounts
           where tenant_id = $1 order by currency, rail, account`,
    values: [tenantId],
  })

/** Locks the book of a currency until the end of the transaction. Concurrent entries wait. */
export const lockBook = (tx: Transaction, tenantId: string, currency: string) =>
  execute(tx, {
    name: 'ledger.lock_book',
    text: `select 1 from ledger_books where tenant_id = $1 and currency = $2 for no key update`,
    values: [tenantId, currency],
  })

/**
 * The amount that a payout can send: everything booked at the provider, minus pending refunds.
 * Locks the book.
 */
export async function lockAvailable(
  tx: Transaction,
  tenantId: string,
  currency: string,
  rail: string,
): Promise<number> {
  await lockBook(tx, tenantId, currency)
  const { rows } = await tx.query<{ available: number }>({
    name: 'ledger.available',
    text: `select -a.balance_minor - (
             select coalesce(sum(c.refunding_amount_minor), 0)::bigint from charges c
             where c.tenant_id = $1 and c.currency = $2 and c.rail = $3
               and c.refunding_amount_minor > 0) as available
           from ledger_accounts a
           where a.tenant_id = $1 and a.currency = $2 and a.rail = $3 and a.account = 'available'`,
    values: [tenantId, currency, rail],
  })
  return rows[0]?.available ?? 0
}
