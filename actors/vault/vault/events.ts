/** What the vault tells of: to receivers (the catalogue's events) and to the audit chain alone. */
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
  return told('vault.credential.created', credentialResource(row.id), eventContext, {
    provider: row.provider,
    credential_type: row.credentialType,
    label: row.label,
    auth_scheme: row.authScheme,
    allowed_hosts: row.allowedHosts,
    non_exportable: row.nonExportable,
  })
}

/** `access`: read by the owner, or handed to an agent by token exchange. */
export function secretAccessed(
  row: VaultCredentialRow,
  eventContext: EventContext,
  access: 'secret_read' | 'export' | 'managed_token' = 'secret_read',
): NewEvent {
  return told('vault.credential.accessed', credentialResource(row.id), eventContext, { access })
}

export function grantRevoked(row: VaultGrantRow, eventContext: EventContext): NewEvent {
  const event = told('vault.grant.revoked', { type: 'vault_grant', id: row.id }, eventContext, {
    credential_id: row.credentialId,
    grantee_type: row.granteeType,
    grantee_id: row.granteeId,
  })
  return { ...event, audit: { ...event.audit, grantId: row.id } }
}

export function credentialResource(id: string) {
  return { type: 'vault_credential', id }
}

/** An action that is audited and not told to receivers. */
export function noted(
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

function told(
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
