/**
 * Many new users of one tenant in one round trip, for directories that send one request per user. Accounts are global,
 * so the transaction crosses tenants and every statement filters by tenant.
 */
import type { Email } from '../../actors/domain/email.js'
import { keysIn } from './email-keys.js'
import { findScimUsers, type ScimUserData, type ScimUserRow } from './scim-users.js'
import type { ProfileChange } from './profiles.js'
import type { Transaction } from '../platform/sql.js'

/** A user without roles whose address has no account, as far as the caller knows. */
export type ProvisionedUser = ScimUserData & {
  readonly accountId: string
  readonly userId: string
  /** Pairwise: generated for this tenant only. */
  readonly sub: string
  readonly email: Email
  /** The domain of the address in normalized form. Null: it is not a public domain name. */
  readonly domain: string | null
  /** The domain is reserved, so a sandbox may vouch for the address. */
  readonly reserved: boolean
  readonly displayName: string | null
  readonly profile: ProfileChange
  readonly createdAt: Date
}

const READ = `jsonb_to_recordset($2::jsonb) as n ("accountId" uuid, "userId" uuid, sub text, email text, domain text,
  reserved boolean, "displayName" text, profile jsonb, "userName" text, "externalId" text, attributes jsonb,
  "createdAt" timestamptz)`

/**
 * Creates the users that the tenant may vouch for, whose address has no account, and whose name is free in the tenant.
 * The other users are not in the result, and nothing is written for them. Two of the users may not share an address or
 * a name. A concurrent writer of a name violates `scim_users_user_name`.
 */
export async function provisionScimUsers(
  tx: Transaction,
  tenantId: string,
  users: readonly ProvisionedUser[],
): Promise<ReadonlyMap<string, ScimUserRow>> {
  const values = [tenantId, JSON.stringify(users)]
  const accounts = tx.query({
    // Subqueries of one value are index look-ups per user, however large the tenant is when the plan is made. The order
    // is the same in every process, so that two batches cannot deadlock.
    name: 'scim_user.provision_accounts',
    text: `insert into accounts (id, email, email_key, email_verified, display_name, created_at, updated_at)
           select n."accountId", n.email, lower(n.email), false, '', n."createdAt", n."createdAt" from ${READ}
           where (exists (select from verified_domains d
                 where d.tenant_id = $1 and d.domain = n.domain and d.verified_at is not null)
               or n.reserved and exists (select from tenants t where t.id = $1 and t.environment = 'sandbox'))
             and (select true from scim_users s
               where s.tenant_id = $1 and s.user_name_key = lower(n."userName")) is null
             and (select true from accounts b
               join tenant_users o on o.account_id = b.id and o.tenant_id = $1 and o.status <> 'removed'
               where b.email_key in ${keysIn('n."userName"', '$1')}
                 and not exists (select from scim_users p where p.tenant_id = $1 and p.user_id = o.id)) is null
           order by lower(n.email)
           on conflict (email_key) do nothing`,
    values,
  })
  const written = tx.query({
    name: 'scim_user.provision',
    text: `with granted as materialized (
             select n.* from ${READ} where (select true from accounts a where a.id = n."accountId")
           ), created as (
             insert into tenant_users (tenant_id, id, account_id, sub, status, roles, fixture, created_at, updated_at,
               display_name, invited_as, given_name, family_name, picture, locale, zoneinfo, phone_number,
               phone_number_verified)
             select $1, "userId", "accountId", sub, 'pre_provisioned', '{}', false, "createdAt", "createdAt",
               "displayName", email, profile ->> 'given_name', profile ->> 'family_name', profile ->> 'picture',
               profile ->> 'locale', profile ->> 'zoneinfo', profile ->> 'phone_number', false
             from granted
           )
           insert into scim_users (tenant_id, user_id, user_name, user_name_key, external_id, attributes, updated_at)
           select $1, "userId", "userName", lower("userName"), "externalId", attributes, "createdAt" from granted`,
    values,
  })
  const ids = users.map(({ userId }) => userId)
  const [, , rows] = await Promise.all([accounts, written, findScimUsers(tx, tenantId, ids)])
  return new Map(rows.map((row) => [row.id, row]))
}
