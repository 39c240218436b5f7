/** Maps rows to the records of the protocol. */
import type { VaultCredentialRow } from '../../../storage/vault/vault-credentials.js'
import type { CapabilitySnapshot, VaultGrantRow } from '../../../storage/vault/vault-grants.js'
import type { VaultLeaseRow } from '../../../storage/vault/vault-leases.js'
import type { Capability, Credential, Grant, GrantStatus, Lease } from './protocol.js'

export function credentialOf(row: VaultCredentialRow): Credential {
  return {
    id: row.id,
    tenantId: row.tenantId,
    tenantName: row.tenantName,
    provider: row.provider,
    credentialType: row.credentialType,
    label: row.label,
    authScheme: row.authScheme,
    allowedHosts: row.allowedHosts,
    nonExportable: row.nonExportable,
    status: row.status,
    metadata: row.metadata,
    caPublicKey: row.caPublicKey,
    tokenOf: row.tokenOf,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
    lastUsedAt: row.lastUsedAt,
  }
}

/** The capability snapshot: the credential's properties to which a grant or lease is bound. */
export function snapshotOf(row: VaultCredentialRow): CapabilitySnapshot {
  return {
    credential_type: row.credentialType,
    auth_scheme: row.authScheme,
    allowed_hosts: row.allowedHosts,
    non_exportable: row.nonExportable,
  }
}

export function grantOf(row: VaultGrantRow, now: Date): Grant {
  const { tenantId: _tenant, snapshot: _snapshot, capabilities, spentAt: _spent, ...rest } = row
  return { ...rest, capabilities: capabilities as Capability[], status: statusOf(row, now) }
}

export function leaseOf(row: VaultLeaseRow, now: Date): Lease {
  const { tenantId: _tenant, snapshot: _snapshot, spentAt: _spent, ...rest } = row
  return { ...rest, status: statusOf(row, now) }
}

function statusOf(
  { revokedAt, expiresAt, spentAt }: Pick<VaultLeaseRow, 'revokedAt' | 'expiresAt' | 'spentAt'>,
  now: Date,
): GrantStatus {
  if (revokedAt !== null) return 'revoked'
  if (expiresAt !== null && expiresAt <= now) return 'expired'
  return spentAt === null ? 'active' : 'spent'
}
