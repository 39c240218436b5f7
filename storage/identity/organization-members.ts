/**
 * Members of organizations: agents, accounts, and invited addresses. Organizations span tenants, so every transaction
 * here crosses tenants.
 */
import type { Email } from '../../actors/domain/email.js'
import { agentInForce } from '../platform/in-force.js'
import type { MemberRole } from './organizations.js'
import { allValues, execute, firstRow, isChanged, type Transaction } from '../platform/sql.js'
import { listing } from '../platform/portable/tenant-rows.js'

export type MemberRow = {
  readonly id: string
  readonly organizationId: string
  readonly kind: 'user' | 'agent'
  readonly agentId: string | null
  /** The account's user in the organization's oldest environment. */
  readonly userId: string | null
  readonly email: string | null
  readonly displayName: string
  readonly role: MemberRole
  readonly status: 'active' | 'invited'
  readonly createdAt: Date
  /** When an invitation ends; null for members. */
  readonly expiresAt: Date | null
}

/** Shows of a person only what the organization already knows: its own invitation or its member. */
const MEMBER = `select m.id, m.organization_id as "organizationId",
    case m.member_type when 'agent' then 'agent' else 'user' end as kind,
    case m.member_type when 'agent' then m.member_id end as "agentId",
    (select u.id from tenant_users u join tenants t on t.id = u.tenant_id
      where m.member_type = 'account' and u.account_id = m.member_id and u.status <> 'removed'
        and t.organization_id = m.organization_id
      order by t.created_at, t.id limit 1) as "userId",
    coalesce(m.email, c.email) as email,
    coalesce(g.name, c.display_name, '') as "displayName", m.role,
    case m.member_type when 'invitation' then 'invited' else 'active' end as status,
    m.created_at as "createdAt", m.expires_at as "expiresAt"
  from organization_members m
    left join accounts c on m.member_type = 'account' and c.id = m.member_id
    left join agents g on m.member_type = 'agent' and g.id = m.member_id`

/** A page of the members of an organization, newest first. */
export const listMembers = listing<MemberRow>(
  'organization_member.page',
  `${MEMBER} where m.organization_id = $1`,
  'm',
)

export const findMember = (tx: Transaction, organizationId: string, id: string) =>
  firstRow<MemberRow>(tx, {
    name: 'organization_member.record',
    text: `${MEMBER} where m.organization_id = $1 and m.id = $2`,
    values: [organizationId, id],
  })

/**
 * Locks the organization until the transaction ends: changes of its members run one after the other, so each sees the
 * owners left by the previous one.
 */
export const holdMembers = (tx: Transaction, organizationId: string) =>
  execute(tx, {
    name: 'organization_member.hold',
    text: 'select from organizations where id = $1 for no key update',
    values: [organizationId],
  })

type NewMember = {
  readonly id: string
  readonly organizationId: string
  readonly role: MemberRole
  readonly createdAt: Date
}

/** The limits of an organization without its own limits. */
type MemberLimits = { readonly maxMembers: number; readonly invitationTtlSecs: number }

/** Why a member was not added. */
type NotAdded = 'is_member' | 'full'

/** SQL: whether the organization $1 has fewer members and open invitations than its limit, at most $2, at the time $3. */
const ROOM = `select (select count(*) from organization_members c where c.organization_id = o.id
    and (c.expires_at is null or c.expires_at > $3)) <
      least(coalesce(o.max_members, $2::int), p.max_members) as free,
    o.invitation_ttl_secs as ttl
  from organizations o left join billing_plans p on p.id = o.billing_plan_id where o.id = $1`

/** Removes the expired invitations of an organization, so that their addresses can be invited again. */
export const expireInvitations = (tx: Transaction, organizationId: string, now: Date) =>
  execute(tx, {
    name: 'organization_member.expire',
    text: `delete from organization_members
           where organization_id = $1 and member_type = 'invitation' and expires_at <= $2`,
    values: [organizationId, now],
  })

/** Invites an address. Call `holdMembers` first. */
export async function inviteMember(
  tx: Transaction,
  { id, organizationId, role, createdAt }: NewMember,
  email: Email,
  { maxMembers, invitationTtlSecs }: MemberLimits,
): Promise<MemberRow | NotAdded> {
  const { rows } = await tx.query<{ free: boolean; added: boolean }>({
    name: 'organization_member.invite',
    text: `with room as (${ROOM}),
           added as (
             insert into organization_members (organization_id, member_type, member_id, id, role, email,
               created_at, expires_at)
             select $1, 'invitation', $4::uuid, $4::uuid, $5, $6, $3,
               $3::timestamptz + make_interval(secs => coalesce(room.ttl, $7::int))
             from room
             where room.free
               and not exists (select from organization_members m join accounts a on a.id = m.member_id
                 where m.organization_id = $1 and m.member_type = 'account' and a.email_key = lower($6))
             on conflict do nothing returning 1)
           select room.free, exists (select from added) as added from room`,
    values: [organizationId, maxMembers, createdAt, id, role, email, invitationTtlSecs],
  })
  if (rows[0]?.added === true) return (await findMember(tx, organizationId, id))!
  return rows[0]?.free === true ? 'is_member' : 'full'
}

/**
 * Adds an agent registered in the control plane or in an environment of the organization. Any other agent is unknown.
 * Call `holdMembers` first.
 */
export async function addAgentMember(
  tx: Transaction,
  { id, organizationId, role, createdAt }: NewMember,
  agentId: string,
  { maxMembers }: MemberLimits,
): Promise<MemberRow | 'unknown_agent' | NotAdded> {
  const { rows } = await tx.query<{ known: boolean; free: boolean; added: boolean }>({
    name: 'organization_member.add_agent',
    text: `with known as (
             select a.id from agents a join tenants t on t.id = a.tenant_id
             where a.id = $6 and (t.control_plane or t.organization_id = $1)
               and ${agentInForce('a.id')}),
           room as (${ROOM}),
           added as (
             insert into organization_members (organization_id, member_type, member_id, id, role,
               created_at)
             select $1, 'agent', known.id, $4, $5, $3 from known, room where room.free
             on conflict do nothing returning 1)
           select exists (select from known) as known, exists (select from added) as added, room.free
           from room`,
    values: [organizationId, maxMembers, createdAt, id, role, agentId],
  })
  if (rows[0]?.known !== true) return 'unknown_agent'
  if (!rows[0].added) return rows[0].free ? 'is_member' : 'full'
  return (await findMember(tx, organizationId, id))!
}

/**
 * SQL: another owner than the member exists who can sign in. An agent can with an active key, and where no tenant of the
 * organization has suspended it.
 */
const hasOtherOwner = (organizationId: string, memberId: string) =>
  `exists (select from organization_members o
  where o.organization_id = ${organizationId} and o.id <> ${memberId} and o.role = 'owner'
    and case o.member_type
      when 'account' then coalesce((select a.status = 'active' from accounts a where a.id = o.member_id), false)
      when 'agent' then ${agentInForce('o.member_id')}
        and exists (select from agents g join agent_keys k on k.tenant_id = g.tenant_id and k.agent_id = g.id
          where g.id = o.member_id and k.status = 'active')
        and not exists (select from agent_suspensions x join tenants xt on xt.id = x.tenant_id
          where x.agent_id = o.member_id and xt.organization_id = o.organization_id)
      else false end)`
const HAS_OTHER_OWNER = hasOtherOwner('$1', '$2')

/** SQL: the agent $1 owns the organization of the member `m`, which the tenant $2 belongs to where it is not null. */
const OWNED_BY_AGENT = `m.member_type = 'agent' and m.member_id = $1 and m.role = 'owner'
  and ($2::uuid is null or m.organization_id = (select t.organization_id from tenants t where t.id = $2))`

/**
 * Locks the organizations that the agent owns, and tells whether each has another owner who can sign in.
 * @param tenantId the tenant that the agent leaves: its organization alone counts. Null: every one.
 */
export async function keepsOwnersWithout(
  tx: Transaction,
  agentId: string,
  tenantId: string | null,
): Promise<boolean> {
  await tx.query({
    name: 'organization_member.hold_owned',
    text: `select from organizations where id in (
             select m.organization_id from organization_members m where ${OWNED_BY_AGENT})
           order by id for no key update`,
    values: [agentId, tenantId],
  })
  const { rows } = await tx.query<{ keeps: boolean }>({
    name: 'organization_member.keeps_owners',
    text: `select not exists (select from organization_members m
             where ${OWNED_BY_AGENT} and not ${hasOtherOwner('m.organization_id', 'm.id')}) as keeps`,
    values: [agentId, tenantId],
  })
  return rows[0]!.keeps
}

/** Changes a role; false when no owner would be left. Call `holdMembers` first. */
export const setMemberRole = (
  tx: Transaction,
  organizationId: string,
  id: string,
  role: MemberRole,
) =>
  isChanged(tx, {
    name: 'organization_member.set_role',
    text: `update organization_members set role = $3
           where organization_id = $1 and id = $2
             and (role <> 'owner' or $3 = 'owner' or member_type = 'invitation' or ${HAS_OTHER_OWNER})`,
    values: [organizationId, id, role],
  })

/** Removes a member or an invitation; false when no owner would be left. */
export const removeMember = (tx: Transaction, organizationId: string, id: string) =>
  isChanged(tx, {
    name: 'organization_member.remove',
    text: `delete from organization_members
           where organization_id = $1 and id = $2
             and (role <> 'owner' or member_type = 'invitation' or ${HAS_OTHER_OWNER})`,
    values: [organizationId, id],
  })

/** Ends what an agent's role in an organization granted: sessions in its tenants, and organization-bound ones. */
export const endMemberSessions = (
  tx: Transaction,
  organizationId: string,
  agentId: string,
  now: Date,
) =>
  execute(tx, {
    name: 'session.end_of_member',
    text: `update sessions set ended_at = $3, ended_reason = 'membership_changed'
           where agent_id = $2 and subject_type = 'agent' and ended_at is null
             and (organization_id = $1
               or tenant_id in (select id from tenants where organization_id = $1))`,
    values: [organizationId, agentId, now],
  })

export type JoinedMember = {
  readonly id: string
  readonly organizationId: string
  readonly role: MemberRole
}

/**
 * Turns the invitation of a user who signs in at a tenant into a membership of the tenant's organization. The user's
 * address must be verified. An existing member keeps the role.
 */
export const acceptMemberInvitation = (
  tx: Transaction,
  tenantId: string,
  accountId: string,
  now: Date,
) =>
  firstRow<JoinedMember>(tx, {
    name: 'organization_member.accept',
    text: `update organization_members m set member_type = 'account', member_id = a.id, email = null,
             expires_at = null
           from accounts a, tenants t
           where (m.expires_at is null or m.expires_at > $3) and a.id = $2 and a.email_verified and t.id = $1
             and m.organization_id = t.organization_id and lower(m.email) = a.email_key
             and not exists (select from organization_members o
               where o.organization_id = m.organization_id and o.member_type = 'account'
                 and o.member_id = a.id)
           returning m.id, m.organization_id as "organizationId", m.role`,
    values: [tenantId, accountId, now],
  })

/** The environments of an organization, oldest first, at most `limit`. */
export const tenantIdsOf = (tx: Transaction, organizationId: string, limit: number) =>
  allValues<string>(tx, {
    name: 'organization.tenant_ids',
    text: `select id from tenants where organization_id = $1 order by created_at, id limit $2`,
    values: [organizationId, limit],
  })
