/** Ethereum accounts that people sign in with, and the nonces of their messages. These transactions cross tenants. */
import { allRows, execute, firstRow, isChanged, type Transaction } from '../../platform/sql.js'
import { removing } from '../../platform/portable/expiry.js'
import type { SignInRow } from '../sign-ins.js'
import { HAS_FACTOR, judgeRemoval } from './ways-in.js'

type WalletRow = {
  readonly id: string
  /** Lower case. */
  readonly address: string
  readonly createdAt: Date
  readonly lastUsedAt: Date | null
}

/** Limit per account. */
const WALLETS_MAX = 10

/** Oldest first. */
export const listAccountWallets = (tx: Transaction, accountId: string) =>
  allRows<WalletRow>(tx, {
    name: 'wallet.list',
    text: `select id, address, created_at as "createdAt", last_used_at as "lastUsedAt"
           from account_wallets where account_id = $1 order by created_at, id`,
    values: [accountId],
  })

/**
 * The user of an Ethereum account in a tenant, if allowed to sign in. Records the use.
 * @param address lower case.
 */
export const useWallet = (tx: Transaction, tenantId: string, address: string, now: Date) =>
  firstRow<Pick<SignInRow, 'accountId' | 'tenantUserId' | 'sub' | 'hasFactor'>>(tx, {
    name: 'wallet.use',
    text: `update account_wallets w set last_used_at = $3
           from accounts a join tenant_users u on u.account_id = a.id and u.tenant_id = $1
           where w.address = $2 and a.id = w.account_id and a.status = 'active'
             and u.status in ('active', 'pre_provisioned')
           returning a.id as "accountId", u.id as "tenantUserId", u.sub,
             ${HAS_FACTOR} as "hasFactor"`,
    values: [tenantId, address, now],
  })

/**
 * Links an Ethereum account. False when it is linked to any account, or the account is at its limit. The caller holds
 * the lock of the account.
 */
export const insertWallet = (
  tx: Transaction,
  wallet: {
    readonly accountId: string
    readonly id: string
    readonly address: string
    readonly createdAt: Date
  },
) =>
  isChanged(tx, {
    name: 'wallet.insert',
    text: `insert into account_wallets (account_id, id, address, created_at)
           select $1, $2, $3, $4
           where (select count(*) from account_wallets where account_id = $1) < ${WALLETS_MAX}
           on conflict (address) do nothing`,
    values: [wallet.accountId, wallet.id, wallet.address, wallet.createdAt],
  })

/**
 * Removes an Ethereum account unless it is the account's only sign-in method.
 */
export async function removeWallet(
  tx: Transaction,
  accountId: string,
  id: string,
): Promise<'removed' | 'last' | 'unknown'> {
  const verdict = await judgeRemoval(tx, accountId, { kind: 'wallet', id })
  if (verdict !== 'removable') return verdict
  await tx.query({
    name: 'wallet.remove',
    text: 'delete from account_wallets where account_id = $1 and id = $2',
    values: [accountId, id],
  })
  return 'removed'
}

export type SiweNonce = {
  readonly tenantId: string
  readonly nonceSha256: Uint8Array
  readonly purpose: 'sign_in' | 'link'
  readonly browserSha256: Uint8Array
  readonly sessionId: string | null
}

export const insertSiweNonce = (tx: Transaction, nonce: SiweNonce & { readonly expiresAt: Date }) =>
  execute(tx, {
    name: 'siwe_nonce.insert',
    text: `insert into siwe_nonces (tenant_id, nonce_sha256, purpose, browser_sha256, session_id,
             expires_at)
           values ($1, $2, $3, $4, $5, $6)`,
    values: [
      nonce.tenantId,
      Buffer.from(nonce.nonceSha256),
      nonce.purpose,
      Buffer.from(nonce.browserSha256),
      nonce.sessionId,
      nonce.expiresAt,
    ],
  })

/** Uses up a nonce. True only for the first call with the browser and session it was issued to. */
export const spendSiweNonce = (
  tx: Transaction,
  { tenantId, nonceSha256, purpose, browserSha256, sessionId }: SiweNonce,
  now: Date,
) =>
  isChanged(tx, {
    name: 'siwe_nonce.spend',
    text: `delete from siwe_nonces
           where tenant_id = $1 and nonce_sha256 = $2 and purpose = $3
             and browser_sha256 = $4 and session_id is not distinct from $5 and expires_at > $6`,
    values: [
      tenantId,
      Buffer.from(nonceSha256),
      purpose,
      Buffer.from(browserSha256),
      sessionId,
      now,
    ],
  })

/** Removes up to `limit` nonces that expired before `before`. */
export const removeExpiredSiweNonces = removing(
  'siwe_nonce.remove_expired',
  'siwe_nonces',
  'expires_at',
  '(tenant_id, nonce_sha256)',
)
