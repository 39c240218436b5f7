/** Entries of agent management in the audit chain. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import type { Caller } from '../../../domain/audit.js'
import { recordAudit } from '../../../platform/record-audit.js'
import type { AgentManagementNeeds } from './needs.js'

/** Records a change in the chain of the caller's tenant, or of `tenantId`: the home tenant for keys and anchors. */
export function auditAgent(
  tx: Transaction,
  needs: AgentManagementNeeds,
  { caller, agentId }: { readonly caller: Caller; readonly agentId: string },
  context: MessageContext,
  action: Omit<Parameters<typeof recordAudit>[4], 'resource'>,
): void {
  recordAudit(tx, needs, caller, context, { resource: { type: 'agent', id: agentId }, ...action })
}
