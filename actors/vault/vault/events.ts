/** Events of the vault for webhooks, and entries for the audit chain only. */
import type { NewEvent } from '../../../storage/platform/outbox.js'
import type { VaultGrantRow } from '../../../storage/vault/vault-grants.js'
import { type AuditOnlyType, audited } from '../../domain/audit.js'
import { eventBy, type EventContext } from '../../domain/events.js'

export function grantRevoked(row: VaultGrantRow, eventContext: EventContext): NewEvent {
  const resource = { type: 'vault_grant', id: row.id }
  const event = eventBy('vault.grant.revoked', resource, eventContext, {
    credential_id: row.credentialId,
    grantee_type: row.granteeType,
    grantee_id: row.granteeId,
  })
  return { ...event, audit: { ...event.audit, grantId: row.id } }
}

export function credentialResource(id: string) {
  return { type: 'vault_credential', id }
}

/** An action for the audit chain that has no webhook event. */
export function auditEntry(
  type: AuditOnlyType,
  resource: { readonly type: string; readonly id: string },
  { caller, random, now, requestId }: EventContext,
  data: Readonly<Record<string, unknown>> = {},
) {
  const { tenantId } = caller.principal
  return audited(caller, {
    id: random.uuid(),
    tenantId,
    type,
    occurredAt: now,
    resource,
    requestId,
    data,
  })
}
