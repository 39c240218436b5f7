/**
 * The anchors of an agent: active -> revoked, which is final. An anchor is a name (DID); its keys
 * authenticate the agent. So revoking an anchor ends no session, while revoking a key also revokes the
 * anchors of that key.
 */
import { holdAgent } from '../../../../storage/agents/agent-management.js'
import { findAgent, revokeAnchor } from '../../../../storage/agents/agents.js'
import { auditAgent } from './audit.js'
import { authorized } from './keys.js'
import type { ManagementHandler } from './needs.js'
import { isItself, judgeAnchorRevocation } from './rules.js'

export const revokeAgentAnchor: ManagementHandler<'revokeAgentAnchor'> = (
  needs,
  message,
  context,
) => {
  const { caller, agentId, value } = message
  // Not cancelled when the client disconnects: a revocation must complete. Crosses tenants, because the agent's home
  // tenant may differ from the tenant of the token.
  return needs.database.system(async (tx) => {
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
      const { type } = anchor
      await revokeAnchor(tx, { tenantId, type, value }, needs.clock.now())
      const data = { type, value }
      const revoked = { type: 'admin.agent.anchor.revoked', tenantId, data } as const
      auditAgent(tx, needs, message, context, revoked)
    }
    return { tag: 'anchor_revoked', anchor: { ...anchor, status: 'revoked' } }
  })
}
