/** Maps rows to the records of the protocol. */
import type { VaultCredentialRow } from '../../../storage/vault/vault-credentials.js'
import type { CapabilitySnapshot, VaultGrantRow } from '../../../storage/vault/vault-grants.js'
import type { VaultLeaseRow } from '../../../storage/vault/vault-leases.js'
import { budgetNow } from '../../domain/vault/budgets.js'
import type { Credential, Grant, GrantStatus, Lease } from '../../domain/entities/vault.js'

/** Without its owner and its secret. */
export function credentialOf(row: VaultCredentialRow & { readonly secret?: unknown }): Credential {
  const { ownerType: _type, ownerId: _id, secret: _secret, ...credential } = row
  return credential
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
  const { tenantId: _tenant, snapshot: _snapshot, spentAt: _spent, ...rest } = row
  const { budgetBegan, budgetRequests, budgetBytes, budgetLlmTokens, ...grant } = rest
  const used = {
    began: budgetBegan,
    requests: budgetRequests,
    bytes: budgetBytes,
    llmTokens: budgetLlmTokens,
  }
  const budget = grant.budget && budgetNow(grant.budget, used, now)
  return { ...grant, budget, status: statusOf(row, now) }
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
