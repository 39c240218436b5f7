/**
 * The anchors of an agent: active -> revoked, which is final. An anchor names the agent; what it may do
 * hangs on its keys. So a revoked anchor ends no session, and a revoked key takes its anchors along
 * (decisions.md 1.1, anchors and keys).
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { holdAgent } from '../../../storage/agents/agent-management.js'
import { findAgent, revokeAgentAnchor } from '../../../storage/agents/agents.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { audited } from '../../domain/audit.js'
import { authorized } from './keys.js'
import type { RosterNeeds } from './needs.js'
import type { OneAnchor, RosterProtocol } from './protocol.js'
import { isItself, judgeAnchorRevocation } from './rules.js'

export function agentAnchors({ database, clock, random }: RosterNeeds) {
  return {
    // Not cancelled with the request: whoever takes an anchor back is not stopped by a lost line.
    revokeAnchor: (
      { caller, agentId, value }: OneAnchor,
      { requestId }: MessageContext,
    ): Promise<RosterProtocol['revokeAnchor']['reply']> =>
      // An agent is at home in another tenant than the one it may call from.
      database.system(async (tx) => {
        const granted = await authorized(tx, caller, agentId)
        if (granted.tag !== 'granted') return granted
        if (!(await holdAgent(tx, agentId))) return { tag: 'unknown_agent' }
        const anchors = (await findAgent(tx, agentId))?.anchors ?? []
        const anchor = anchors.find((one) => one.value === value)
        if (anchor === undefined) return { tag: 'unknown_anchor' }
        const verdict = judgeAnchorRevocation(value, anchors, isItself(caller.principal, agentId))
        if (verdict === 'last_active_anchor') return { tag: verdict }
        if (verdict === 'change') {
          const { homeTenantId: tenantId } = granted
          const now = clock.now()
          await revokeAgentAnchor(tx, { tenantId, type: anchor.type, value }, now)
          appendAudit(tx, [
            audited(caller, {
              id: random.uuid(),
              tenantId,
              type: 'admin.agent.anchor.revoked',
              occurredAt: now,
              resource: { type: 'agent', id: agentId },
              requestId,
              data: { type: anchor.type, value },
            }),
          ])
        }
        return { tag: 'anchor_revoked', anchor: { ...anchor, status: 'revoked' } }
      }),
  }
}
