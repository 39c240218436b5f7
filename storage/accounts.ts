/** Accounts: one per human, global. Seen only where tenants may be crossed. */
import type { Transaction } from './sql.js'

export type NewAccount = {
  id: string
  email: string
  emailVerified: boolean
  displayName: string
  /** PHC string; null: no password. */
  passwordHash: string | null
  createdAt: Date
}

/** Inserts an account; false when the mailbox already has one, with nothing written. */
export async function insertAccount(tx: Transaction, account: NewAccount): Promise<boolean> {
  const { rowCount } = await tx.query({
    name: 'account.insert',
    text: `insert into accounts (id, email, email_key, email_verified, display_name, password_hash,
             password_changed_at, created_at, updated_at)
           values ($1, $2, lower($2), $3, $4, $5, case when $5::text is null then null else $6::timestamptz end,
             $6, $6)
           on conflict (email_key) do nothing`,
    values: [
      account.id,
      account.email,
      account.emailVerified,
      account.displayName,
      account.passwordHash,
      account.createdAt,
    ],
  })
  return rowCount === 1
}

/** The account of a mailbox. */
export async function findAccountByEmail(
  tx: Transaction,
  email: string,
): Promise<string | undefined> {
  const { rows } = await tx.query<{ id: string }>({
    name: 'account.by_email',
    text: 'select id from accounts where email_key = lower($1)',
    values: [email],
  })
  return rows[0]?.id
}

/** Replaces the password of an account. */
export async function setAccountPassword(
  tx: Transaction,
  accountId: string,
  passwordHash: string,
  now: Date,
): Promise<void> {
  await tx.query({
    name: 'account.set_password',
    text: `update accounts set password_hash = $2, password_changed_at = $3, updated_at = $3
           where id = $1`,
    values: [accountId, passwordHash, now],
  })
}
