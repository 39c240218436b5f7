/**
 * Deployment operators: agents of the control plane with deployment-wide scopes. Only the command line
 * of the deployment appoints and dismisses them, no HTTP route does.
 */
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import { holdAgent, setAgentScopes } from '../../../../storage/agents/agent-management.js'
import { endAgentSessions } from '../../../../storage/agents/agent-status.js'
import { findAgent } from '../../../../storage/agents/agents.js'
import { withoutCaller } from '../../../domain/audit.js'
import { appendAudit } from '../../../../storage/operations/audit.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { isUuid } from '../../../domain/ids.js'
import { APPOINTED_SCOPES, type AppointedScope } from '../../../domain/scopes.js'

type Appointed =
  | { readonly tag: 'appointed' | 'dismissed'; readonly name: string; readonly changed: boolean }
  /** There is no such agent, or its home tenant is not the control plane. */
  | { readonly tag: 'unknown_agent' }

export type Appointment = {
  readonly agentId: string
  readonly to: 'appointed' | 'dismissed'
  /** The scopes to add or remove. */
  readonly scopes: readonly AppointedScope[]
}

/** Needs a transaction that crosses tenants. Dismissal ends the agent's sessions. */
export async function appoint(
  tx: Transaction,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  { agentId, to, scopes: named }: Appointment,
): Promise<Appointed> {
  if (!isUuid(agentId) || !(await holdAgent(tx, agentId))) return { tag: 'unknown_agent' }
  const agent = await findAgent(tx, agentId)
  if (agent === undefined || !agent.controlPlane) return { tag: 'unknown_agent' }
  const { name, scopes: before, tenantId } = agent
  const isNamed = (scope: string) => (named as readonly string[]).includes(scope)
  const held = APPOINTED_SCOPES.filter((scope) => before.includes(scope))
  const others = before.filter((scope) => !held.some((name) => name === scope))
  const kept =
    to === 'appointed'
      ? APPOINTED_SCOPES.filter((scope) => held.includes(scope) || isNamed(scope))
      : held.filter((scope) => !isNamed(scope))
  const scopes = [...others, ...kept]
  if (scopes.length === before.length) return { tag: to, name, changed: false }
  const now = clock.now()
  await setAgentScopes(tx, agentId, scopes, now)
  if (to === 'dismissed') {
    await endAgentSessions(tx, { agentId, tenantId, fingerprint: null }, 'scopes_narrowed', now)
  }
  appendAudit(tx, [
    withoutCaller({
      id: random.uuid(),
      tenantId,
      type: 'admin.agent.updated',
      occurredAt: now,
      resource: { type: 'agent', id: agentId },
      data: { scopes, scopes_before: before },
    }),
  ])
  return { tag: to, name, changed: true }
}
