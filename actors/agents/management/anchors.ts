/**
 * The anchors of an agent: active -> revoked, which is final. An anchor is a name (DID); its keys
 * authenticate the agent. So revoking an anchor ends no session, while revoking a key also revokes the
 * anchors of that key.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { holdAgent } from '../../../storage/agents/agent-management.js'
import { findAgent, revokeAgentAnchor } from '../../../storage/agents/agents.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { audited } from '../../domain/audit.js'
import { authorized } from './keys.js'
import type { AgentManagementNeeds } from './needs.js'
import type { OneAnchor, AgentManagementProtocol } from './protocol.js'
import { isItself, judgeAnchorRevocation } from './rules.js'

export function agentAnchors({ database, clock, random }: AgentManagementNeeds) {
  return {
    // Not cancelled when the client disconnects: a revocation must complete.
    revokeAnchor: (
      { caller, agentId, value }: OneAnchor,
      { requestId }: MessageContext,
    ): Promise<AgentManagementProtocol['revokeAnchor']['reply']> =>
      // Crosses tenants, because the agent's home tenant may differ from that of the token.
      database.system(async (tx) => {
        const granted = await authorized(tx, caller, agentId)
        if (granted.tag !== 'granted') return granted
        if (!(await holdAgent(tx, agentId))) return { tag: 'unknown_agent' }
        const anchors = (await findAgent(tx, agentId))?.anchors ?? []
        const anchor = anchors.find((candidate) => candidate.value === value)
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
