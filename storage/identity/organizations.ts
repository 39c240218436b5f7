/** Organizations and their members. They span tenants, so write them in transactions that cross tenants. */
import {
  allRows,
  execute,
  firstRow,
  firstValue,
  onlyValue,
  type Transaction,
} from '../platform/sql.js'

export type OrganizationRow = {
  id: string
  name: string
  slug: string
  status: 'active' | 'suspended'
  supportContact: string | null
  createdAt: Date
  updatedAt: Date
}
export type MemberRole = 'owner' | 'admin' | 'member'
export type Membership = OrganizationRow & { role: MemberRole }

const COLUMNS = `o.id, o.name, o.slug, o.status, o.support_contact as "supportContact", o.created_at as "createdAt",
  o.updated_at as "updatedAt"`

/**
 * Inserts an organization. Undefined, and nothing written, when the slug is taken. An organization of a tenant's user
 * counts with the organization of that tenant.
 */
export const insertOrganization = (
  tx: Transaction,
  organization: Pick<OrganizationRow, 'id' | 'name' | 'slug' | 'createdAt'> & {
    /** The tenant of the user's token that created it; absent when an agent or a command creates it. */
    readonly madeInTenantId?: string | undefined
    /** The network that registers it, stored as a digest. Null where it is not counted. */
    readonly network: string | null
  },
) =>
  firstRow<OrganizationRow>(tx, {
    name: 'organization.insert',
    text: `insert into organizations as o (id, name, slug, created_at, updated_at,
             made_in_tenant_id, registering_network)
           values ($1, $2, $3, $4, $4, $5, case when $6::text is not null then coalesce(
             (select p.registering_network from tenants t join organizations p on p.id = t.organization_id
              where t.id = $5),
             sha256(convert_to(concat((select id from tenants where control_plane), ' ', $6), 'UTF8'))) end)
           on conflict (slug) do nothing
           returning ${COLUMNS}`,
    values: [
      organization.id,
      organization.name,
      organization.slug,
      organization.createdAt,
      organization.madeInTenantId ?? null,
      organization.network,
    ],
  })

export type Member = { readonly memberType: 'agent' | 'account'; readonly memberId: string }

/** The account of a user's pairwise subject in a tenant. */
export const findAccountOfSubject = (tx: Transaction, tenantId: string, subject: string) =>
  firstValue<string>(tx, {
    name: 'organization_member.account',
    text: `select account_id as "accountId" from tenant_users
           where tenant_id = $1 and sub = $2 and status = 'active' and account_active`,
    values: [tenantId, subject],
  })

/** A page of a member's organizations, newest first. */
export const listMemberships = (
  tx: Transaction,
  { memberType, memberId }: Member,
  organizationId: string | null,
  limit: number,
  after: { readonly createdAt: Date; readonly id: string } | null,
) =>
  allRows<Membership>(tx, {
    name: 'organization_member.list',
    text: `select ${COLUMNS}, m.role
           from organization_members m join organizations o on o.id = m.organization_id
           where m.member_type = $1 and m.member_id = $2
             and ($3::uuid is null or o.id = $3)
             and ($5::timestamptz is null or (o.created_at, o.id) < ($5, $6::uuid))
           order by o.created_at desc, o.id desc limit $4`,
    values: [
      memberType,
      memberId,
      organizationId,
      limit,
      after?.createdAt ?? null,
      after?.id ?? null,
    ],
  })

/** A page of all organizations of the deployment, newest first. */
export const listOrganizationRows = (
  tx: Transaction,
  limit: number,
  after: { readonly createdAt: Date; readonly id: string } | null,
) =>
  allRows<OrganizationRow>(tx, {
    name: 'organization.list',
    text: `select ${COLUMNS} from organizations o
           where $2::timestamptz is null or (o.created_at, o.id) < ($2, $3::uuid)
           order by o.created_at desc, o.id desc limit $1`,
    values: [limit, after?.createdAt ?? null, after?.id ?? null],
  })

/** An organization, as a member sees it. */
export const findMembership = (
  tx: Transaction,
  { memberType, memberId }: Member,
  organizationId: string,
) =>
  firstRow<Membership>(tx, {
    name: 'organization_member.find',
    text: `select ${COLUMNS}, m.role
           from organization_members m join organizations o on o.id = m.organization_id
           where m.member_type = $1 and m.member_id = $2 and m.organization_id = $3`,
    values: [memberType, memberId, organizationId],
  })

/** A user as a token of one tenant names them. Memberships outside that tenant stay hidden. */
type PersonWithin = {
  readonly accountId: string
  readonly tenantId: string
  /** Null: every organization that may be named; otherwise only this one. */
  readonly organizationId: string | null
}

/**
 * The organization of the user's tenant, where a user without a role counts as a member, and the user's organizations
 * created with tokens of that tenant.
 */
const NAMEABLE_ORGANIZATIONS = `organizations o left join organization_members m
    on m.organization_id = o.id and m.member_type = 'account' and m.member_id = $1
  where o.id in (select t.organization_id from tenants t where t.id = $2
      union all select g.id from organizations g
      where g.made_in_tenant_id = $2 and exists (select from organization_members w
        where w.organization_id = g.id and w.member_type = 'account' and w.member_id = $1))
    and ($3::uuid is null or o.id = $3)`

/** A page of organizations that a user token may name, newest first. */
export const listPersonOrganizations = (
  tx: Transaction,
  { accountId, tenantId, organizationId }: PersonWithin,
  limit: number,
  after: { readonly createdAt: Date; readonly id: string } | null,
) =>
  allRows<Membership>(tx, {
    name: 'organization.list_of_person',
    text: `select ${COLUMNS}, coalesce(m.role, 'member') as role from ${NAMEABLE_ORGANIZATIONS}
             and ($5::timestamptz is null or (o.created_at, o.id) < ($5, $6::uuid))
           order by o.created_at desc, o.id desc limit $4`,
    values: [
      accountId,
      tenantId,
      organizationId,
      limit,
      after?.createdAt ?? null,
      after?.id ?? null,
    ],
  })

/** An organization, if a user token may name it. */
export const findPersonOrganization = (
  tx: Transaction,
  { accountId, tenantId, organizationId }: PersonWithin & { readonly organizationId: string },
) =>
  firstRow<Membership>(tx, {
    name: 'organization.find_of_person',
    text: `select ${COLUMNS}, coalesce(m.role, 'member') as role from ${NAMEABLE_ORGANIZATIONS}`,
    values: [accountId, tenantId, organizationId],
  })

type OrganizationMemberRow = {
  organizationId: string
  memberType: 'agent' | 'account'
  memberId: string
  role: MemberRole
  createdAt: Date
}

/** Adds a member. @returns the id of the membership. */
export const insertOrganizationMember = (tx: Transaction, member: OrganizationMemberRow) =>
  onlyValue<string>(tx, {
    name: 'organization_member.insert',
    text: `insert into organization_members (organization_id, member_type, member_id, role, created_at)
           values ($1, $2, $3, $4, $5) returning id`,
    values: [
      member.organizationId,
      member.memberType,
      member.memberId,
      member.role,
      member.createdAt,
    ],
  })

/** Grants an account a role in an organization, adding it as a member if needed. An owner stays owner. @returns the id of the membership. */
export const grantOrganizationRole = (tx: Transaction, member: OrganizationMemberRow) =>
  onlyValue<string>(tx, {
    name: 'organization_member.grant_role',
    text: `insert into organization_members as m (organization_id, member_type, member_id, role, created_at)
           values ($1, $2, $3, $4, $5)
           on conflict (organization_id, member_type, member_id) do update
             set role = case when m.role = 'owner' then m.role else excluded.role end
           returning id`,
    values: [
      member.organizationId,
      member.memberType,
      member.memberId,
      member.role,
      member.createdAt,
    ],
  })

export const findOrganization = (tx: Transaction, id: string) =>
  firstRow<OrganizationRow>(tx, {
    name: 'organization.find',
    text: `select ${COLUMNS} from organizations o where o.id = $1`,
    values: [id],
  })

/** Name and support contact. Undefined members stay unchanged. Null removes the contact. */
type RecordChangeRow = {
  readonly name: string | undefined
  readonly supportContact: string | null | undefined
}

/** Updates an organization. Its tenants show the new contact (0047_suspension). */
export const updateOrganizationRow = (
  tx: Transaction,
  id: string,
  { name, supportContact }: RecordChangeRow,
  now: Date,
) =>
  execute(tx, {
    name: 'organization.update',
    text: `update organizations set name = coalesce($2, name),
             support_contact = case when $4 then $3 else support_contact end, updated_at = $5
           where id = $1`,
    values: [id, name ?? null, supportContact ?? null, supportContact !== undefined, now],
  })
