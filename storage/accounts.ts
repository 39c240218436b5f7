/** Accounts: one per human, global. Seen only where tenants may be crossed. */
import { lookedUp } from './email-keys.js'
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
    values: [lookedUp(email)],
  })
  return rows[0]?.id
}

export async function findAccountEmail(
  tx: Transaction,
  accountId: string,
): Promise<string | undefined> {
  const { rows } = await tx.query<{ email: string }>({
    name: 'account.email',
    text: 'select email from accounts where id = $1',
    values: [accountId],
  })
  return rows[0]?.email
}

/** The person reads what is sent to their address. */
export async function setEmailVerified(
  tx: Transaction,
  accountId: string,
  now: Date,
): Promise<void> {
  await tx.query({
    name: 'account.set_email_verified',
    text: `update accounts set email_verified = true, updated_at = $2
           where id = $1 and not email_verified`,
    values: [accountId, now],
  })
}

/**
 * Takes away every way in that was set before anybody proved to read the mailbox of an account: password,
 * passkeys, authenticator app, recovery codes, and other providers that know the person by another address. False
 * when the address is confirmed.
 */
export async function forgetUnproved(
  tx: Transaction,
  accountId: string,
  now: Date,
): Promise<boolean> {
  const { rows } = await tx.query({
    name: 'account.forget_unproved',
    text: `with unproved as (
             update accounts set password_hash = null, updated_at = $2
             where id = $1 and not email_verified returning id, email_key),
           passkeys_gone as (
             delete from passkeys where account_id in (select id from unproved)),
           apps_gone as (
             delete from totp_factors where account_id in (select id from unproved)),
           codes_gone as (
             delete from recovery_codes where account_id in (select id from unproved)),
           identities_gone as (
             delete from upstream_identities i using unproved u
             where i.account_id = u.id and (i.email is null or lower(i.email) <> u.email_key))
           select from unproved`,
    values: [accountId, now],
  })
  return rows.length === 1
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

/** The first password of an account that has none; false when it has one by now. */
export async function setFirstPassword(
  tx: Transaction,
  accountId: string,
  passwordHash: string,
  displayName: string,
  now: Date,
): Promise<boolean> {
  const { rowCount } = await tx.query({
    name: 'account.set_first_password',
    text: `update accounts set password_hash = $2, password_changed_at = $4, updated_at = $4,
             display_name = case when $3 = '' then display_name else $3 end
           where id = $1 and password_hash is null`,
    values: [accountId, passwordHash, displayName, now],
  })
  return rowCount === 1
}

/** PHC string; null: no password, or no such account. */
export async function findAccountPassword(
  tx: Transaction,
  accountId: string,
): Promise<string | null> {
  const { rows } = await tx.query<{ hash: string | null }>({
    name: 'account.password',
    text: 'select password_hash as hash from accounts where id = $1',
    values: [accountId],
  })
  return rows[0]?.hash ?? null
}
