/**
 * Agent management by tenant administrators.
 *
 * States: active <-> suspended, then removed, which is final. The home tenant suspends an agent
 * everywhere; another tenant suspends it in that tenant only (docs/reference/agents.md).
 */
import { type EventContext, eventContext } from '../../../domain/events.js'
import {
  type VisibleAgent,
  deleteAgentRows,
  deleteAgentSuspension,
  findVisibleAgent,
  holdAgent,
  insertAgentSuspension,
  listVisibleAgents,
  setAgentScopes,
  setAgentStatus,
} from '../../../../storage/agents/agent-management.js'
import { endAgentSessions } from '../../../../storage/agents/agent-status.js'
import { type AgentWithKeys, findAgent, findAgents } from '../../../../storage/agents/agents.js'
import { keepsOwnersWithout } from '../../../../storage/identity/organization-members.js'
import { deleteClientsOfDocument } from '../../../../storage/oauth/observed-clients.js'
import { type DelegationsToEnd, endDelegations } from '../../../../storage/agents/delegations.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import type { AgentRecord } from '../protocol.js'
import { agentRecord } from '../records.js'
import { agentDocumentUrl } from '../../../domain/agents/documents.js'
import { byCaller, delegationsRevoked } from '../../../domain/revocation.js'
import { isUuid } from '../../../domain/ids.js'
import { appendOrganizationEvent, doerOf } from '../../../platform/organization-events.js'
import { page } from '../../../platform/paging.js'
import { mayBeLocked } from './last-owner.js'
import { auditAgent } from './audit.js'
import type { AgentFound, OneAgent } from './protocol.js'
import { isAbove, scopesFault } from './rules.js'
import type { AgentManagementNeeds, ManagementHandler } from './needs.js'

const UNKNOWN_AGENT = { tag: 'unknown_agent' } as const
const LAST_OWNER = { tag: 'last_owner' } as const
const ABOVE = { tag: 'owner_above_caller' } as const

export const listAgents: ManagementHandler<'listAgents'> = async (
  { database },
  { caller, limit, after },
  context,
) => {
  const { tenantId } = caller.principal
  return database.system(async (tx) => {
    const { items, next } = page(await listVisibleAgents(tx, tenantId, limit + 1, after), limit)
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
  }, context)
}

export const readAgent: ManagementHandler<'readAgent'> = ({ database }, message, context) => {
  return database.system(async (tx) => {
    const found = await findVisible(tx, message)
    return found === undefined ? UNKNOWN_AGENT : present(tx, found, found.suspendedHere)
  }, context)
}

export const suspendAgent: ManagementHandler<'suspendAgent'> = (needs, message, context) => {
  return change(needs, message, async (tx, found) => {
    if (isAbove(found, message.caller.principal)) return ABOVE
    const now = needs.clock.now()
    const home = isHome(message, found)
    const { tenantId } = message.caller.principal
    const reach = home ? null : tenantId
    if (!(await mayBeLocked(tx, message.caller, found.id, reach))) return LAST_OWNER
    const delegations = { tenantId: reach, agentId: found.id }
    const by = eventContext(needs, message.caller, context)
    await revokeDelegations(tx, delegations, 'agent_suspended', by)
    const changed = home
      ? await setAgentStatus(tx, found.id, 'suspended', now)
      : await insertAgentSuspension(tx, tenantId, found.id, now)
    if (changed) {
      const of = { agentId: found.id, tenantId: reach, fingerprint: null }
      await endAgentSessions(tx, of, 'agent_suspended', now)
      tx.forget(await endClients(tx, needs, found.id, reach, now))
      const data = { everywhere: home }
      auditAgent(tx, needs, message, context, { type: 'admin.agent.suspended', data })
    }
    return present(tx, found, !home)
  })
}

export const activateAgent: ManagementHandler<'activateAgent'> = (needs, message, context) => {
  return change(needs, message, async (tx, found) => {
    if (isAbove(found, message.caller.principal)) return ABOVE
    const home = isHome(message, found)
    const changed = home
      ? await setAgentStatus(tx, found.id, 'active', needs.clock.now())
      : await deleteAgentSuspension(tx, message.caller.principal.tenantId, found.id)
    if (changed) {
      const data = { everywhere: home }
      auditAgent(tx, needs, message, context, { type: 'admin.agent.activated', data })
    }
    const active = await present(tx, found, false)
    // The home tenant still suspends it, which this tenant cannot change.
    return active.agent.status === 'active' ? active : { tag: 'suspended_at_home' as const }
  })
}

export const deleteAgent: ManagementHandler<'deleteAgent'> = (needs, message, context) => {
  return change(needs, message, async (tx, found) => {
    if (!isHome(message, found)) return { tag: 'at_home_elsewhere' as const }
    if (isAbove(found, message.caller.principal)) return ABOVE
    if (!(await keepsOwnersWithout(tx, found.id, null))) return LAST_OWNER
    const of = { agentId: found.id, tenantId: null, fingerprint: null }
    const now = needs.clock.now()
    const delegations = { tenantId: null, agentId: found.id }
    const by = eventContext(needs, message.caller, context)
    await revokeDelegations(tx, delegations, 'agent_deleted', by)
    await endAgentSessions(tx, of, 'agent_deleted', now)
    tx.forget(await endClients(tx, needs, found.id, null, now))
    for (const left of await deleteAgentRows(tx, found.id)) {
      const { organizationId, id, role } = left
      const fields = { member: { type: 'agent', id: found.id }, member_id: id, role }
      const event = {
        organizationId,
        fields,
        by: doerOf(message.caller),
        now,
        requestId: context.requestId,
      }
      await appendOrganizationEvent(tx, needs.random, { ...event, type: 'org.member.removed' })
    }
    auditAgent(tx, needs, message, context, { type: 'admin.agent.deleted' })
    return { tag: 'removed' as const }
  })
}

export const updateAgent: ManagementHandler<'updateAgent'> = (needs, message, context) => {
  return change(needs, message, async (tx, found) => {
    const { caller, scopes: requested } = message
    if (!isHome(message, found)) return { tag: 'at_home_elsewhere' as const }
    if (isAbove(found, message.caller.principal)) return ABOVE
    if (requested === undefined) return present(tx, found, false)
    const row = await findAgent(tx, found.id)
    const scopes = [...new Set(requested)]
    const held = caller.principal.scopes
    const fault = scopesFault(scopes, held, row?.controlPlane ?? false)
    if (fault !== undefined) return fault
    const before = (await setAgentScopes(tx, found.id, scopes, needs.clock.now())) ?? []
    // A removed scope ends now, not with the refresh tokens. Sessions end in every tenant,
    // because the stored scopes also apply where the agent is a member.
    if (before.some((scope) => !scopes.includes(scope))) {
      const of = { agentId: found.id, tenantId: null, fingerprint: null }
      await endAgentSessions(tx, of, 'scopes_narrowed', needs.clock.now())
    }
    const data = { scopes, scopes_before: before }
    auditAgent(tx, needs, message, context, { type: 'admin.agent.updated', data })
    return present(tx, found, false)
  })
}

/**
 * Changes an agent that the tenant sees, and has its tokens forgotten. Not cancelled when the client disconnects: a suspension
 * must complete.
 */
async function change<Result>(
  { database }: AgentManagementNeeds,
  message: OneAgent,
  work: (tx: Transaction, found: VisibleAgent) => Promise<Result>,
): Promise<Result | typeof UNKNOWN_AGENT> {
  return database.system(async (tx) => {
    const found = await findVisible(tx, message)
    if (found === undefined || !(await holdAgent(tx, found.id))) return UNKNOWN_AGENT
    tx.forget([message.agentId])
    return work(tx, found)
  })
}

async function findVisible(
  tx: Transaction,
  { caller, agentId }: OneAgent,
): Promise<VisibleAgent | undefined> {
  return isUuid(agentId) ? findVisibleAgent(tx, caller.principal.tenantId, agentId) : undefined
}

const isHome = ({ caller }: OneAgent, found: VisibleAgent) =>
  found.homeTenantId === caller.principal.tenantId

/** Ends what people granted to the client that the agent's own document describes. */
function endClients(
  tx: Transaction,
  { issuer }: AgentManagementNeeds,
  agentId: string,
  tenantId: string | null,
  now: Date,
): Promise<readonly string[]> {
  return deleteClientsOfDocument(tx, agentDocumentUrl(issuer, agentId, 'client'), tenantId, now)
}

/** Revokes delegations of the agent. Each event belongs to the tenant of its delegation. */
async function revokeDelegations(
  tx: Transaction,
  of: DelegationsToEnd,
  reason: string,
  { caller, random, now, requestId }: EventContext,
): Promise<void> {
  const ended = await endDelegations(tx, of, reason, now)
  appendEvents(tx, delegationsRevoked(random, ended, byCaller(caller, requestId)))
}

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
