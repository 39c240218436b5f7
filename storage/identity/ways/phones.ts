/** Phone numbers that people sign in with. Global, so every transaction here crosses tenants. */
import { firstRow, isChanged, type Transaction } from '../../platform/sql.js'
import type { SignInRow } from '../sign-ins.js'
import { HAS_FACTOR, judgeRemoval } from './ways-in.js'

type PhoneRow = {
  /** E.164. */
  readonly phoneNumber: string
  readonly provedAt: Date
  readonly lastUsedAt: Date | null
}

export const findPhone = (tx: Transaction, accountId: string) =>
  firstRow<PhoneRow>(tx, {
    name: 'phone.find',
    text: `select phone_number as "phoneNumber", proved_at as "provedAt",
             last_used_at as "lastUsedAt"
           from account_phones where account_id = $1`,
    values: [accountId],
  })

type PhoneSignInRow = Pick<SignInRow, 'accountId' | 'tenantUserId' | 'sub' | 'hasFactor'>

/** Finds the user of a phone number in a tenant, if allowed to sign in. */
export const findSignInByPhone = (tx: Transaction, tenantId: string, phoneNumber: string) =>
  firstRow<PhoneSignInRow>(tx, {
    name: 'phone.find_sign_in',
    text: `select a.id as "accountId", u.id as "tenantUserId", u.sub,
             ${HAS_FACTOR} as "hasFactor"
           from account_phones n join accounts a on a.id = n.account_id
             join tenant_users u on u.account_id = a.id and u.tenant_id = $1
           where n.phone_number = $2 and a.status = 'active'
             and u.status in ('active', 'pre_provisioned')`,
    values: [tenantId, phoneNumber],
  })

/** Records a sign-in by phone. False when the number has another account by now. */
export const usePhone = (tx: Transaction, accountId: string, phoneNumber: string, now: Date) =>
  isChanged(tx, {
    name: 'phone.use',
    text: `update account_phones set last_used_at = $3
           where account_id = $1 and phone_number = $2`,
    values: [accountId, phoneNumber, now],
  })

/**
 * Sets the number that an account signs in with, and its profile claim. A number of another account moves here: its
 * holder has just proved it, and networks give numbers to new people. The caller holds the lock of the account.
 * @returns the account that lost the number, or null.
 */
export async function insertPhone(
  tx: Transaction,
  accountId: string,
  phoneNumber: string,
  now: Date,
): Promise<string | null> {
  const { rows } = await tx.query<{ accountId: string }>({
    name: 'phone.take',
    text: `delete from account_phones where phone_number = $2 and account_id <> $1
           returning account_id as "accountId"`,
    values: [accountId, phoneNumber],
  })
  await tx.query({
    name: 'phone.insert',
    text: `with claim as (
             update accounts set phone_number = $2, phone_number_verified = true, updated_at = $3
             where id = $1)
           insert into account_phones (account_id, phone_number, proved_at) values ($1, $2, $3)
           on conflict (account_id) do update
             set phone_number = excluded.phone_number, proved_at = excluded.proved_at,
               last_used_at = null`,
    values: [accountId, phoneNumber, now],
  })
  return rows[0]?.accountId ?? null
}

/**
 * Removes the number of an account unless it is the account's only sign-in method.
 */
export async function removePhone(
  tx: Transaction,
  accountId: string,
): Promise<'removed' | 'last' | 'unknown'> {
  const verdict = await judgeRemoval(tx, accountId, { kind: 'phone', id: accountId })
  if (verdict !== 'removable') return verdict
  await tx.query({
    name: 'phone.remove',
    text: 'delete from account_phones where account_id = $1',
    values: [accountId],
  })
  return 'removed'
}
