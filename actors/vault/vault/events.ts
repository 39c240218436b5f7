/** Events of the vault for webhooks, and entries for the audit chain only. */
import type { Random } from '../../../runtime/kernel/random.js'
import type { NewEvent } from '../../../storage/platform/outbox.js'
import type { VaultCredentialRow } from '../../../storage/vault/vault-credentials.js'
import type { VaultGrantRow } from '../../../storage/vault/vault-grants.js'
import { actorOf, type AuditOnlyType, audited, type Caller, doneBy } from '../../domain/audit.js'
import { eventData } from '../../domain/events.js'

export type EventContext = {
  readonly caller: Caller
  readonly random: Random
  readonly now: Date
  readonly requestId: string | undefined
}

export function credentialCreated(row: VaultCredentialRow, eventContext: EventContext): NewEvent {
  return vaultEvent('vault.credential.created', credentialResource(row.id), eventContext, {
    provider: row.provider,
    credential_type: row.credentialType,
    label: row.label,
    auth_scheme: row.authScheme,
    allowed_hosts: row.allowedHosts,
    non_exportable: row.nonExportable,
  })
}

/** `access`: read by the owner, or exported to an agent by token exchange. */
export function secretAccessed(
  row: VaultCredentialRow,
  eventContext: EventContext,
  access: 'secret_read' | 'export' | 'managed_token' = 'secret_read',
): NewEvent {
  return vaultEvent('vault.credential.accessed', credentialResource(row.id), eventContext, {
    access,
  })
}

export function grantRevoked(row: VaultGrantRow, eventContext: EventContext): NewEvent {
  const event = vaultEvent(
    'vault.grant.revoked',
    { type: 'vault_grant', id: row.id },
    eventContext,
    {
      credential_id: row.credentialId,
      grantee_type: row.granteeType,
      grantee_id: row.granteeId,
    },
  )
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

function vaultEvent(
  type: 'vault.credential.created' | 'vault.credential.accessed' | 'vault.grant.revoked',
  resource: { readonly type: string; readonly id: string },
  { caller, random, now, requestId }: EventContext,
  fields: Readonly<Record<string, unknown>>,
): NewEvent {
  return {
    id: random.uuid(),
    tenantId: caller.principal.tenantId,
    type,
    occurredAt: now,
    data: eventData({ actor: actorOf(caller), resource, requestId }, fields),
    audit: doneBy(caller),
  }
}
