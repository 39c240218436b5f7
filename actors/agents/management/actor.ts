/**
 * Agents as those who look after a tenant see and change them.
 *
 * active <-> suspended, either way any number of times; removed is the end. Suspension is of two
 * kinds: at home it holds everywhere, by another tenant it holds there (decisions.md 22, suspending
 * a member agent).
 */
import { defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import {
  type AgentPlace,
  deleteAgent,
  deleteAgentSuspension,
  findAgentPlace,
  holdAgent,
  insertAgentSuspension,
  listAgentPlaces,
  setAgentScopes,
  setAgentStatus,
} from '../../../storage/agents/agent-management.js'
import { endAgentSessions } from '../../../storage/agents/agent-status.js'
import { type AgentWithKeys, findAgent, findAgents } from '../../../storage/agents/agents.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { type DelegationsToEnd, endDelegations } from '../../../storage/agents/delegations.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { AgentRecord } from '../agents/protocol.js'
import { agentRecord } from '../agents/records.js'
import { actorOf, audited, type AuditOnlyType, doneBy } from '../../domain/audit.js'
import { delegationRevoked } from '../../domain/events.js'
import { isUuid } from '../../domain/ids.js'
import { pow } from '../proof-of-work/protocol.js'
import { tokens } from '../../oauth/tokens/protocol.js'
import { agentAnchors } from './anchors.js'
import { agentKeys } from './keys.js'
import { type AgentFound, type OneAgent, type RosterProtocol, roster } from './protocol.js'
import { scopesFault } from './rules.js'
import type { RosterNeeds } from './needs.js'

const UNKNOWN_AGENT = { tag: 'unknown_agent' } as const

export const rosterActor = defineActor<RosterProtocol, RosterNeeds>({
  address: roster,
  asks: { pow, tokens },
  mailbox: { capacity: 1024, inflightMax: 64 },
  lane: {
    list: () => undefined,
    read: () => undefined,
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
    const { database, clock, random, tokens } = needs

    const place = (tx: Transaction, { caller, agentId }: OneAgent) =>
      isUuid(agentId) ? findAgentPlace(tx, caller.principal.tenantId, agentId) : undefined

    /**
     * Runs a change of an agent that the tenant sees, then has this process forget what it
     * remembers; the others hear of it by the commit. Not cancelled with the request: a suspension
     * must not depend on whether the one who asked for it stays on the line.
     */
    async function changing<Result>(
      message: OneAgent,
      work: (tx: Transaction, found: AgentPlace) => Promise<Result>,
    ): Promise<Result | typeof UNKNOWN_AGENT> {
      const result = await database.system(async (tx) => {
        const found = await place(tx, message)
        if (found === undefined || !(await holdAgent(tx, found.id))) return UNKNOWN_AGENT
        return work(tx, found)
      })
      tokens.send('invalidate', { ids: [message.agentId] })
      return result
    }

    async function tell(
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

    /** Ends what people allowed the agent, each told to the tenant it was in. */
    async function endBorrowed(
      tx: Transaction,
      { caller }: OneAgent,
      of: DelegationsToEnd,
      reason: string,
      now: Date,
      { requestId }: MessageContext,
    ): Promise<void> {
      const ended = await endDelegations(tx, of, reason, now)
      const by = { actor: actorOf(caller), audit: doneBy(caller), requestId }
      appendEvents(
        tx,
        ended.map((one) => delegationRevoked(random.uuid(), one, by)),
      )
    }

    const isHome = ({ caller }: OneAgent, found: AgentPlace) =>
      found.homeTenantId === caller.principal.tenantId

    return {
      ...agentKeys(needs),
      ...agentAnchors(needs),

      async list({ caller, limit, after }, { signal }) {
        const { tenantId } = caller.principal
        return database.system(
          async (tx) => {
            // One more than asked for tells whether there is another page.
            const places = await listAgentPlaces(tx, tenantId, limit + 1, after)
            const page = places.slice(0, limit)
            const rows = await findAgents(
              tx,
              page.map(({ id }) => id),
            )
            const suspended = new Set(page.filter((one) => one.suspendedHere).map(({ id }) => id))
            const last = page.at(-1)
            return {
              tag: 'listed',
              agents: rows.map((row) => recordOf(row, suspended.has(row.id))),
              next:
                places.length > limit && last !== undefined
                  ? { createdAt: last.createdAt, id: last.id }
                  : null,
            }
          },
          { signal },
        )
      },

      async read(message, { signal }) {
        return database.system(
          async (tx) => {
            const found = await place(tx, message)
            return found === undefined ? UNKNOWN_AGENT : present(tx, found, found.suspendedHere)
          },
          { signal },
        )
      },

      suspend: (message, context) =>
        changing(message, async (tx, found) => {
          const now = clock.now()
          const home = isHome(message, found)
          const { tenantId } = message.caller.principal
          const reach = home ? null : tenantId
          const borrowed = { tenantId: reach, agentId: found.id }
          await endBorrowed(tx, message, borrowed, 'agent_suspended', now, context)
          const changed = home
            ? await setAgentStatus(tx, found.id, 'suspended', now)
            : await insertAgentSuspension(tx, tenantId, found.id, now)
          if (changed) {
            const of = { agentId: found.id, tenantId: reach, fingerprint: null }
            await endAgentSessions(tx, of, 'agent_suspended', now)
            await tell(tx, message, 'admin.agent.suspended', { everywhere: home }, context)
          }
          return present(tx, found, !home)
        }),

      activate: (message, context) =>
        changing(message, async (tx, found) => {
          const home = isHome(message, found)
          const changed = home
            ? await setAgentStatus(tx, found.id, 'active', clock.now())
            : await deleteAgentSuspension(tx, message.caller.principal.tenantId, found.id)
          if (changed)
            await tell(tx, message, 'admin.agent.activated', { everywhere: home }, context)
          const active = await present(tx, found, false)
          // Lifted here, and still suspended at home: this tenant cannot make it active.
          return active.agent.status === 'active' ? active : { tag: 'suspended_at_home' as const }
        }),

      remove: (message, context) =>
        changing(message, async (tx, found) => {
          if (!isHome(message, found)) return { tag: 'at_home_elsewhere' as const }
          const of = { agentId: found.id, tenantId: null, fingerprint: null }
          const now = clock.now()
          const borrowed = { tenantId: null, agentId: found.id }
          await endBorrowed(tx, message, borrowed, 'agent_deleted', now, context)
          await endAgentSessions(tx, of, 'agent_deleted', now)
          await deleteAgent(tx, found.id)
          await tell(tx, message, 'admin.agent.deleted', {}, context)
          return { tag: 'removed' as const }
        }),

      update: (message, context) =>
        changing(message, async (tx, found) => {
          const { caller, scopes: asked } = message
          if (!isHome(message, found)) return { tag: 'at_home_elsewhere' as const }
          if (asked === undefined) return present(tx, found, false)
          const row = await findAgent(tx, found.id)
          const scopes = [...new Set(asked)]
          const held = caller.principal.scopes
          const fault = scopesFault(scopes, held, row?.controlPlane ?? false)
          if (fault !== undefined) return fault
          const before = (await setAgentScopes(tx, found.id, scopes, clock.now())) ?? []
          // What is taken away ends now, not when the refresh tokens do: also in tenants where the
          // agent is a member and holds what is stored.
          if (before.some((scope) => !scopes.includes(scope))) {
            const of = { agentId: found.id, tenantId: null, fingerprint: null }
            await endAgentSessions(tx, of, 'scopes_narrowed', clock.now())
          }
          await tell(tx, message, 'admin.agent.updated', { scopes, scopes_before: before }, context)
          return present(tx, found, false)
        }),
    }
  },
})

async function present(
  tx: Transaction,
  { id }: AgentPlace,
  suspendedHere: boolean,
): Promise<AgentFound> {
  const row = await findAgent(tx, id)
  if (row === undefined) throw new Error('an agent that was found is there')
  return { tag: 'found', agent: recordOf(row, suspendedHere) }
}

/** The record as a tenant sees it. */
function recordOf(row: AgentWithKeys, suspendedHere: boolean): AgentRecord {
  const record = agentRecord(row)
  return suspendedHere ? { ...record, status: 'suspended' } : record
}
