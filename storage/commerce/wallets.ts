/** Wallets of agents with their policies (docs/reference/commerce.md, Wallets). */
import { lockUntilEnd } from '../platform/portable/locks.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'
import { allRows, execute, firstRow, isChanged, type Transaction } from '../platform/sql.js'

type WalletStatus = 'active' | 'frozen'

/** A budget with what is spent of it in the current window. Amounts are atomic units, decimal. */
export type WalletBudgetRow = {
  /** CAIP-2. */
  readonly network: string
  /** Contract address in lower case, or `native`. */
  readonly asset: string
  readonly paymentMax: string
  readonly windowMax: string
  readonly windowSecs: number
  readonly spent: string
}

type NewWalletBudget = Omit<WalletBudgetRow, 'spent'>

export type WalletRow = {
  readonly id: string
  readonly tenantId: string
  readonly agentId: string
  /** EIP-55. */
  readonly address: string
  readonly status: WalletStatus
  /** Lower case. Null for every recipient. */
  readonly recipients: readonly string[] | null
  /** CAIP-10, lower case. */
  readonly contracts: readonly string[]
  readonly budgets: readonly WalletBudgetRow[]
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly frozenAt: Date | null
}

export type SealedWalletRow = WalletRow & {
  readonly keySealed: Uint8Array
  /** True if tenant and session are active, and the agent belongs to the tenant and is not suspended there. */
  readonly standing: boolean
}

/** The context of a sealed private key. */
export function walletKeyContext(id: string): string {
  return `wallet:${id}`
}

/** What is spent of budget `b` in the window that ends at `$2`. */
const SPENT = `(select coalesce(sum(s.amount), 0)::text from wallet_spends s
  where s.tenant_id = b.tenant_id and s.wallet_id = b.wallet_id and s.network = b.network
    and s.asset = b.asset and s.spent_at > $2::timestamptz - make_interval(secs => b.window_secs))`

/** `$1` is the tenant, `$2` the time. */
const COLUMNS = `${columnsOf(
  'id tenant_id agent_id address status recipients contracts created_at updated_at frozen_at',
  'w',
)},
  (select coalesce(jsonb_agg(jsonb_build_object('network', b.network, 'asset', b.asset,
       'paymentMax', b.payment_max::text, 'windowMax', b.window_max::text,
       'windowSecs', b.window_secs, 'spent', ${SPENT}) order by b.network, b.asset), '[]')
     from wallet_budgets b where b.tenant_id = w.tenant_id and b.wallet_id = w.id) as budgets`

type NewWallet = Pick<
  WalletRow,
  'id' | 'tenantId' | 'agentId' | 'address' | 'recipients' | 'contracts' | 'createdAt'
> & { readonly keySealed: Uint8Array }

/**
 * Inserts a wallet. `exists` when the agent has one, `full` when the tenant has `most`. Nothing is written then.
 * @param most 0 for no limit.
 */
export async function insertAgentWallet(
  tx: Transaction,
  wallet: NewWallet,
  most: number,
): Promise<'inserted' | 'exists' | 'full'> {
  await holdWallets(tx, wallet.tenantId)
  const { rows } = await tx.query<{ exists: boolean }>({
    name: 'wallet.insert',
    text: `with known as (
             select exists (select from wallets where tenant_id = $1 and agent_id = $3) as exists),
           inserted as (
             insert into wallets (tenant_id, id, agent_id, address, key_sealed, recipients, contracts,
               created_at, updated_at)
             select $1, $2, $3, $4, $5, $6, $7, $8, $8 from known
             where not known.exists
               and ($9::int = 0 or (select count(*) from wallets where tenant_id = $1) < $9)
             returning id)
           select known.exists from known where not exists (select from inserted)`,
    values: [
      wallet.tenantId,
      wallet.id,
      wallet.agentId,
      wallet.address,
      Buffer.from(wallet.keySealed),
      wallet.recipients,
      wallet.contracts,
      wallet.createdAt,
      most,
    ],
  })
  const refused = rows[0]
  if (refused === undefined) return 'inserted'
  return refused.exists ? 'exists' : 'full'
}

/** Makes concurrent creations and assignments of one tenant run one after the other. */
async function holdWallets(tx: Transaction, tenantId: string): Promise<void> {
  await lockUntilEnd(tx, { kind: 'wallets', tenantId })
}

/**
 * Assigns a wallet whose agent no longer belongs to the tenant to another agent, and freezes it. False, and nothing
 * written, when its agent still belongs to the tenant, or the other agent has a wallet.
 */
export async function assignWalletRow(
  tx: Transaction,
  tenantId: string,
  id: string,
  agentId: string,
  now: Date,
): Promise<boolean> {
  await holdWallets(tx, tenantId)
  return isChanged(tx, {
    name: 'wallet.assign',
    text: `update wallets w set agent_id = $3, status = 'frozen', updated_at = $4,
             frozen_at = coalesce(w.frozen_at, $4)
           where w.tenant_id = $1 and w.id = $2
             and not exists (select from wallets o where o.tenant_id = $1 and o.agent_id = $3)
             and not exists (select from agents a where a.tenant_id = $1 and a.id = w.agent_id)
             and not exists (select from organization_members m
               join tenants t on t.organization_id = m.organization_id
               where t.id = $1 and m.member_type = 'agent' and m.member_id = w.agent_id)`,
    values: [tenantId, id, agentId, now],
  })
}

export const findWalletById = (tx: Transaction, tenantId: string, id: string, now: Date) =>
  firstRow<WalletRow>(tx, {
    name: 'wallet.find_by_id',
    text: `select ${COLUMNS} from wallets w where w.tenant_id = $1 and w.id = $3`,
    values: [tenantId, now, id],
  })

/** Replaces the budgets of a wallet. What was spent of an asset counts against its new budget. */
export async function replaceWalletBudgets(
  tx: Transaction,
  tenantId: string,
  walletId: string,
  budgets: readonly NewWalletBudget[],
): Promise<void> {
  await tx.query({
    name: 'wallet_budget.clear',
    text: 'delete from wallet_budgets where tenant_id = $1 and wallet_id = $2',
    values: [tenantId, walletId],
  })
  await tx.query({
    name: 'wallet_budget.insert',
    text: `insert into wallet_budgets (tenant_id, wallet_id, network, asset, payment_max, window_max, window_secs)
           select $1, $2, network, asset, payment_max, window_max, window_secs
           from unnest($3::text[], $4::text[], $5::numeric[], $6::numeric[], $7::int[])
             as b(network, asset, payment_max, window_max, window_secs)`,
    values: [
      tenantId,
      walletId,
      budgets.map(({ network }) => network),
      budgets.map(({ asset }) => asset),
      budgets.map(({ paymentMax }) => paymentMax),
      budgets.map(({ windowMax }) => windowMax),
      budgets.map(({ windowSecs }) => windowSecs),
    ],
  })
}

/** A page of a tenant's wallets, newest first. Wallets of deleted agents are among them. */
export const listWalletRows = (
  tx: Transaction,
  tenantId: string,
  now: Date,
  limit: number,
  after: { readonly createdAt: Date; readonly id: string } | null,
) =>
  allRows<WalletRow>(tx, {
    name: 'wallet.list',
    text: `select ${COLUMNS} from wallets w
           where w.tenant_id = $1 and ($4::timestamptz is null or (w.created_at, w.id) < ($4, $5::uuid))
           order by w.created_at desc, w.id desc limit $3`,
    values: [tenantId, now, limit, after?.createdAt ?? null, after?.id ?? null],
  })

export const findWallet = (tx: Transaction, tenantId: string, agentId: string, now: Date) =>
  firstRow<WalletRow>(tx, {
    name: 'wallet.find',
    text: `select ${COLUMNS} from wallets w where w.tenant_id = $1 and w.agent_id = $3`,
    values: [tenantId, now, agentId],
  })

/**
 * Locks the wallet until the transaction ends, so that changes and signatures of one wallet are serialised. The lock is
 * a separate statement: a statement that waits for it would count what was spent before the wait.
 */
export const lockWallet = (tx: Transaction, tenantId: string, agentId: string) =>
  execute(tx, {
    name: 'wallet.lock',
    text: 'select from wallets where tenant_id = $1 and agent_id = $2 for update',
    values: [tenantId, agentId],
  })

/** The wallet of an agent with its key and standing. `sessionId` is the session of its token. */
export const findSigningWallet = (
  tx: Transaction,
  { tenantId, agentId, sessionId }: { tenantId: string; agentId: string; sessionId: string | null },
  now: Date,
) =>
  firstRow<SealedWalletRow>(tx, {
    name: 'wallet.signing',
    text: `select ${COLUMNS}, w.key_sealed as "keySealed",
             exists (select from sessions x where x.tenant_id = $1 and x.id = $4 and x.ended_at is null)
               and exists (select from tenants t where t.id = $1 and t.status = 'active')
               and not exists (select from agent_suspensions u where u.tenant_id = $1 and u.agent_id = $3)
               and not exists (select from agents a
                 where a.tenant_id = $1 and a.id = $3 and a.status <> 'active')
               and (exists (select from agents a where a.tenant_id = $1 and a.id = $3)
                 or exists (select from organization_members m
                   join tenants t on t.organization_id = m.organization_id
                   where t.id = $1 and m.member_type = 'agent' and m.member_id = $3)) as standing
           from wallets w where w.tenant_id = $1 and w.agent_id = $3`,
    values: [tenantId, now, agentId, sessionId],
  })

type WalletPolicyChange = {
  readonly recipients: readonly string[] | null
  readonly contracts: readonly string[]
}

export const updateWalletPolicy = (
  tx: Transaction,
  tenantId: string,
  id: string,
  { recipients, contracts }: WalletPolicyChange,
  now: Date,
) =>
  execute(tx, {
    name: 'wallet.update',
    text: `update wallets set recipients = $3, contracts = $4, updated_at = $5
           where tenant_id = $1 and id = $2`,
    values: [tenantId, id, recipients, contracts, now],
  })

/** active <-> frozen. False when it has the status already. */
export const setWalletStatus = (
  tx: Transaction,
  tenantId: string,
  id: string,
  status: WalletStatus,
  now: Date,
) =>
  isChanged(tx, {
    name: 'wallet.set_status',
    text: `update wallets set status = $3, updated_at = $4,
             frozen_at = case when $3 = 'frozen' then $4::timestamptz end
           where tenant_id = $1 and id = $2 and status <> $3`,
    values: [tenantId, id, status, now],
  })
