/**
 * Members and events of organizations, for owners. An invitation has the same result whether or not the address has an
 * account, so the inviter learns nothing. The invited user becomes a member by signing in at a tenant of the
 * organization (`joinByInvitation`). An organization always keeps an active owner.
 */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import {
  addAgentMember,
  endMemberSessions,
  findMember,
  inviteMember,
  listMembers,
  holdMembers,
  type MemberRow,
  expireInvitations,
  removeMember,
  setMemberRole,
} from '../../../../storage/identity/organization-members.js'
import { organizationEventsAfter } from '../../../../storage/identity/organization/events.js'
import { idempotently, kept } from '../../../../storage/platform/idempotency.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import {
  type EventContext,
  eventContext,
  type EventFields,
  type EventType,
} from '../../../domain/events.js'
import { isUuid } from '../../../domain/ids.js'
import { appendOrganizationEvent, doerOf } from '../../../platform/organization-events.js'
import { listed } from '../../../platform/paging.js'
import { inOrganization, offFault, OWNERS } from './access.js'
import type { Handling, OrganizationsTools } from './needs.js'
import { policyOf } from './policies.js'
import type { AddMember, OfMember } from './protocol.js'

const UNKNOWN_MEMBER = { tag: 'unknown_member' } as const
const LAST_OWNER = { tag: 'last_owner' } as const

export const listOrganizationMembers: Handling<'listOrganizationMembers'> = (
  needs,
  message,
  context,
) =>
  inOrganization(needs, message, OWNERS, context, async (tx, { id }) => {
    const rows = await listMembers(tx, id, message.limit + 1, message.after)
    return listed(rows, message.limit)
  })

export const listOrganizationEvents: Handling<'listOrganizationEvents'> = (
  needs,
  message,
  context,
) =>
  inOrganization(needs, message, OWNERS, context, async (tx, { id }) => {
    const { after, limit } = message
    const events = await organizationEventsAfter(tx, id, after, limit)
    return { tag: 'listed', events, nextAfter: events.at(-1)?.sequence ?? after }
  })

export const addOrganizationMember: Handling<'addOrganizationMember'> = async (
  needs,
  message,
  context,
) => {
  const off = offFault(needs, message.caller)
  if (off !== undefined) return off
  return inOrganization(needs, message, OWNERS, context, (tx) =>
    idempotently(tx, message.idempotency, () => add(tx, needs, message, context), kept('member')),
  )
}

async function add(
  tx: Transaction,
  needs: OrganizationsTools,
  { caller, organizationId, who, role }: AddMember,
  context: MessageContext,
) {
  const { clock, random, limits } = needs
  const added = { id: random.uuid(), organizationId, role, createdAt: clock.now() }
  const ofDeployment = {
    maxMembers: limits.max_members,
    invitationTtlSecs: limits.invitation_ttl_secs,
  }
  await holdMembers(tx, organizationId)
  await expireInvitations(tx, organizationId, added.createdAt)
  let member: MemberRow | 'full' | 'is_member' | 'unknown_agent' = 'unknown_agent'
  if ('email' in who) member = await inviteMember(tx, added, who.email, ofDeployment)
  else if (isUuid(who.agentId)) member = await addAgentMember(tx, added, who.agentId, ofDeployment)
  if (member === 'full') {
    const { maxMembers: most } = await policyOf(tx, needs, organizationId)
    return { tag: 'limit_reached', what: 'members', most } as const
  }
  if (typeof member === 'string') return { tag: member }
  const type = 'email' in who ? 'org.member.invited' : 'org.member.added'
  const fields = { ...fieldsOf(member), ...('email' in who ? { email: who.email } : {}) }
  await appendMemberEvent(tx, type, member, fields, eventContext(needs, caller, context))
  return { tag: 'member', member, replayed: false } as const
}

export const updateOrganizationMember: Handling<'updateOrganizationMember'> = async (
  needs,
  message,
  context,
) => {
  const { caller, role } = message
  return inOrganization(needs, message, OWNERS, context, async (tx, { id }) => {
    const before = await lockMember(tx, message)
    if (before === undefined) return UNKNOWN_MEMBER
    if (before.role === role) return { tag: 'member' as const, member: before, replayed: false }
    if (!(await setMemberRole(tx, id, before.id, role))) return LAST_OWNER
    const member = { ...before, role }
    await endAgentAccess(tx, needs, member)
    const fields = { ...fieldsOf(member), role_before: before.role }
    const by = eventContext(needs, caller, context)
    await appendMemberEvent(tx, 'org.member.role_changed', member, fields, by)
    return { tag: 'member' as const, member, replayed: false }
  })
}

export const removeOrganizationMember: Handling<'removeOrganizationMember'> = async (
  needs,
  message,
  context,
) => {
  return inOrganization(needs, message, OWNERS, context, async (tx, { id }) => {
    const member = await lockMember(tx, message)
    if (member === undefined) return UNKNOWN_MEMBER
    if (!(await removeMember(tx, id, member.id))) return LAST_OWNER
    await endAgentAccess(tx, needs, member)
    const by = eventContext(needs, message.caller, context)
    await appendMemberEvent(tx, 'org.member.removed', member, fieldsOf(member), by)
    return { tag: 'removed' as const }
  })
}

async function lockMember(tx: Transaction, { organizationId, memberId }: OfMember) {
  await holdMembers(tx, organizationId)
  return isUuid(memberId) ? findMember(tx, organizationId, memberId) : undefined
}

/** The agent's sessions end with the commit. */
async function endAgentAccess(
  tx: Transaction,
  { clock }: OrganizationsTools,
  { agentId, organizationId }: MemberRow,
): Promise<void> {
  if (agentId === null) return
  tx.forget([agentId])
  await endMemberSessions(tx, organizationId, agentId, clock.now())
}

async function appendMemberEvent<T extends EventType>(
  tx: Transaction,
  type: T,
  { organizationId }: MemberRow,
  fields: EventFields<T>,
  { caller, random, now, requestId }: EventContext,
): Promise<void> {
  const event = { type, organizationId, fields, by: doerOf(caller), now, requestId }
  await appendOrganizationEvent(tx, random, event)
}

const fieldsOf = (member: MemberRow) => ({
  member: partyOf(member),
  member_id: member.id,
  role: member.role,
})

/** Events name an agent by its id and a user by the membership, because subjects are pairwise. */
function partyOf({ kind, agentId, id, status }: MemberRow): { type: string; id: string } {
  if (kind === 'agent' && agentId !== null) return { type: 'agent', id: agentId }
  return { type: status === 'invited' ? 'invitation' : 'member', id }
}
