/**
 * Transfers that pay a checkout by their amount. awaited -> arrived -> booked or surplus; awaited
 * -> void. Each transition is one conditional statement.
 */
import { columnsOf } from '../platform/portable/tenant-rows.js'
import {
  allRows,
  changedRows,
  execute,
  firstValue,
  isChanged,
  type Transaction,
} from '../platform/sql.js'

type TransferState = 'awaited' | 'arrived' | 'booked' | 'surplus' | 'void'

export type CheckoutTransferRow = {
  tenantId: string
  id: string
  checkoutSessionId: string
  chargeId: string
  network: string
  asset: string
  payTo: string
  /** Atomic units, decimal. */
  amount: string
  state: TransferState
  payer: string | null
  transaction: string | null
  logIndex: number | null
}

type NewTransfer = Pick<
  CheckoutTransferRow,
  'tenantId' | 'id' | 'checkoutSessionId' | 'chargeId' | 'network' | 'asset' | 'payTo' | 'amount'
> & { readonly watchedUntil: Date; readonly createdAt: Date }

const COLUMNS = columnsOf(
  `tenant_id id checkout_session_id charge_id network asset pay_to amount::text state payer
   transaction log_index`,
  't',
)

/** @returns false when another checkout awaits the same amount at the address. */
export const insertTransfer = (tx: Transaction, row: NewTransfer) =>
  isChanged(tx, {
    name: 'checkout_transfer.insert',
    text: `insert into checkout_transfers (tenant_id, id, checkout_session_id, charge_id, network,
             asset, pay_to, amount, watched_until, created_at, updated_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)
           on conflict (network, asset, pay_to, amount) where state = 'awaited' do nothing`,
    values: [
      row.tenantId,
      row.id,
      row.checkoutSessionId,
      row.chargeId,
      row.network,
      row.asset,
      row.payTo,
      row.amount,
      row.watchedUntil,
      row.createdAt,
    ],
  })

/** The transfers that can pay, or have paid, a session. */
export const transfersOfSession = (tx: Transaction, tenantId: string, sessionId: string) =>
  allRows<CheckoutTransferRow>(tx, {
    name: 'checkout_transfer.of_session',
    text: `select ${COLUMNS} from checkout_transfers t
           where tenant_id = $1 and checkout_session_id = $2 order by created_at, id`,
    values: [tenantId, sessionId],
  })

/** Addresses at which transfers of a chain are awaited, by asset. Crosses tenants. */
export const awaitedPayees = (tx: Transaction, network: string) =>
  allRows<{ asset: string; payTo: string }>(tx, {
    name: 'checkout_transfer.payees',
    text: `select distinct asset, pay_to as "payTo" from checkout_transfers
           where network = $1 and state = 'awaited' order by 1, 2`,
    values: [network],
  })

/** A transfer that was found on a chain. */
type SeenTransfer = {
  readonly asset: string
  readonly payTo: string
  readonly amount: string
  readonly payer: string
  readonly transaction: string
  readonly logIndex: number
}

/** awaited -> arrived. Crosses tenants. @returns true if a checkout awaited the transfer. */
export const transferArrived = (tx: Transaction, network: string, seen: SeenTransfer, now: Date) =>
  isChanged(tx, {
    name: 'checkout_transfer.arrived',
    text: `update checkout_transfers set state = 'arrived', payer = $5, transaction = $6,
             log_index = $7, updated_at = $8
           where network = $1 and asset = $2 and pay_to = $3 and amount = $4::numeric
             and state = 'awaited'
             and not exists (select from checkout_transfers o
               where o.network = $1 and o.transaction = $6 and o.log_index = $7)`,
    values: [
      network,
      seen.asset,
      seen.payTo,
      seen.amount,
      seen.payer,
      seen.transaction,
      seen.logIndex,
      now,
    ],
  })

/** Transfers that have arrived and are not booked. Crosses tenants. */
export const transfersToBook = (tx: Transaction, limit: number) =>
  allRows<CheckoutTransferRow>(tx, {
    name: 'checkout_transfer.to_book',
    text: `select ${COLUMNS} from checkout_transfers t
           where state = 'arrived' order by updated_at limit $1`,
    values: [limit],
  })

/** arrived -> booked or surplus. @returns false when it was ended before. */
export const endTransfer = (
  tx: Transaction,
  tenantId: string,
  id: string,
  state: 'booked' | 'surplus',
  now: Date,
) =>
  isChanged(tx, {
    name: 'checkout_transfer.end',
    text: `update checkout_transfers set state = $3, updated_at = $4
           where tenant_id = $1 and id = $2 and state = 'arrived'`,
    values: [tenantId, id, state, now],
  })

/** awaited -> void after `watched_until`, up to `limit`. Crosses tenants. */
export const voidTransfers = (tx: Transaction, now: Date, limit: number) =>
  changedRows(tx, {
    name: 'checkout_transfer.void',
    text: `update checkout_transfers t set state = 'void', updated_at = $1
           from (select tenant_id, id from checkout_transfers
                 where state = 'awaited' and watched_until <= $1
                 order by watched_until limit $2 for update skip locked) due
           where t.tenant_id = due.tenant_id and t.id = due.id`,
    values: [now, limit],
  })

/** The last scanned block of a chain. Undefined before the first scan. */
export const findChainCursor = (tx: Transaction, network: string) =>
  firstValue<number>(tx, {
    name: 'chain_cursor.find',
    text: 'select block from chain_cursors where network = $1',
    values: [network],
  })

/** Moves the cursor forward only: of two concurrent scans, the further one counts. */
export const moveChainCursor = (tx: Transaction, network: string, block: number, now: Date) =>
  execute(tx, {
    name: 'chain_cursor.move',
    text: `insert into chain_cursors as c (network, block, updated_at) values ($1, $2, $3)
           on conflict (network) do update
             set block = greatest(c.block, excluded.block), updated_at = excluded.updated_at`,
    values: [network, block, now],
  })
