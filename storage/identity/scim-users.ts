/**
 * Tenant users as a directory sees them: `tenant_users` (alias `u`) with what only the directory says (`scim_users`,
 * alias `s`) and the account behind it (alias `a`). Accounts are global, so the transactions cross tenants and every
 * statement filters by tenant.
 */
import type { Email } from '../../actors/domain/email.js'
import { keysIn } from './email-keys.js'
import { EMAILS, LAST_MODIFIED, type ScimCondition, scimConditionSql } from './scim-filter.js'
import type { ProfileClaims } from './profiles.js'
import { SHOWN_EMAIL, SHOWN_STATUS, type TenantUserStatus } from './tenant-users.js'
import { ending } from '../platform/ends/ending.js'
import { allRows, firstRow, isChanged, type Transaction } from '../platform/sql.js'

export type ScimUserRow = {
  readonly id: string
  readonly tenantId: string
  readonly accountId: string
  readonly sub: string
  /** As stored: `status` is `suspended` also while an operator of the deployment has suspended the account. */
  readonly storedStatus: TenantUserStatus
  readonly status: TenantUserStatus
  readonly suspendedFrom: TenantUserStatus | null
  readonly fixture: boolean
  readonly roles: readonly string[]
  /** The account's address in lower case. */
  readonly accountEmailKey: string
  /** Null: the tenant has no name for the user. */
  readonly displayName: string | null
  /** The tenant's own values. */
  readonly profile: ProfileClaims
  readonly userName: string
  readonly externalId: string | null
  readonly emails: unknown
  /** The attributes without a column. Null: no directory has written the user. */
  readonly attributes: Readonly<Record<string, unknown>> | null
  readonly groups: readonly { readonly id: string; readonly displayName: string }[]
  readonly createdAt: Date
  readonly lastModified: Date
}

const COLUMNS = `u.id, u.tenant_id as "tenantId", u.account_id as "accountId", u.sub, u.status as "storedStatus",
  ${SHOWN_STATUS} as status, u.suspended_from as "suspendedFrom", u.fixture, u.roles,
  lower(a.email) as "accountEmailKey",
  u.display_name as "displayName", jsonb_strip_nulls(jsonb_build_object('given_name', u.given_name,
    'family_name', u.family_name, 'picture', u.picture, 'locale', u.locale, 'zoneinfo', u.zoneinfo,
    'phone_number', u.phone_number)) as profile,
  coalesce(s.user_name, ${SHOWN_EMAIL}) as "userName", s.external_id as "externalId", ${EMAILS} as emails,
  s.attributes, u.created_at as "createdAt", ${LAST_MODIFIED} as "lastModified",
  array(select jsonb_build_object('id', g.id, 'displayName', g.display_name) from scim_groups g
    where g.tenant_id = u.tenant_id and g.role = any (u.roles) order by g.display_name_key) as groups`
const TABLES = `tenant_users u join accounts a on a.id = u.account_id
  left join scim_users s on s.tenant_id = u.tenant_id and s.user_id = u.id`

/** A user that is not removed. */
export const findScimUser = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<ScimUserRow>(tx, {
    name: 'scim_user.find',
    text: `select ${COLUMNS} from ${TABLES}
           where u.tenant_id = $1 and u.id = $2 and u.status <> 'removed'`,
    values: [tenantId, id],
  })

/** The users that exist and are not removed. */
export const findScimUsers = (tx: Transaction, tenantId: string, ids: readonly string[]) =>
  allRows<ScimUserRow>(tx, {
    name: 'scim_user.find_many',
    text: `select ${COLUMNS} from ${TABLES}
           where u.tenant_id = $1 and u.id = any ($2::uuid[]) and u.status <> 'removed'`,
    values: [tenantId, ids],
  })

/** The users that fulfil a condition, oldest first, and how many there are in all. */
export async function countAndListScimUsers(
  tx: Transaction,
  tenantId: string,
  condition: ScimCondition | null,
  { offset, limit }: { readonly offset: number; readonly limit: number },
): Promise<{ readonly rows: readonly ScimUserRow[]; readonly total: number }> {
  const values: unknown[] = [tenantId]
  const bind = (value: unknown) => `$${values.push(value)}`
  const where = whereOf(condition, bind)
  // The texts depend on the shape of the filter only. Rarely used statements are forgotten by the connection.
  const counting = tx.query<{ total: number }>({
    name: 'scim_user.count',
    text: `select count(*) as total from ${TABLES} where ${where}`,
    values,
  })
  const listing = limit === 0 ? [] : listScimUserRows(tx, tenantId, condition, { offset, limit })
  const [{ rows: counted }, rows] = await Promise.all([counting, listing])
  return { rows, total: counted[0]!.total }
}

/** The users that fulfil a condition, oldest first. */
export async function listScimUserRows(
  tx: Transaction,
  tenantId: string,
  condition: ScimCondition | null,
  { offset, limit }: { readonly offset: number; readonly limit: number },
): Promise<readonly ScimUserRow[]> {
  const values: unknown[] = [tenantId]
  const bind = (value: unknown) => `$${values.push(value)}`
  const where = whereOf(condition, bind)
  const [from, most] = [bind(offset), bind(limit)]
  return allRows<ScimUserRow>(tx, {
    name: 'scim_user.list',
    text: `select ${COLUMNS} from ${TABLES} where ${where}
           order by u.created_at, u.id offset ${from} limit ${most}`,
    values,
  })
}

function whereOf(condition: ScimCondition | null, bind: (value: unknown) => string): string {
  const more = condition === null ? '' : ` and ${scimConditionSql(condition, bind)}`
  return `u.tenant_id = $1 and u.status <> 'removed'${more}`
}

export type ScimUserData = {
  readonly userName: string
  readonly externalId: string | null
  readonly attributes: Readonly<Record<string, unknown>>
}

/**
 * Writes what a directory says about a user. False if another user of the tenant has the name: an address is
 * the name where no directory has written the user. A concurrent writer of the name violates `scim_users_user_name`.
 */
export const writeScimUser = (
  tx: Transaction,
  tenantId: string,
  userId: string,
  { userName, externalId, attributes }: ScimUserData,
  now: Date,
) =>
  isChanged(tx, {
    name: 'scim_user.write',
    text: `insert into scim_users as s (tenant_id, user_id, user_name, user_name_key, external_id, attributes, updated_at)
           select $1, $2, $3, lower($3), $4, $5, $6
           where not exists (select from accounts b
             join tenant_users o on o.account_id = b.id and o.tenant_id = $1 and o.id <> $2 and o.status <> 'removed'
             where b.email_key in ${keysIn('$3', '$1')}
               and not exists (select from scim_users p where p.tenant_id = $1 and p.user_id = o.id))
           on conflict (tenant_id, user_id) do update set user_name = excluded.user_name,
             user_name_key = excluded.user_name_key, external_id = excluded.external_id,
             attributes = excluded.attributes, updated_at = excluded.updated_at`,
    values: [tenantId, userId, userName, externalId, JSON.stringify(attributes), now],
  })

/**
 * Moves a user who has not signed in yet to the account of another address. False if the user has signed in. An account
 * that is a user of the tenant already violates `tenant_users_tenant_id_account_id_key`.
 */
export const moveTenantUser = (
  tx: Transaction,
  { tenantId, id }: { readonly tenantId: string; readonly id: string },
  to: {
    readonly accountId: string
    readonly status: 'invited' | 'pre_provisioned'
    readonly invitedAs: Email
  },
  now: Date,
) =>
  isChanged(ending(tx, 'user.ended', [{ tenantId, id }]), {
    name: 'scim_user.move',
    text: `update tenant_users u set account_id = $3, invited_as = $5, updated_at = $6,
             account_active = (select b.status = 'active' from accounts b where b.id = $3),
             status = case when u.status = 'suspended' then u.status else $4 end,
             suspended_from = case when u.status = 'suspended' then $4 end
           where u.tenant_id = $1 and u.id = $2 and u.last_login_at is null
             and (u.status in ('invited', 'pre_provisioned')
               or u.status = 'suspended' and u.suspended_from in ('invited', 'pre_provisioned'))`,
    values: [tenantId, id, to.accountId, to.status, to.invitedAs, now],
  })
