/**
 * Agent management by tenant administrators.
 *
 * States: active <-> suspended, then removed, which is final. The home tenant suspends an agent
 * everywhere; another tenant suspends it in that tenant only (docs/reference/agents.md).
 */
import { defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import {
  type VisibleAgent,
  deleteAgent,
  deleteAgentSuspension,
  findVisibleAgent,
  holdAgent,
  insertAgentSuspension,
  listVisibleAgents,
  setAgentScopes,
  setAgentStatus,
} from '../../../storage/agents/agent-management.js'
import { endAgentSessions } from '../../../storage/agents/agent-status.js'
import { type AgentWithKeys, findAgent, findAgents } from '../../../storage/agents/agents.js'
import { keepsOwnersWithout } from '../../../storage/identity/organization-members.js'
import { deleteClientsOfDocument } from '../../../storage/oauth/observed-clients.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { type DelegationsToEnd, endDelegations } from '../../../storage/agents/delegations.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { AgentRecord } from '../agents/protocol.js'
import { agentRecord } from '../agents/records.js'
import { agentDocumentUrl } from '../../domain/agents/documents.js'
import { audited, type AuditOnlyType } from '../../domain/audit.js'
import { byCaller, delegationsRevoked } from '../../domain/revocation.js'
import { isUuid } from '../../domain/ids.js'
import { appendOrganizationEvent, doerOf } from '../../platform/organization-events.js'
import { page } from '../../platform/paging.js'
import { pow } from '../proof-of-work/protocol.js'
import { tokens } from '../../oauth/tokens/protocol.js'
import { agentAnchors } from './anchors.js'
import { agentKeys } from './keys.js'
import { mayBeLocked } from './last-owner.js'
import {
  type AgentFound,
  type OneAgent,
  type AgentManagementProtocol,
  agentManagement,
} from './protocol.js'
import { isAbove, scopesFault } from './rules.js'
import type { AgentManagementNeeds } from './needs.js'

const UNKNOWN_AGENT = { tag: 'unknown_agent' } as const
const LAST_OWNER = { tag: 'last_owner' } as const
const ABOVE = { tag: 'owner_above_caller' } as const

export const agentManagementActor = defineActor<AgentManagementProtocol, AgentManagementNeeds>({
  address: agentManagement,
  asks: { pow, tokens },
  mailbox: { capacity: 1024, inflightMax: 64 },
  lane: {
    suspend: ({ agentId }) => agentId,
    activate: ({ agentId }) => agentId,
    remove: ({ agentId }) => agentId,
    update: ({ agentId }) => agentId,
    addKey: ({ agentId }) => agentId,
    deprecateKey: ({ agentId }) => agentId,
    revokeKey: ({ agentId }) => agentId,
    revokeAnchor: ({ agentId }) => agentId,
  },
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { database, clock, random, tokens, issuer } = needs

    /** Ends what people granted to the client that the agent's own document describes. */
    const endClients = (tx: Transaction, agentId: string, tenantId: string | null, now: Date) =>
      deleteClientsOfDocument(tx, agentDocumentUrl(issuer, agentId, 'client'), tenantId, now)

    const findVisible = (tx: Transaction, { caller, agentId }: OneAgent) =>
      isUuid(agentId) ? findVisibleAgent(tx, caller.principal.tenantId, agentId) : undefined

    /**
     * Changes an agent that the tenant sees, then invalidates its tokens in the caches of this
     * process, and those of `ended`; the other processes get a notification at the commit. Not cancelled when the client
     * disconnects: a suspension must complete.
     */
    async function change<Result>(
      message: OneAgent,
      work: (tx: Transaction, found: VisibleAgent, ended: string[]) => Promise<Result>,
    ): Promise<Result | typeof UNKNOWN_AGENT> {
      let ended: string[] = []
      const result = await database.system(async (tx) => {
        ended = []
        const found = await findVisible(tx, message)
        if (found === undefined || !(await holdAgent(tx, found.id))) return UNKNOWN_AGENT
        return work(tx, found, ended)
      })
      tokens.send('invalidate', { ids: [message.agentId, ...ended] })
      return result
    }

    async function writeAudit(
      tx: Transaction,
      { caller, agentId }: OneAgent,
      type: AuditOnlyType,
      data: Readonly<Record<string, unknown>>,
      { requestId }: MessageContext,
    ): Promise<void> {
      appendAudit(tx, [
        audited(caller, {
          id: random.uuid(),
          tenantId: caller.principal.tenantId,
          type,
          occurredAt: clock.now(),
          resource: { type: 'agent', id: agentId },
          requestId,
          data,
        }),
      ])
    }

    /** Revokes delegations of the agent. Each event belongs to the tenant of its delegation. */
    async function revokeDelegations(
      tx: Transaction,
      { caller }: OneAgent,
      of: DelegationsToEnd,
      reason: string,
      now: Date,
      { requestId }: MessageContext,
    ): Promise<void> {
      const ended = await endDelegations(tx, of, reason, now)
      appendEvents(tx, delegationsRevoked(random, ended, byCaller(caller, requestId)))
    }

    const isHome = ({ caller }: OneAgent, found: VisibleAgent) =>
      found.homeTenantId === caller.principal.tenantId

    return {
      ...agentKeys(needs),
      ...agentAnchors(needs),

      async list({ caller, limit, after }, { signal }) {
        const { tenantId } = caller.principal
        return database.system(
          async (tx) => {
            const { items, next } = page(
              await listVisibleAgents(tx, tenantId, limit + 1, after),
              limit,
            )
            const rows = await findAgents(
              tx,
              items.map(({ id }) => id),
            )
            const suspended = new Set(
              items.filter(({ suspendedHere }) => suspendedHere).map(({ id }) => id),
            )
            return {
              tag: 'listed',
              agents: rows.map((row) => recordOf(row, suspended.has(row.id))),
              next,
            }
          },
          { signal },
        )
      },

      async read(message, { signal }) {
        return database.system(
          async (tx) => {
            const found = await findVisible(tx, message)
            return found === undefined ? UNKNOWN_AGENT : present(tx, found, found.suspendedHere)
          },
          { signal },
        )
      },

      suspend: (message, context) =>
        change(message, async (tx, found, ended) => {
          if (isAbove(found, message.caller.principal)) return ABOVE
          const now = clock.now()
          const home = isHome(message, found)
          const { tenantId } = message.caller.principal
          const reach = home ? null : tenantId
          if (!(await mayBeLocked(tx, message.caller, found.id, reach))) return LAST_OWNER
          const delegations = { tenantId: reach, agentId: found.id }
          await revokeDelegations(tx, message, delegations, 'agent_suspended', now, context)
          const changed = home
            ? await setAgentStatus(tx, found.id, 'suspended', now)
            : await insertAgentSuspension(tx, tenantId, found.id, now)
          if (changed) {
            const of = { agentId: found.id, tenantId: reach, fingerprint: null }
            await endAgentSessions(tx, of, 'agent_suspended', now)
            ended.push(...(await endClients(tx, found.id, reach, now)))
            await writeAudit(tx, message, 'admin.agent.suspended', { everywhere: home }, context)
          }
          return present(tx, found, !home)
        }),

      activate: (message, context) =>
        change(message, async (tx, found) => {
          if (isAbove(found, message.caller.principal)) return ABOVE
          const home = isHome(message, found)
          const changed = home
            ? await setAgentStatus(tx, found.id, 'active', clock.now())
            : await deleteAgentSuspension(tx, message.caller.principal.tenantId, found.id)
          if (changed)
            await writeAudit(tx, message, 'admin.agent.activated', { everywhere: home }, context)
          const active = await present(tx, found, false)
          // The home tenant still suspends it, which this tenant cannot change.
          return active.agent.status === 'active' ? active : { tag: 'suspended_at_home' as const }
        }),

      remove: (message, context) =>
        change(message, async (tx, found, ended) => {
          if (!isHome(message, found)) return { tag: 'at_home_elsewhere' as const }
          if (isAbove(found, message.caller.principal)) return ABOVE
          if (!(await keepsOwnersWithout(tx, found.id, null))) return LAST_OWNER
          const of = { agentId: found.id, tenantId: null, fingerprint: null }
          const now = clock.now()
          const delegations = { tenantId: null, agentId: found.id }
          await revokeDelegations(tx, message, delegations, 'agent_deleted', now, context)
          await endAgentSessions(tx, of, 'agent_deleted', now)
          ended.push(...(await endClients(tx, found.id, null, now)))
          const by = doerOf(message.caller)
          for (const left of await deleteAgent(tx, found.id)) {
            const { organizationId, id, role } = left
            const fields = { member: { type: 'agent', id: found.id }, member_id: id, role }
            const event = { organizationId, fields, by, now, requestId: context.requestId }
            await appendOrganizationEvent(tx, random, { ...event, type: 'org.member.removed' })
          }
          await writeAudit(tx, message, 'admin.agent.deleted', {}, context)
          return { tag: 'removed' as const }
        }),

      update: (message, context) =>
        change(message, async (tx, found) => {
          const { caller, scopes: requested } = message
          if (!isHome(message, found)) return { tag: 'at_home_elsewhere' as const }
          if (isAbove(found, message.caller.principal)) return ABOVE
          if (requested === undefined) return present(tx, found, false)
          const row = await findAgent(tx, found.id)
          const scopes = [...new Set(requested)]
          const held = caller.principal.scopes
          const fault = scopesFault(scopes, held, row?.controlPlane ?? false)
          if (fault !== undefined) return fault
          const before = (await setAgentScopes(tx, found.id, scopes, clock.now())) ?? []
          // A removed scope ends now, not with the refresh tokens. Sessions end in every tenant,
          // because the stored scopes also apply where the agent is a member.
          if (before.some((scope) => !scopes.includes(scope))) {
            const of = { agentId: found.id, tenantId: null, fingerprint: null }
            await endAgentSessions(tx, of, 'scopes_narrowed', clock.now())
          }
          await writeAudit(
            tx,
            message,
            'admin.agent.updated',
            { scopes, scopes_before: before },
            context,
          )
          return present(tx, found, false)
        }),
    }
  },
})

async function present(
  tx: Transaction,
  { id }: VisibleAgent,
  suspendedHere: boolean,
): Promise<AgentFound> {
  const row = await findAgent(tx, id)
  if (row === undefined) throw new Error('a locked agent exists')
  return { tag: 'found', agent: recordOf(row, suspendedHere) }
}

/** The record as a tenant sees it. */
function recordOf(row: AgentWithKeys, suspendedHere: boolean): AgentRecord {
  const record = agentRecord(row)
  return suspendedHere ? { ...record, status: 'suspended' } : record
}
