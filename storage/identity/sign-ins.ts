/** What signing in reads and writes of accounts and tenant users. */
import { lookedUp } from './email-keys.js'
import type { Transaction } from '../platform/sql.js'

/** Who an e-mail address means in a tenant, if it may sign in there. */
export type SignInRow = {
  readonly accountId: string
  readonly tenantUserId: string
  readonly sub: string
  /** As the account has it: letters go there, not to what somebody typed. */
  readonly email: string
  readonly status: 'active' | 'pre_provisioned'
  /** PHC string; null: no password. */
  readonly passwordHash: string | null
  /** The account has a second factor. */
  readonly hasFactor: boolean
}

/** Finds who may sign in. Accounts are global: the transaction crosses tenants. */
export async function findSignIn(
  tx: Transaction,
  tenantId: string,
  email: string,
): Promise<SignInRow | undefined> {
  const { rows } = await tx.query<SignInRow>({
    name: 'sign_in.find',
    text: `select a.id as "accountId", u.id as "tenantUserId", u.sub, a.email, u.status,
             a.password_hash as "passwordHash",
             exists (select from totp_factors f
               where f.account_id = a.id and f.confirmed_at is not null)
             or exists (select from passkeys p where p.account_id = a.id) as "hasFactor"
           from accounts a join tenant_users u on u.account_id = a.id and u.tenant_id = $1
           where a.email_key = lower($2) and a.status = 'active'
             and u.status in ('active', 'pre_provisioned')`,
    values: [tenantId, lookedUp(email)],
  })
  return rows[0]
}

/** The same for an account that has proved itself by other means than a password. */
export async function findAccountSignIn(
  tx: Transaction,
  tenantId: string,
  accountId: string,
): Promise<Pick<SignInRow, 'tenantUserId' | 'sub'> | undefined> {
  const { rows } = await tx.query<Pick<SignInRow, 'tenantUserId' | 'sub'>>({
    name: 'sign_in.find_account',
    text: `select u.id as "tenantUserId", u.sub
           from accounts a join tenant_users u on u.account_id = a.id and u.tenant_id = $1
           where a.id = $2 and a.status = 'active' and u.status in ('active', 'pre_provisioned')`,
    values: [tenantId, accountId],
  })
  return rows[0]
}

/** What the account of an address, if there is one, can prove itself with, in whatever tenant. */
export async function findSignInKeys(
  tx: Transaction,
  email: string,
): Promise<{ readonly emailVerified: boolean; readonly hasKey: boolean }> {
  const { rows } = await tx.query<{ emailVerified: boolean; hasKey: boolean }>({
    name: 'sign_in.keys',
    text: `select a.email_verified as "emailVerified",
             a.password_hash is not null
               or exists (select from passkeys p where p.account_id = a.id)
               or exists (select from totp_factors f
                 where f.account_id = a.id and f.confirmed_at is not null) as "hasKey"
           from accounts a where a.email_key = lower($1)`,
    values: [lookedUp(email)],
  })
  return rows[0] ?? { emailVerified: false, hasKey: false }
}

/** Notes a sign-in; a user who was provisioned beforehand becomes active, and the answer says so. */
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
 * Whether an account still has the password that was judged a moment ago. It is held until the transaction
 * ends: whoever sets another one waits, and then ends what was opened meanwhile.
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

/** Replaces a password hash by one of the same password; not when the password changed meanwhile. */
export async function rehashPassword(
  tx: Transaction,
  accountId: string,
  from: string,
  to: string,
): Promise<boolean> {
  const { rowCount } = await tx.query({
    name: 'sign_in.rehash',
    text: 'update accounts set password_hash = $3 where id = $1 and password_hash = $2',
    values: [accountId, from, to],
  })
  return rowCount === 1
}
