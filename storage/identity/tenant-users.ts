/**
 * A user of one tenant: status, roles and a pairwise subject. The account behind it is global, so statements that show
 * or change both cross tenants and filter by tenant explicitly.
 */
import type { Email } from '../../actors/domain/email.js'
import { keysIn } from './email-keys.js'
import {
  profileAssignments,
  type ProfileChange,
  type ProfileClaims,
  profileParameter,
  profileSql,
} from './profiles.js'
import { hasKeyIn } from './ways/ways-in.js'
import { endBackchannelApprovals } from '../oauth/backchannel-requests.js'
import { ending } from '../platform/ends/ending.js'
import {
  allRows,
  execute,
  firstRow,
  firstValue,
  isChanged,
  onlyValue,
  type Transaction,
} from '../platform/sql.js'

export type TenantUserStatus = 'invited' | 'pre_provisioned' | 'active' | 'suspended' | 'removed'

type NewTenantUser = {
  tenantId: string
  id: string
  accountId: string
  /** Pairwise: generated for this tenant only. */
  sub: string
  status: 'invited' | 'pre_provisioned' | 'active'
  roles: readonly string[]
  fixture: boolean
  createdAt: Date
  /** The tenant's own name for the user; null: use the account's. */
  displayName?: string | null
  /** The address as the tenant wrote it, shown until the user has signed in. */
  invitedAs?: Email | null
  /** The tenant's own profile claims of the user. */
  profile?: ProfileChange
}

export const insertTenantUser = (tx: Transaction, user: NewTenantUser) =>
  execute(tx, {
    name: 'tenant_user.insert',
    text: `insert into tenant_users (tenant_id, id, account_id, sub, status, roles, fixture,
             created_at, updated_at, display_name, invited_as, given_name, family_name, picture, locale,
             zoneinfo, phone_number, phone_number_verified)
           select $1, $2, $3, $4, $5, $6, $7, $8, $8, $9, $10, p.given_name, p.family_name, p.picture, p.locale,
             p.zoneinfo, p.phone_number, coalesce(p.phone_number_verified and p.phone_number is not null, false)
           from jsonb_to_record($11::jsonb) as p (given_name text, family_name text, picture text, locale text,
             zoneinfo text, phone_number text, phone_number_verified boolean)`,
    values: [
      user.tenantId,
      user.id,
      user.accountId,
      user.sub,
      user.status,
      user.roles,
      user.fixture,
      user.createdAt,
      user.displayName ?? null,
      user.invitedAs ?? null,
      profileParameter(user.profile),
    ],
  })

export type TenantUserRow = {
  readonly id: string
  readonly tenantId: string
  readonly accountId: string
  readonly sub: string
  readonly email: Email
  readonly emailVerified: boolean
  readonly displayName: string
  readonly profile: ProfileClaims
  readonly status: TenantUserStatus
  /** False while an operator of the deployment has suspended the account. */
  readonly accountActive: boolean
  readonly roles: string[]
  /** The organization of the tenant. The user's other memberships stay hidden. */
  readonly organizationIds: string[]
  readonly fixture: boolean
  readonly metadata: Record<string, unknown>
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly lastLoginAt: Date | null
}

/**
 * True if the user has signed in or accepted. Until then a tenant sees nothing of the account, not even how its owner
 * spells the address, because a tenant can invite any address.
 */
const HAS_SIGNED_IN = `case when u.status in ('invited', 'pre_provisioned') then false
    when u.status = 'suspended' then coalesce(u.suspended_from, 'active') = 'active'
    when u.status = 'removed' then u.last_login_at is not null else true end`

/**
 * The status shown to the tenant: also suspended while an operator of the deployment has suspended the account of a user
 * who has signed in.
 */
export const SHOWN_STATUS = `case when not u.account_active and u.status = 'active' then 'suspended' else u.status end`

/** The address and the name that the tenant sees. Lists search and sort by no other. */
export const SHOWN_EMAIL = `case when ${HAS_SIGNED_IN} then a.email else coalesce(u.invited_as, a.email) end`
export const SHOWN_NAME = `coalesce(u.display_name, case when ${HAS_SIGNED_IN} then a.display_name else '' end)`

const COLUMNS = `u.id, u.tenant_id as "tenantId", u.account_id as "accountId", u.sub,
    ${SHOWN_EMAIL} as email, a.email_verified and ${HAS_SIGNED_IN} as "emailVerified",
    ${SHOWN_NAME} as "displayName",
    ${profileSql(HAS_SIGNED_IN)} as profile,
    ${SHOWN_STATUS} as status, 
    u.account_active or not (${HAS_SIGNED_IN}) as "accountActive", u.roles, u.fixture, u.metadata, u.created_at as "createdAt",
    u.updated_at as "updatedAt", u.last_login_at as "lastLoginAt",
    array(select m.organization_id::text from organization_members m
      join tenants t on t.organization_id = m.organization_id
      where t.id = u.tenant_id and m.member_type = 'account' and m.member_id = u.account_id)
      as "organizationIds"`
const USER = `select ${COLUMNS} from tenant_users u join accounts a on a.id = u.account_id`

type TenantUserFilter = {
  /** Null: all users except removed ones. */
  readonly status: TenantUserStatus | null
  readonly email: Email | null
  /** Begins the name or the address, in any case. */
  readonly q: string | null
  readonly role: string | null
}

const FILTER = `u.tenant_id = $1
    and case when $2::text is null then u.status <> 'removed' else ${SHOWN_STATUS} = $2 end
    and ($3::text is null or a.email_key in ${keysIn('$3', '$1')})
    and ($4::text is null or starts_with(lower(${SHOWN_EMAIL}), lower($4))
      or starts_with(lower(${SHOWN_NAME}), lower($4)))
    and ($5::text is null or $5 = any (u.roles))`

const filterValues = (tenantId: string, { status, email, q, role }: TenantUserFilter) => [
  tenantId,
  status,
  email,
  q,
  role,
]

/** A page of a tenant's users, newest first. */
export const listTenantUserRows = (
  tx: Transaction,
  tenantId: string,
  filter: TenantUserFilter,
  limit: number,
  after: { readonly createdAt: Date; readonly id: string } | null,
) =>
  allRows<TenantUserRow>(tx, {
    name: 'tenant_user.list',
    text: `${USER}
           where ${FILTER} and ($7::timestamptz is null or (u.created_at, u.id) < ($7, $8::uuid))
           order by u.created_at desc, u.id desc limit $6`,
    values: [...filterValues(tenantId, filter), limit, after?.createdAt ?? null, after?.id ?? null],
  })

type TenantUserOrder = {
  readonly by: 'email' | 'name' | 'created_at' | 'last_sign_in_at'
  readonly descending: boolean
}

/** The key of a row in its order: with it and the id the next page continues. */
type SortedTenantUserRow = TenantUserRow & { readonly sortKey: string }

type SortedPage = { readonly limit: number; readonly after: SortedAfter | null }

type SortedAfter = { readonly createdAt: Date; readonly key: string; readonly id: string }

/** SQL: a time as text in UTC, which sorts as the time does. */
const timeKey = (time: string) => `to_char(${time} at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')`

/** A user who never signed in has the least time. */
const SORT_KEY = `case $7 when 'email' then lower(${SHOWN_EMAIL}) when 'name' then lower(${SHOWN_NAME})
    when 'created_at' then ${timeKey('u.created_at')}
    else coalesce(${timeKey('u.last_login_at')}, '') end collate "C"`

/** A page of a tenant's users, oldest first, by the index of the list. */
const oldestTenantUsers = (
  tx: Transaction,
  tenantId: string,
  filter: TenantUserFilter,
  limit: number,
  after: SortedAfter | null,
) =>
  allRows<SortedTenantUserRow>(tx, {
    name: 'tenant_user.oldest',
    // The index finds the place by a time in milliseconds, and the key decides within it.
    text: `select ${COLUMNS}, keyed.key as "sortKey"
           from tenant_users u join accounts a on a.id = u.account_id,
             lateral (select ${timeKey('u.created_at')} collate "C" as key) keyed
           where ${FILTER} and u.created_at >= coalesce($7::timestamptz, '-infinity')
             and ($8::text is null or (keyed.key, u.id) > ($8 collate "C", $9::uuid))
           order by u.created_at, u.id limit $6`,
    values: [
      ...filterValues(tenantId, filter),
      limit,
      after?.createdAt ?? null,
      after?.key ?? null,
      after?.id ?? null,
    ],
  })

/** A page of a tenant's users in an order. Other orders than by age sort the users that the filter finds. */
export async function sortTenantUsers(
  tx: Transaction,
  tenantId: string,
  filter: TenantUserFilter,
  { by, descending, limit, after }: TenantUserOrder & SortedPage,
): Promise<SortedTenantUserRow[]> {
  if (by === 'created_at' && !descending)
    return oldestTenantUsers(tx, tenantId, filter, limit, after)
  return allRows<SortedTenantUserRow>(tx, {
    name: 'tenant_user.sort',
    text: `with page as (
             select u.id, keyed.key
             from tenant_users u join accounts a on a.id = u.account_id,
               lateral (select ${SORT_KEY} as key) keyed
             where ${FILTER} and ($9::text is null or (keyed.key = $9 and u.id > $10::uuid)
               or case when $8 then keyed.key < $9 collate "C" else keyed.key > $9 collate "C" end)
             order by case when $8 then keyed.key end desc, case when not $8 then keyed.key end, u.id
             limit $6)
           select ${COLUMNS}, page.key as "sortKey"
           from page join tenant_users u on u.tenant_id = $1 and u.id = page.id
             join accounts a on a.id = u.account_id
           order by case when $8 then page.key end desc, case when not $8 then page.key end, u.id`,
    values: [
      ...filterValues(tenantId, filter),
      limit,
      by,
      descending,
      after?.key ?? null,
      after?.id ?? null,
    ],
  })
}

export const findTenantUser = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<TenantUserRow>(tx, {
    name: 'tenant_user.find',
    text: `${USER} where u.tenant_id = $1 and u.id = $2`,
    values: [tenantId, id],
  })

/** Locks the user until the transaction ends. */
export const holdTenantUser = (tx: Transaction, tenantId: string, id: string) =>
  execute(tx, {
    name: 'tenant_user.hold',
    // `no key`: rows that reference the user may still be inserted.
    text: 'select from tenant_users where tenant_id = $1 and id = $2 for no key update',
    values: [tenantId, id],
  })

/** The user of an account in a tenant. */
export const findTenantUserOfAccount = (tx: Transaction, tenantId: string, accountId: string) =>
  firstRow<{ id: string; status: TenantUserStatus }>(tx, {
    name: 'tenant_user.of_account',
    text: `select id, status from tenant_users
           where tenant_id = $1 and account_id = $2 for update`,
    values: [tenantId, accountId],
  })

const NO_PROFILE: ProfileChange = {
  given_name: null,
  family_name: null,
  picture: null,
  locale: null,
  zoneinfo: null,
  phone_number: null,
}

/** removed -> invited or pre_provisioned, with the same subject. */
export const reviveTenantUser = (
  tx: Transaction,
  user: Pick<NewTenantUser, 'tenantId' | 'id' | 'status' | 'displayName' | 'invitedAs' | 'profile'>,
  now: Date,
) =>
  isChanged(tx, {
    name: 'tenant_user.revive',
    text: `update tenant_users set status = $3, display_name = $4, roles = '{}', updated_at = $5,
             invited_as = $6, ${profileAssignments('$7')}
           where tenant_id = $1 and id = $2 and status = 'removed'`,
    values: [
      user.tenantId,
      user.id,
      user.status,
      user.displayName ?? null,
      now,
      user.invitedAs ?? null,
      profileParameter({ ...NO_PROFILE, ...user.profile }),
    ],
  })

type TenantUserChange = {
  /** Undefined leaves it unchanged; null uses the account's again. */
  readonly displayName: string | null | undefined
  readonly roles: readonly string[] | undefined
  readonly metadata: Readonly<Record<string, unknown>> | undefined
  readonly profile?: ProfileChange | undefined
}

/** Updates the given members. A lost role ends credentials. False when the user does not exist or is removed. */
export const updateTenantUserRow = (
  tx: Transaction,
  tenantId: string,
  id: string,
  { displayName, roles, metadata, profile }: TenantUserChange,
  now: Date,
) =>
  isChanged(ending(tx, 'user.role_lost', roles === undefined ? [] : [{ tenantId, id }]), {
    name: 'tenant_user.update',
    text: `update tenant_users set
             display_name = case when $3 then $4 else display_name end,
             roles = coalesce($5, roles), metadata = coalesce($6, metadata), updated_at = $7,
             ${profileAssignments('$8')}
           where tenant_id = $1 and id = $2 and status <> 'removed'`,
    values: [
      tenantId,
      id,
      displayName !== undefined,
      displayName ?? null,
      roles ?? null,
      metadata === undefined ? null : JSON.stringify(metadata),
      now,
      profileParameter(profile),
    ],
  })

/** invited, pre_provisioned or active -> suspended. What depends on the user ends. */
export const suspendTenantUserRow = (tx: Transaction, tenantId: string, id: string, now: Date) =>
  isChanged(ending(tx, 'user.ended', [{ tenantId, id }]), {
    name: 'tenant_user.suspend',
    text: `update tenant_users set status = 'suspended', suspended_from = status, updated_at = $3
           where tenant_id = $1 and id = $2 and status in ('invited', 'pre_provisioned', 'active')`,
    values: [tenantId, id, now],
  })

/** suspended -> the status before. A sixth active fixture user violates `fixture_user_limit`. */
export const reactivateTenantUserRow = (tx: Transaction, tenantId: string, id: string, now: Date) =>
  isChanged(tx, {
    name: 'tenant_user.reactivate',
    text: `update tenant_users
           set status = coalesce(suspended_from, 'active'), suspended_from = null, updated_at = $3
           where tenant_id = $1 and id = $2 and status = 'suspended'`,
    values: [tenantId, id, now],
  })

/** Any status -> removed. The row and the subject stay, what depends on the user ends. */
export const removeTenantUserRow = (tx: Transaction, tenantId: string, id: string, now: Date) =>
  isChanged(ending(tx, 'user.ended', [{ tenantId, id }]), {
    name: 'tenant_user.remove',
    text: `update tenant_users set status = 'removed', suspended_from = null, updated_at = $3
           where tenant_id = $1 and id = $2 and status <> 'removed'`,
    values: [tenantId, id, now],
  })

/**
 * Ends the sessions of a user in a tenant: browser sessions, tokens, and unfetched device and CIBA approvals.
 * Delegations to agents stay.
 */
export async function endHumanSessions(
  tx: Transaction,
  { tenantId, sub, accountId }: Pick<TenantUserRow, 'tenantId' | 'sub' | 'accountId'>,
  reason: string,
  now: Date,
): Promise<void> {
  const sessions = () =>
    Promise.all([
      ending(tx, 'browser_session.ended').query({
        name: 'browser_session.end_of_human',
        text: `update browser_sessions set ended_at = $4, ended_reason = $3
               where tenant_id = $1 and account_id = $2 and ended_at is null
               returning tenant_id as "tenantId", id`,
        values: [tenantId, accountId, reason, now],
      }),
      tx.query({
        name: 'session.end_of_human',
        text: `update sessions set ended_at = $4, ended_reason = $3
               where tenant_id = $1 and subject = $2 and subject_type = 'human' and agent_id is null
                 and ended_at is null`,
        values: [tenantId, sub, reason, now],
      }),
    ])
  await sessions()
  await endBackchannelApprovals(tx, { tenantId, subject: sub }, now)
  // Again, for approvals fetched concurrently.
  await sessions()
}

/** How many active fixture users a tenant has. */
export const countFixtures = (tx: Transaction, tenantId: string) =>
  onlyValue<number>(tx, {
    name: 'tenant_user.count_fixtures',
    text: `select count(*) from tenant_users
           where tenant_id = $1 and fixture and status = 'active'`,
    values: [tenantId],
  })

/** The oldest active fixture user of a tenant. */
export const findOldestFixture = (tx: Transaction, tenantId: string) =>
  firstValue<string>(tx, {
    name: 'tenant_user.oldest_fixture',
    text: `select id from tenant_users
           where tenant_id = $1 and fixture and status = 'active'
           order by created_at, id limit 1`,
    values: [tenantId],
  })
/** User claims that an application may be allowed to read. */
type PersonRow = {
  /** Empty: a guest. */
  readonly email: string
  readonly emailVerified: boolean
  readonly displayName: string
  readonly profile: ProfileClaims
  readonly addresses: unknown
  readonly updatedAt: Date
  readonly organizationId: string | null
  readonly organizationName: string | null
}

/** Finds an active user by subject. Accounts are global, so the transaction crosses tenants. */
export const findPerson = (tx: Transaction, tenantId: string, sub: string) =>
  firstRow<PersonRow>(tx, {
    name: 'tenant_user.person',
    text: `select case when a.guest_since is null then a.email else '' end as email,
             a.email_verified as "emailVerified", coalesce(u.display_name, a.display_name) as "displayName",
             ${profileSql()} as profile, s.attributes -> 'addresses' as addresses,
             greatest(a.updated_at, u.updated_at) as "updatedAt", o.id as "organizationId", o.name as "organizationName"
           from tenant_users u
           join accounts a on a.id = u.account_id
           join tenants t on t.id = u.tenant_id
           left join organizations o on o.id = t.organization_id
           left join scim_users s on s.tenant_id = u.tenant_id and s.user_id = u.id
           where u.tenant_id = $1 and u.sub = $2 and u.status = 'active' and a.status = 'active'`,
    values: [tenantId, sub],
  })

/** The roles of an active user in a tenant. Accounts are global, so the transaction crosses tenants. */
export const findPersonRoles = (tx: Transaction, tenantId: string, sub: string) =>
  firstValue<string[]>(tx, {
    name: 'tenant_user.person_roles',
    text: `select u.roles
           from tenant_users u join accounts a on a.id = u.account_id and a.status = 'active'
           where u.tenant_id = $1 and u.sub = $2 and u.status = 'active'`,
    values: [tenantId, sub],
  })

/** invited -> active; undefined when the user is not invited any more. */
export const acceptTenantUser = (tx: Transaction, tenantId: string, accountId: string, now: Date) =>
  firstRow<{ sub: string }>(tx, {
    name: 'tenant_user.accept',
    text: `update tenant_users set status = 'active', updated_at = $3
           where tenant_id = $1 and account_id = $2 and status = 'invited' returning sub`,
    values: [tenantId, accountId, now],
  })

/** The subject of an account in a tenant. */
export const findTenantUserOfAccountSub = (tx: Transaction, tenantId: string, accountId: string) =>
  firstValue<string>(tx, {
    name: 'tenant_user.sub_of_account',
    text: 'select sub from tenant_users where tenant_id = $1 and account_id = $2',
    values: [tenantId, accountId],
  })

/**
 * Activates a user with one more role, from any status except suspended. Undefined when the user does not exist or is
 * suspended.
 */
export const activateWithRole = (
  tx: Transaction,
  tenantId: string,
  accountId: string,
  role: string,
  now: Date,
) =>
  firstRow<{ id: string; sub: string }>(tx, {
    name: 'tenant_user.activate_with_role',
    text: `update tenant_users set status = 'active', updated_at = $4,
             roles = array(select distinct r from unnest(
               case when status = 'removed' then array[$3] else roles || $3 end) r order by r)
           where tenant_id = $1 and account_id = $2 and status <> 'suspended'
           returning id, sub`,
    values: [tenantId, accountId, role, now],
  })

/**
 * True if the tenant keeps an owner who can sign in when these users stop being owners, and true if none of them is one.
 * An invited owner does not count, nor one without mailbox and key: a guest, or a user whom a directory made without an
 * address (both have one below .invalid, RFC 2606). It locks the tenant until the transaction ends, so of two concurrent changes that
 * each leave one owner, the second one sees the first.
 */
export async function keepsOwner(
  tx: Transaction,
  tenantId: string,
  leaving: readonly { readonly id: string; readonly roles: readonly string[] }[],
): Promise<boolean> {
  const ids = leaving.filter(({ roles }) => roles.includes('owner')).map(({ id }) => id)
  if (ids.length === 0) return true
  await tx.query({
    name: 'tenant_user.hold_owners',
    text: 'select from tenants where id = $1 for no key update',
    values: [tenantId],
  })
  const { rows } = await tx.query<{ keeps: boolean }>({
    name: 'tenant_user.keeps_owner',
    text: `select exists (select from tenant_users u join accounts a on a.id = u.account_id
             where u.tenant_id = $1 and 'owner' = any (u.roles) and u.status in ('pre_provisioned', 'active')
               and u.account_active and u.id <> all ($2::uuid[])
               and (a.email_key not like '%.invalid' or ${hasKeyIn('u.tenant_id')}))
             or not exists (select from tenant_users
               where tenant_id = $1 and id = any ($2::uuid[]) and status not in ('invited', 'removed'))
             as keeps`,
    values: [tenantId, ids],
  })
  return rows[0]!.keeps
}

/** A user as lists of other objects name it. */
type ShownUser = {
  readonly sub: string
  readonly id: string
  readonly email: string
  readonly displayName: string
}

/** The users of some subjects of a tenant. Accounts are global, so the transaction crosses tenants. */
export const shownUsers = (tx: Transaction, tenantId: string, subjects: readonly string[]) =>
  allRows<ShownUser>(tx, {
    name: 'tenant_user.shown',
    text: `select u.sub, u.id, ${SHOWN_EMAIL} as email, ${SHOWN_NAME} as "displayName"
           from tenant_users u join accounts a on a.id = u.account_id
           where u.tenant_id = $1 and u.sub = any($2::text[])`,
    values: [tenantId, subjects],
  })
