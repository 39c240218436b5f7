/** Accounts: one per person, global. Visible only to transactions that cross tenants. */
import type { Email } from '../../actors/domain/email.js'
import { keysIn, OWN_FIRST, ownKey } from './email-keys.js'
import { execute, firstRow, firstValue, isChanged, type Transaction } from '../platform/sql.js'
import { HAS_FACTOR, HAS_KEY } from './ways/ways-in.js'

type NewAccount = {
  id: string
  email: Email
  emailVerified: boolean
  displayName: string
  /** PHC string; null: no password. */
  passwordHash: string | null
  createdAt: Date
}

/** Inserts an account. Returns false and writes nothing when the mailbox already has one. */
export const insertAccount = (tx: Transaction, account: NewAccount) =>
  isChanged(tx, {
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

/**
 * Inserts an account for an address that has no mailbox (a reserved name). Where another tenant was first with the
 * address, the account is this tenant's own, so that no tenant learns of the other one. Returns false and writes nothing
 * when the address has an account of this tenant.
 */
export async function insertAccountWithoutMailbox(
  tx: Transaction,
  { tenantId, ...account }: Omit<NewAccount, 'emailVerified'> & { readonly tenantId: string },
): Promise<boolean> {
  if (await insertAccount(tx, { ...account, emailVerified: false })) return true
  // A second statement, so that it sees the user for whom a concurrent transaction inserted the shared account.
  return isChanged(tx, {
    name: 'account.insert_own',
    text: `insert into accounts (id, email, email_key, display_name, password_hash, password_changed_at,
             created_at, updated_at)
           select $1, $2, ${ownKey('$2', '$6')}, $3, $4, case when $4::text is not null then $5::timestamptz end,
             $5, $5
           where not exists (select from accounts a join tenant_users u on u.account_id = a.id
             where a.email_key = lower($2) and u.tenant_id = $6)
           on conflict (email_key) do nothing`,
    values: [
      account.id,
      account.email,
      account.displayName,
      account.passwordHash,
      account.createdAt,
      tenantId,
    ],
  })
}

/** The account that an address means in a tenant. */
export const findAccountByEmail = (tx: Transaction, tenantId: string, email: Email) =>
  firstValue<string>(tx, {
    name: 'account.by_email',
    text: `select a.id from accounts a where a.email_key in ${keysIn('$1', '$2')} ${OWN_FIRST}`,
    values: [email, tenantId],
  })

export const findAccountEmail = (tx: Transaction, accountId: string) =>
  firstValue<Email>(tx, {
    name: 'account.email',
    text: 'select email from accounts where id = $1',
    values: [accountId],
  })

/** An account that is about to be verified, locked until the transaction ends. */
type LockedMailbox = {
  readonly isProved: boolean
  /** The account has a password, a factor, a passkey, a phone number, an Ethereum account or a linked identity. */
  readonly hasWayIn: boolean
}

/**
 * Locks an account before its mailbox is verified. Everything that adds a sign-in method takes the same lock
 * (`lockAccountInSession`, `insertPasskey`), so nothing is added between the decision and the end of the transaction.
 */
export async function lockMailbox(
  tx: Transaction,
  accountId: string,
): Promise<LockedMailbox | undefined> {
  await lockAccount(tx, accountId)
  return firstRow<LockedMailbox>(tx, {
    name: 'account.held_mailbox',
    text: `select a.email_verified as "isProved",
             ${HAS_KEY} or ${HAS_FACTOR} as "hasWayIn"
           from accounts a where a.id = $1`,
    values: [accountId],
  })
}

/** Deletes every sign-in method and the profile of an account with an unverified address, except the identity `but`. */
export const emptyUnprovedAccount = (
  tx: Transaction,
  accountId: string,
  but: IdentityOf | undefined,
  now: Date,
) =>
  execute(tx, {
    name: 'account.empty_unproved',
    text: `with unproved as (
             update accounts set password_hash = null, updated_at = $2,
               password_changed_at = case when password_hash is null
                 then password_changed_at else $2 end,
               given_name = null, family_name = null, picture = null, locale = null, zoneinfo = null,
               phone_number = null, phone_number_verified = false
             where id = $1 and not email_verified returning id),
           passkeys_gone as (
             delete from passkeys where account_id in (select id from unproved)),
           apps_gone as (
             delete from totp_factors where account_id in (select id from unproved)),
           codes_gone as (
             delete from recovery_codes where account_id in (select id from unproved)),
           phones_gone as (
             delete from account_phones where account_id in (select id from unproved)),
           wallets_gone as (
             delete from account_wallets where account_id in (select id from unproved)),
           identities_gone as (
             delete from upstream_identities
             where account_id in (select id from unproved)
               and not coalesce(provider = $3 and issuer = $4 and subject = $5, false))
           select from unproved`,
    values: [accountId, now, but?.provider ?? null, but?.issuer ?? null, but?.subject ?? null],
  })

type IdentityOf = { readonly provider: string; readonly issuer: string; readonly subject: string }

/**
 * Marks the address of an account as verified. Only `proveMailbox` in actors/platform/people/mailbox-proof.ts may
 * call this, because it first drops what an attacker may have set.
 */
export const markMailboxProved = (tx: Transaction, accountId: string, now: Date) =>
  execute(tx, {
    name: 'account.mark_mailbox_proved',
    text: `update accounts set email_verified = true, updated_at = $2
           where id = $1 and not email_verified`,
    values: [accountId, now],
  })

/**
 * Locks an account and checks that a session of it is still open and not confined. Call it first in a transaction that
 * adds or replaces a sign-in method, so that a session being ended concurrently leaves no key behind.
 */
export async function lockAccountInSession(
  tx: Transaction,
  {
    tenantId,
    id,
    accountId,
  }: { readonly tenantId: string; readonly id: string; readonly accountId: string },
): Promise<boolean> {
  await lockAccount(tx, accountId)
  // A separate statement, so that its snapshot is younger than the lock.
  const { rows } = await tx.query({
    name: 'browser_session.is_open',
    text: `select from browser_sessions
           where tenant_id = $1 and id = $2 and account_id = $3 and ended_at is null
             and not confined`,
    values: [tenantId, id, accountId],
  })
  return rows.length === 1
}

/** Locks an account until the transaction ends. Everything that adds a sign-in method or signs in waits. */
export const lockAccount = (tx: Transaction, accountId: string) =>
  execute(tx, {
    name: 'account.lock',
    text: 'select from accounts where id = $1 for update',
    values: [accountId],
  })

/** Replaces the password of an account. */
export const setAccountPassword = (
  tx: Transaction,
  accountId: string,
  passwordHash: string,
  now: Date,
) =>
  execute(tx, {
    name: 'account.set_password',
    text: `update accounts set password_hash = $2, password_changed_at = $3, updated_at = $3
           where id = $1`,
    values: [accountId, passwordHash, now],
  })

/**
 * Removes the password of an account. `password_changed_at` stays, because it would end the sessions of every tenant.
 */
export const clearAccountPassword = (tx: Transaction, accountId: string, now: Date) =>
  execute(tx, {
    name: 'account.clear_password',
    text: 'update accounts set password_hash = null, updated_at = $2 where id = $1',
    values: [accountId, now],
  })

/** Sets the first password of an account; false when it already has one. */
export const setFirstPassword = (
  tx: Transaction,
  accountId: string,
  passwordHash: string,
  displayName: string,
  now: Date,
) =>
  isChanged(tx, {
    name: 'account.set_first_password',
    text: `update accounts set password_hash = $2, password_changed_at = $4, updated_at = $4,
             display_name = case when $3 = '' then display_name else $3 end
           where id = $1 and password_hash is null`,
    values: [accountId, passwordHash, displayName, now],
  })

/** PHC string; null: no password, or no such account. */
export const findAccountPassword = async (tx: Transaction, accountId: string) =>
  (await firstValue<string | null>(tx, {
    name: 'account.password',
    text: 'select password_hash as hash from accounts where id = $1',
    values: [accountId],
  })) ?? null
