/** Entries of agent management in the audit chain. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import type { AuditOnlyType, Caller } from '../../../domain/audit.js'
import { recordAudit } from '../../../platform/record-audit.js'
import type { AgentManagementNeeds } from './needs.js'

type Managed = { readonly caller: Caller; readonly agentId: string }

/** Records a change in the chain of the caller's tenant. */
export function auditHere(
  tx: Transaction,
  needs: AgentManagementNeeds,
  message: Managed,
  type: AuditOnlyType,
  data: Readonly<Record<string, unknown>>,
  context: MessageContext,
): void {
  auditIn(tx, needs, message, message.caller.principal.tenantId, type, data, context)
}

/** Records a change in the chain of a tenant: the home tenant for keys and anchors. */
export function auditIn(
  tx: Transaction,
  needs: AgentManagementNeeds,
  { caller, agentId }: Managed,
  tenantId: string,
  type: AuditOnlyType,
  data: Readonly<Record<string, unknown>>,
  context: MessageContext,
): void {
  const resource = { type: 'agent', id: agentId }
  recordAudit(tx, needs, caller, context, { type, tenantId, resource, data })
}
