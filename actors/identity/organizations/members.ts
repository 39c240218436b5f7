/**
 * Members and events of organizations, for owners. An invitation has the same result whether or not the address has an
 * account, so the inviter learns nothing. The invited user becomes a member by signing in at a tenant of the
 * organization (`join-by-invitation.ts`). An organization always keeps an active owner.
 */
import type { ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import {
  addAgentMember,
  removeExpiredInvitations,
  endMemberSessions,
  findMember,
  lockMembers,
  inviteMember,
  listMembers,
  type MemberRow,
  removeMember,
  setMemberRole,
} from '../../../storage/identity/organization-members.js'
import { organizationEventsAfter } from '../../../storage/identity/organization/events.js'
import { findOrganizationPolicy } from '../../../storage/identity/organization/policies.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { Caller } from '../../domain/audit.js'
import type { EventType } from '../../domain/events.js'
import { isUuid } from '../../domain/ids.js'
import type { Page } from '../../domain/paging.js'
import { page } from '../../platform/paging.js'
import type { TokensProtocol } from '../../oauth/tokens/protocol.js'
import type { Access, AccessRefused } from './access.js'
import type {
  AddMember,
  OfMember,
  OfOrganization,
  OrganizationsOff,
  OrganizationsProtocol,
} from './protocol.js'
import type { OrganizationsSettings } from './settings.js'
import { appendOrganizationEvent, doerOf } from '../../platform/organization-events.js'

const UNKNOWN_MEMBER = { tag: 'unknown_member' } as const
const LAST_OWNER = { tag: 'last_owner' } as const
const OWNERS = ['owner'] as const

export type MembersNeeds = {
  readonly clock: Clock
  readonly random: Random
  readonly tokens: ActorRef<TokensProtocol>
  readonly access: Access
  readonly limits: OrganizationsSettings
  /** The refusal when organizations.enabled is false. */
  readonly refuseOff: (caller: Caller) => OrganizationsOff | undefined
}

type Outcome<K extends keyof OrganizationsProtocol> = Promise<OrganizationsProtocol[K]['reply']>

export function members({ clock, random, tokens, access, limits, refuseOff }: MembersNeeds) {
  const memberLimits = {
    maxMembers: limits.max_members,
    invitationTtlSecs: limits.invitation_ttl_secs,
  }
  const full = async (tx: Transaction, organizationId: string) => {
    const found = await findOrganizationPolicy(tx, organizationId, clock.now())
    const own = found.maxMembers ?? limits.max_members
    const most = found.planMembers === null ? own : Math.min(own, found.planMembers)
    return { tag: 'limit_reached', what: 'members', most } as const
  }

  /** Runs an owner's operation in a transaction that crosses tenants. */
  const asOwner = <T>(
    { caller, organizationId }: OfOrganization,
    context: MessageContext,
    work: (tx: Transaction) => Promise<T>,
  ): Promise<T | AccessRefused> =>
    access.inOrganization(caller, organizationId, OWNERS, context, (tx) => work(tx))

  async function appendMemberEvent(
    tx: Transaction,
    caller: Caller,
    type: EventType,
    member: MemberRow,
    more: Readonly<Record<string, unknown>>,
    { requestId }: MessageContext,
  ): Promise<void> {
    const { organizationId, role } = member
    const fields = { member: partyOf(member), member_id: member.id, role, ...more }
    const event = { type, organizationId, fields, by: doerOf(caller), now: clock.now(), requestId }
    await appendOrganizationEvent(tx, random, event)
  }

  /** The agent's sessions end with the commit. This process also drops its cache at once. */
  async function endAgentAccess(tx: Transaction, { agentId, organizationId }: MemberRow) {
    if (agentId === null) return
    await endMemberSessions(tx, organizationId, agentId, clock.now())
  }

  function forget(member: MemberRow | undefined): void {
    if (member?.agentId != null) tokens.send('invalidate', { ids: [member.agentId] })
  }

  return {
    async listOrganizationMembers(
      message: OfOrganization & Page,
      context: MessageContext,
    ): Outcome<'listOrganizationMembers'> {
      const { organizationId, limit, after } = message
      return asOwner(message, context, async (tx) => {
        const rows = await listMembers(tx, organizationId, limit + 1, after)
        const { items, next } = page(rows, limit)
        return { tag: 'listed' as const, members: items, next }
      })
    },

    async listOrganizationEvents(
      message: OfOrganization & { readonly after: number; readonly limit: number },
      context: MessageContext,
    ): Outcome<'listOrganizationEvents'> {
      const { organizationId, after, limit } = message
      return asOwner(message, context, async (tx) => {
        const events = await organizationEventsAfter(tx, organizationId, after, limit)
        return { tag: 'listed' as const, events, nextAfter: events.at(-1)?.sequence ?? after }
      })
    },

    async addOrganizationMember(
      message: AddMember,
      context: MessageContext,
    ): Outcome<'addOrganizationMember'> {
      const { caller, organizationId, who, role, idempotency } = message
      const off = refuseOff(caller)
      if (off !== undefined) return off
      return asOwner(message, context, (tx) =>
        idempotently(
          tx,
          idempotency,
          async () => {
            const added = { id: random.uuid(), organizationId, role, createdAt: clock.now() }
            await lockMembers(tx, organizationId)
            await removeExpiredInvitations(tx, organizationId, added.createdAt)
            if ('email' in who) {
              const invited = await inviteMember(tx, added, who.email, memberLimits)
              if (invited === 'full') return full(tx, organizationId)
              if (invited === 'is_member') return { tag: invited }
              const { email } = who
              await appendMemberEvent(tx, caller, 'org.member.invited', invited, { email }, context)
              return { tag: 'member' as const, member: invited, replayed: false }
            }
            const joined = isUuid(who.agentId)
              ? await addAgentMember(tx, added, who.agentId, memberLimits)
              : 'unknown_agent'
            if (joined === 'full') return full(tx, organizationId)
            if (typeof joined === 'string') return { tag: joined }
            await appendMemberEvent(tx, caller, 'org.member.added', joined, {}, context)
            return { tag: 'member' as const, member: joined, replayed: false }
          },
          (outcome) => (outcome.tag === 'member' ? outcome : undefined),
        ),
      )
    },

    async updateOrganizationMember(
      message: OfMember & { role: MemberRow['role'] },
      context: MessageContext,
    ): Outcome<'updateOrganizationMember'> {
      const { caller, organizationId, memberId, role } = message
      const outcome = await asOwner(message, context, async (tx) => {
        await lockMembers(tx, organizationId)
        const before = isUuid(memberId) ? await findMember(tx, organizationId, memberId) : undefined
        if (before === undefined) return UNKNOWN_MEMBER
        if (before.role === role) return { tag: 'member' as const, member: before, replayed: false }
        if (!(await setMemberRole(tx, organizationId, memberId, role))) return LAST_OWNER
        const member = { ...before, role }
        await endAgentAccess(tx, member)
        await appendMemberEvent(
          tx,
          caller,
          'org.member.role_changed',
          member,
          { role_before: before.role },
          context,
        )
        return { tag: 'member' as const, member, replayed: false }
      })
      if (outcome.tag === 'member') forget(outcome.member)
      return outcome
    },

    async removeOrganizationMember(
      message: OfMember,
      context: MessageContext,
    ): Outcome<'removeOrganizationMember'> {
      const { caller, organizationId, memberId } = message
      let gone: MemberRow | undefined
      const outcome = await asOwner(message, context, async (tx) => {
        await lockMembers(tx, organizationId)
        gone = isUuid(memberId) ? await findMember(tx, organizationId, memberId) : undefined
        if (gone === undefined) return UNKNOWN_MEMBER
        if (!(await removeMember(tx, organizationId, memberId))) return LAST_OWNER
        await endAgentAccess(tx, gone)
        await appendMemberEvent(tx, caller, 'org.member.removed', gone, {}, context)
        return { tag: 'removed' as const }
      })
      if (outcome.tag === 'removed') forget(gone)
      return outcome
    },
  }
}

/** Events name an agent by its id and a user by the membership, because subjects are pairwise. */
function partyOf({ kind, agentId, id, status }: MemberRow): { type: string; id: string } {
  if (kind === 'agent' && agentId !== null) return { type: 'agent', id: agentId }
  return { type: status === 'invited' ? 'invitation' : 'member', id }
}
