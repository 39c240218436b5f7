/**
 * Suspension of organizations, tenants and accounts by an operator of the deployment. Queries refuse suspended rows by
 * conditions (storage/platform/in-force.ts). Nothing is deleted, so reactivation restores everything.
 */
import { ending } from '../platform/ends/ending.js'
import type { Email } from '../../actors/domain/email.js'
import { allRows, firstRow, type Transaction } from '../platform/sql.js'

type Standing = 'active' | 'suspended'
/** Undefined: not found. */
type Switched = { readonly changed: boolean } | undefined

/** Suspends or reactivates an organization. Its tenants follow in the same transaction (0047_suspension). */
export async function switchOrganization(
  tx: Transaction,
  id: string,
  to: Standing,
  now: Date,
): Promise<Switched> {
  const { rows } = await tx.query<{ status: Standing }>({
    name: 'organization.hold',
    text: 'select status from organizations where id = $1 for no key update',
    values: [id],
  })
  if (rows[0] === undefined) return undefined
  if (rows[0].status === to) return { changed: false }
  await ending(tx, 'organization.suspended', [{ tenantId: null, id }]).query({
    name: 'organization.switch',
    text: 'update organizations set status = $2, updated_at = $3 where id = $1',
    values: [id, to, now],
  })
  return { changed: true }
}

/**
 * Suspends or reactivates a tenant. A tenant of a suspended organization stays suspended in any case. The control plane
 * cannot be suspended, because no operator could lift it.
 */
export async function switchTenantRow(
  tx: Transaction,
  id: string,
  to: Standing,
  now: Date,
): Promise<Switched> {
  // Lock the organization before the tenant, in the same order as a change of the organization, to avoid deadlocks.
  await tx.query({
    name: 'tenant.hold_organization',
    text: `select from organizations
           where id = (select organization_id from tenants where id = $1) for share`,
    values: [id],
  })
  const { rows } = await tx.query<{ status: Standing }>({
    name: 'tenant.hold_suspension',
    text: `select case when suspended_at is null then 'active' else 'suspended' end as status
           from tenants where id = $1 and not control_plane for no key update`,
    values: [id],
  })
  if (rows[0] === undefined) return undefined
  if (rows[0].status === to) return { changed: false }
  await ending(tx, 'tenant.suspended', [{ tenantId: null, id }]).query({
    name: 'tenant.switch',
    text: `update tenants set suspended_at = case when $2 = 'suspended' then $3::timestamptz end,
             updated_at = $3
           where id = $1`,
    values: [id, to, now],
  })
  return { changed: true }
}

/** Suspends or reactivates an account. Its users in all tenants follow, and a suspension ends their credentials. */
export async function switchAccount(
  tx: Transaction,
  id: string,
  to: Standing,
  now: Date,
): Promise<Switched> {
  const { rows } = await tx.query<{ status: Standing }>({
    name: 'account.hold',
    text: 'select status from accounts where id = $1 for no key update',
    values: [id],
  })
  if (rows[0] === undefined) return undefined
  if (rows[0].status === to) return { changed: false }
  await ending(tx, 'account.suspended', [{ tenantId: null, id }]).query({
    name: 'account.switch',
    text: 'update accounts set status = $2, updated_at = $3 where id = $1',
    values: [id, to, now],
  })
  return { changed: true }
}

/** An account as an operator of the deployment sees it. */
type AccountRecordRow = {
  readonly id: string
  readonly email: string
  readonly emailVerified: boolean
  readonly status: Standing
  /** The tenants where the account is a user, oldest first. */
  readonly tenants: readonly {
    readonly tenantId: string
    readonly tenantSlug: string
    readonly tenantUserId: string
    readonly sub: string
    readonly status: string
  }[]
  readonly createdAt: Date
}

const TENANTS_MAX = 200

const ACCOUNT = `select a.id, a.email, a.email_verified as "emailVerified", a.status,
    a.created_at as "createdAt",
    (select coalesce(json_agg(x order by x."tenantSlug"), '[]') from (
      select t.id as "tenantId", t.slug as "tenantSlug", u.id as "tenantUserId", u.sub, u.status
      from tenant_users u join tenants t on t.id = u.tenant_id
      where u.account_id = a.id order by t.slug limit ${TENANTS_MAX}) x) as tenants
  from accounts a`

/** @param by the id of an account, or its address. */
export const findAccountRecord = (
  tx: Transaction,
  by: { readonly id: string } | { readonly email: Email },
) =>
  firstRow<AccountRecordRow>(
    tx,
    'id' in by
      ? { name: 'account.record', text: `${ACCOUNT} where a.id = $1`, values: [by.id] }
      : {
          name: 'account.record_by_email',
          text: `${ACCOUNT} where a.email_key = lower($1)`,
          values: [by.email],
        },
  )

/** The account's users, except removed ones, each with its tenant. */
export async function usersOfAccount(
  tx: Transaction,
  accountId: string,
  limit: number,
): Promise<
  { tenantId: string; id: string; sub: string; email: string; status: string; fixture: boolean }[]
> {
  return allRows<{
    tenantId: string
    id: string
    sub: string
    email: string
    status: string
    fixture: boolean
  }>(tx, {
    name: 'tenant_user.of_account',
    text: `select u.tenant_id as "tenantId", u.id, u.sub, a.email, u.status, u.fixture
           from tenant_users u join accounts a on a.id = u.account_id
           where u.account_id = $1 and u.status in ('invited', 'pre_provisioned', 'active')
           order by u.created_at, u.id limit $2`,
    values: [accountId, limit],
  })
}
