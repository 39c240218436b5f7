/**
 * Profile claims of a user (OpenID Connect Core section 5.1). As with the name, the account has the person's own values,
 * and a tenant may have its own values, which win in this tenant (docs/reference/identity.md, Profile claims).
 */
import { firstRow, firstValue, type Transaction } from '../platform/sql.js'

/** The values that exist, by the names of the claims. `phone_number_verified` exists with `phone_number` only. */
export type ProfileClaims = {
  readonly given_name?: string
  readonly family_name?: string
  readonly picture?: string
  readonly locale?: string
  readonly zoneinfo?: string
  readonly phone_number?: string
  readonly phone_number_verified?: boolean
}

/**
 * The values to set. Null removes one. A number that changes is unverified, unless the same change says
 * `phone_number_verified: true`.
 */
export type ProfileChange = {
  readonly [claim in keyof ProfileClaims]?: ProfileClaims[claim] | null | undefined
}

const TEXTS = ['given_name', 'family_name', 'picture', 'locale', 'zoneinfo', 'phone_number']

/**
 * The values of a user in a tenant as one jsonb value: the tenant's (alias `u`), else the account's (alias `a`) where
 * the condition `shown` holds.
 */
export function profileSql(shown = 'true'): string {
  const texts = TEXTS.map(
    (name) => `'${name}', coalesce(u.${name}, case when ${shown} then a.${name} end)`,
  )
  return `jsonb_strip_nulls(jsonb_build_object(${texts.join(', ')}, 'phone_number_verified',
    case when u.phone_number is not null then u.phone_number_verified
      when a.phone_number is not null and ${shown} then a.phone_number_verified end))`
}

/** Assignments of an `update` that apply the jsonb parameter (`$3`) to the columns of a profile. */
export function profileAssignments(parameter: string): string {
  const p = `${parameter}::jsonb`
  const texts = TEXTS.map(
    (name) => `${name} = case when ${p} ? '${name}' then ${p} ->> '${name}' else ${name} end`,
  )
  return `${texts.join(', ')}, phone_number_verified = case
    when ${p} ? 'phone_number' and ${p} ->> 'phone_number' is distinct from phone_number
      then ${p} ->> 'phone_number' is not null
        and coalesce((${p} ->> 'phone_number_verified')::boolean, false)
    when ${p} ? 'phone_number_verified'
      then phone_number is not null and coalesce((${p} ->> 'phone_number_verified')::boolean, false)
    else phone_number_verified end`
}

/** The jsonb parameter of a change. */
export function profileParameter(change: ProfileChange | undefined): string {
  return JSON.stringify(change ?? {})
}

/** What a person may change on the account page, and which of it the tenant decides. */
export type OwnProfileRow = {
  readonly displayName: string
  readonly profile: ProfileClaims
  /** The claims for which the tenant has its own value. */
  readonly ofTenant: readonly string[]
}

/** The name and profile of an account as one tenant sees it. Accounts are global, so the transaction crosses tenants. */
export async function findOwnProfile(
  tx: Transaction,
  tenantId: string,
  accountId: string,
): Promise<OwnProfileRow | undefined> {
  const held = TEXTS.map((name) => `case when u.${name} is not null then '${name}' end`)
  return firstRow<OwnProfileRow>(tx, {
    name: 'profile.own',
    text: `select coalesce(u.display_name, a.display_name) as "displayName",
             ${profileSql()} as profile,
             array_remove(array[case when u.display_name is not null then 'name' end,
               ${held.join(', ')}], null) as "ofTenant"
           from tenant_users u join accounts a on a.id = u.account_id
           where u.tenant_id = $1 and u.account_id = $2`,
    values: [tenantId, accountId],
  })
}

/**
 * Sets the person's own values, where the tenant has none. Returns the names of the changed claims: none, and
 * `updated_at` stays, when all have these values already. Accounts are global, so the transaction crosses tenants.
 */
export const updateOwnProfile = async (
  tx: Transaction,
  tenantId: string,
  accountId: string,
  { displayName, profile }: { readonly displayName?: string; readonly profile: ProfileChange },
  now: Date,
) =>
  (await firstValue<string[]>(tx, {
    name: 'profile.update_own',
    text: `with before as (
             select a.*, u.display_name as name_here,
               $3::jsonb - array_remove(array[
                 ${TEXTS.map((name) => `case when u.${name} is not null then '${name}' end`).join(', ')}],
                 null) as change
             from accounts a join tenant_users u on u.account_id = a.id and u.tenant_id = $1
             where a.id = $2 for update of a),
           differing as (
             select array_remove(array[
               case when $4::text is not null and name_here is null and display_name <> $4
                 then 'name' end,
               ${TEXTS.map(
                 (name) =>
                   `case when change ? '${name}' and change ->> '${name}' is distinct from ${name} then '${name}' end`,
               ).join(', ')}], null) as changed, change from before)
           update accounts set
             display_name = case when 'name' = any (d.changed) then $4 else display_name end,
             ${profileAssignments('d.change')}, updated_at = $5
           from differing d where accounts.id = $2 and cardinality(d.changed) > 0
           returning d.changed`,
    values: [tenantId, accountId, profileParameter(profile), displayName ?? null, now],
  })) ?? []

/**
 * Fills missing values. A provider of the deployment fills values of the account, a provider of the tenant values of
 * the tenant user. Returns the names of the filled claims.
 */
export async function fillProfile(
  tx: Transaction,
  { tenantId, accountId, ofTenant }: ProfileOwner,
  profile: ProfileClaims,
  now: Date,
): Promise<readonly string[]> {
  const table = ofTenant ? 'tenant_users' : 'accounts'
  const own = ofTenant ? 'tenant_id = $1 and account_id = $2' : 'id = $2 and $1::uuid is not null'
  const differing = TEXTS.map(
    (name) =>
      `case when ${name} is null and $3::jsonb ->> '${name}' is not null then '${name}' end`,
  )
  const { rows } = await tx.query<{ filled: string[] }>({
    name: `profile.fill_${table}`,
    text: `with missing as (
             select array_remove(array[${differing.join(', ')}], null) as filled from ${table}
             where ${own} for update),
           fill as (
             select filled, (select coalesce(jsonb_object_agg(key, value), '{}')
               from jsonb_each($3::jsonb)
               where key = any (filled) or key = 'phone_number_verified' and 'phone_number' = any (filled)) as change
             from missing)
           update ${table} set ${profileAssignments('f.change')}, updated_at = $4
           from fill f where ${own} and cardinality(f.filled) > 0
           returning f.filled`,
    values: [tenantId, accountId, profileParameter(profile), now],
  })
  return rows[0]?.filled ?? []
}

type ProfileOwner = {
  readonly tenantId: string
  readonly accountId: string
  /** True: fills values of the tenant user and leaves the account unchanged. */
  readonly ofTenant: boolean
}
