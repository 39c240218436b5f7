/** Queries of the sign-in: accounts and tenant users. */
import type { Email } from '../../actors/domain/email.js'
import { keysIn, OWN_FIRST } from './email-keys.js'
import { firstRow, isChanged, type Transaction } from '../platform/sql.js'
import { HAS_FACTOR, hasKeyOrFactorIn } from './ways/ways-in.js'

/** The user of an email address in a tenant, if allowed to sign in. */
export type SignInRow = {
  readonly accountId: string
  readonly tenantUserId: string
  readonly sub: string
  /** The account's spelling of the address. Mail is sent there, not to the typed one. */
  readonly email: Email
  readonly status: 'active' | 'pre_provisioned'
  /** PHC string; null: no password. */
  readonly passwordHash: string | null
  /** The account has a second factor. */
  readonly hasFactor: boolean
}

/** Finds a user by address. Accounts are global, so the transaction crosses tenants. */
export const findSignIn = (tx: Transaction, tenantId: string, email: Email) =>
  firstRow<SignInRow>(tx, {
    name: 'sign_in.find',
    text: `select a.id as "accountId", u.id as "tenantUserId", u.sub, a.email, u.status,
             a.password_hash as "passwordHash",
             ${HAS_FACTOR} as "hasFactor"
           from accounts a join tenant_users u on u.account_id = a.id and u.tenant_id = $1
           where a.email_key in ${keysIn('$2', '$1')} and a.status = 'active'
             and u.status in ('active', 'pre_provisioned')
           ${OWN_FIRST}`,
    values: [tenantId, email],
  })

/** Finds a user by account, for sign-in without a password. */
export const findAccountSignIn = (tx: Transaction, tenantId: string, accountId: string) =>
  firstRow<Pick<SignInRow, 'tenantUserId' | 'sub' | 'hasFactor'>>(tx, {
    name: 'sign_in.find_account',
    text: `select u.id as "tenantUserId", u.sub, ${HAS_FACTOR} as "hasFactor"
           from accounts a join tenant_users u on u.account_id = a.id and u.tenant_id = $1
           where a.id = $2 and a.status = 'active' and u.status in ('active', 'pre_provisioned')`,
    values: [tenantId, accountId],
  })

/** Whether the account of an address has a way into a tenant, or a second factor. */
export async function findSignInKeys(
  tx: Transaction,
  tenantId: string,
  email: Email,
): Promise<{ readonly emailVerified: boolean; readonly hasKey: boolean }> {
  const { rows } = await tx.query<{ emailVerified: boolean; hasKey: boolean }>({
    name: 'sign_in.keys',
    text: `select a.email_verified as "emailVerified",
             ${hasKeyOrFactorIn('$2::uuid')} as "hasKey"
           from accounts a where a.email_key in ${keysIn('$1', '$2')} ${OWN_FIRST}`,
    values: [email, tenantId],
  })
  return rows[0] ?? { emailVerified: false, hasKey: false }
}

/** What an address is in a tenant, before a sign-up. All members null: it has no account. */
export type SignUpStanding = {
  readonly accountActive: boolean | null
  /** The status of the user in the tenant. Null: the account is no user of it. */
  readonly userStatus: 'invited' | 'pre_provisioned' | 'active' | 'suspended' | 'removed' | null
}

export async function findSignUpStanding(
  tx: Transaction,
  tenantId: string,
  email: Email,
): Promise<SignUpStanding> {
  const { rows } = await tx.query<SignUpStanding>({
    name: 'sign_in.sign_up_standing',
    text: `select a.status = 'active' as "accountActive", u.status as "userStatus"
           from accounts a left join tenant_users u on u.account_id = a.id and u.tenant_id = $1
           where a.email_key in ${keysIn('$2', '$1')} ${OWN_FIRST}`,
    values: [tenantId, email],
  })
  return rows[0] ?? { accountActive: null, userStatus: null }
}

/** Records a sign-in. A pre-provisioned user becomes active; the result says so. */
export async function recordSignIn(
  tx: Transaction,
  tenantId: string,
  tenantUserId: string,
  now: Date,
): Promise<{ activated: boolean }> {
  const { rows } = await tx.query<{ activated: boolean }>({
    name: 'sign_in.record',
    text: `with seen as (select id, status from tenant_users
             where tenant_id = $1 and id = $2 for update)
           update tenant_users u set last_login_at = $3,
             status = case when u.status = 'pre_provisioned' then 'active' else u.status end,
             updated_at = case when u.status = 'pre_provisioned' then $3 else u.updated_at end
           from seen where u.tenant_id = $1 and u.id = seen.id
           returning seen.status = 'pre_provisioned' as activated`,
    values: [tenantId, tenantUserId, now],
  })
  return rows[0] ?? { activated: false }
}

/**
 * True if the account still has the password that was just verified. Locks the account: a concurrent password change
 * waits, and then ends the session opened here.
 */
export async function holdPassword(
  tx: Transaction,
  accountId: string,
  passwordHash: string,
): Promise<boolean> {
  const { rows } = await tx.query({
    name: 'sign_in.hold_password',
    text: 'select from accounts where id = $1 and password_hash = $2 for share',
    values: [accountId, passwordHash],
  })
  return rows.length === 1
}

/** Replaces a password hash with one of the same password, unless the password has changed. */
export const rehashPassword = (tx: Transaction, accountId: string, from: string, to: string) =>
  isChanged(tx, {
    name: 'sign_in.rehash',
    text: 'update accounts set password_hash = $3 where id = $1 and password_hash = $2',
    values: [accountId, from, to],
  })
