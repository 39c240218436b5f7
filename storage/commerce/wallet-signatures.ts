/** What wallets have signed, and what of it counts against their budgets. */
import { columnsOf } from '../platform/portable/tenant-rows.js'
import { allRows, changedRows, firstValue, type Transaction } from '../platform/sql.js'

type SignatureKind = 'x402_payment' | 'transaction'

export type WalletSignatureRow = {
  readonly id: string
  readonly tenantId: string
  readonly walletId: string
  readonly agentId: string
  readonly kind: SignatureKind
  /** CAIP-2. */
  readonly network: string
  /** Null for a transfer of the native currency. */
  readonly contract: string | null
  readonly recipient: string
  /** Contract address in lower case, or `native`. */
  readonly asset: string
  /** Atomic units, decimal. */
  readonly amount: string
  readonly feeMax: string
  readonly hash: string
  readonly nonce: string
  readonly validBefore: Date | null
  readonly resource: string | null
  readonly createdAt: Date
}

const COLUMNS = columnsOf(`id tenant_id wallet_id agent_id kind network contract recipient asset
  amount::text fee_max::text hash nonce valid_before resource created_at`)

/** An amount of an asset that counts against the budget of the wallet. */
export type Spend = { readonly asset: string; readonly amount: string }

/**
 * Records a signature with what it spends, if every asset has a budget that allows it. Nothing is written otherwise.
 * The transaction holds the lock of the wallet (`lockWallet`), so that concurrent signatures count one another.
 * @returns false when a budget refuses.
 */
export async function reserveSignature(
  tx: Transaction,
  signature: WalletSignatureRow,
  spends: readonly Spend[],
): Promise<boolean> {
  const { rows } = await tx.query<{ id: string }>({
    name: 'wallet_signature.reserve',
    text: `with asked as (
             select asset, amount from unnest($16::text[], $17::numeric[]) as a(asset, amount)),
           refused as (
             select a.asset from asked a
               left join wallet_budgets b on b.tenant_id = $1 and b.wallet_id = $3 and b.network = $6
                 and b.asset = a.asset
             where b.asset is null or a.amount > b.payment_max or a.amount > b.window_max - (
               select coalesce(sum(s.amount), 0) from wallet_spends s
               where s.tenant_id = $1 and s.wallet_id = $3 and s.network = $6 and s.asset = a.asset
                 and s.spent_at > $15::timestamptz - make_interval(secs => b.window_secs))),
           signed as (
             insert into wallet_signatures (tenant_id, id, wallet_id, agent_id, kind, network, contract,
               recipient, asset, amount, fee_max, hash, nonce, valid_before, created_at, resource)
             select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10::numeric, $11::numeric, $12, $13, $14, $15, $18
             where not exists (select from refused)
             returning id),
           spent as (
             insert into wallet_spends (tenant_id, signature_id, wallet_id, network, asset, amount, spent_at)
             select $1, signed.id, $3, $6, a.asset, a.amount, $15 from signed, asked a)
           select id from signed`,
    values: [
      signature.tenantId,
      signature.id,
      signature.walletId,
      signature.agentId,
      signature.kind,
      signature.network,
      signature.contract,
      signature.recipient,
      signature.asset,
      signature.amount,
      signature.feeMax,
      signature.hash,
      signature.nonce,
      signature.validBefore,
      signature.createdAt,
      spends.map(({ asset }) => asset),
      spends.map(({ amount }) => amount),
      signature.resource,
    ],
  })
  return rows.length === 1
}

/**
 * The time at which at least `amount` of what counts now has left the window of a budget. Null when that much does
 * not count.
 */
export const budgetFreedAt = async (
  tx: Transaction,
  budget: {
    readonly tenantId: string
    readonly walletId: string
    readonly network: string
    readonly asset: string
    readonly windowSecs: number
  },
  amount: string,
  now: Date,
) =>
  (await firstValue<Date | null>(tx, {
    name: 'wallet_spend.freed',
    text: `select min(f.spent_at) + make_interval(secs => $5::int) as at from (
             select s.spent_at, sum(s.amount) over (order by s.spent_at, s.signature_id) as freed
             from wallet_spends s
             where s.tenant_id = $1 and s.wallet_id = $2 and s.network = $3 and s.asset = $4
               and s.spent_at > $7::timestamptz - make_interval(secs => $5::int)) f
           where f.freed >= $6::numeric`,
    values: [
      budget.tenantId,
      budget.walletId,
      budget.network,
      budget.asset,
      budget.windowSecs,
      amount,
      now,
    ],
  })) ?? null

/** Deletes what no window of a budget reaches. The signatures stay. */
export const sweepSpends = (tx: Transaction, before: Date, limit: number) =>
  changedRows(tx, {
    name: 'wallet_spend.sweep',
    text: `delete from wallet_spends where (tenant_id, signature_id, asset) in (
             select tenant_id, signature_id, asset from wallet_spends
             where spent_at < $1 limit $2 for update skip locked)`,
    values: [before, limit],
  })

/** A page of what a wallet has signed, newest first. */
export const listSignatureRows = (
  tx: Transaction,
  tenantId: string,
  walletId: string,
  limit: number,
  after: { readonly createdAt: Date; readonly id: string } | null,
) =>
  allRows<WalletSignatureRow>(tx, {
    name: 'wallet_signature.list',
    text: `select ${COLUMNS} from wallet_signatures
           where tenant_id = $1 and wallet_id = $2
             and ($4::timestamptz is null or (created_at, id) < ($4, $5::uuid))
           order by created_at desc, id desc limit $3`,
    values: [tenantId, walletId, limit, after?.createdAt ?? null, after?.id ?? null],
  })
