/** Leases: grants to an agent with a byte budget. */
import type { Lease } from '../../actors/domain/entities/vault.js'
import { allRows, onlyRow, type Transaction } from '../platform/sql.js'
import type { CapabilitySnapshot } from './vault-grants.js'

export type VaultLeaseRow = Omit<Lease, 'status'> & {
  readonly tenantId: string
  readonly snapshot: CapabilitySnapshot
  /** When its budget has cut a call. */
  readonly spentAt: Date | null
}

export const insertVaultLease = (
  tx: Transaction,
  l: Omit<VaultLeaseRow, 'bytesUsed' | 'spentAt' | 'revokedAt'>,
) =>
  onlyRow<VaultLeaseRow>(tx, {
    name: 'vault_lease.insert',
    text: `insert into vault_leases (tenant_id, id, credential_id, recipient_id, snapshot,
             byte_budget, expires_at, created_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8)
           returning ${COLUMNS}`,
    values: [
      l.tenantId,
      l.id,
      l.credentialId,
      l.recipientId,
      JSON.stringify(l.snapshot),
      l.byteBudget,
      l.expiresAt,
      l.createdAt,
    ],
  })

/** A page of a credential's leases, newest first, ended ones included. */
export const listVaultLeaseRows = (
  tx: Transaction,
  tenantId: string,
  credentialId: string,
  limit: number,
  after: { createdAt: Date; id: string } | null,
) =>
  allRows<VaultLeaseRow>(tx, {
    name: 'vault_lease.list',
    text: `select ${COLUMNS} from vault_leases
           where tenant_id = $1 and credential_id = $2
             and ($4::timestamptz is null or (created_at, id) < ($4, $5::uuid))
           order by created_at desc, id desc limit $3`,
    values: [tenantId, credentialId, limit, after?.createdAt ?? null, after?.id ?? null],
  })

/** Revokes a lease. `first` is false when it was revoked already. */
export async function revokeVaultLeaseRow(
  tx: Transaction,
  tenantId: string,
  id: string,
  now: Date,
): Promise<{ lease: VaultLeaseRow; first: boolean } | undefined> {
  const { rows: ended } = await tx.query<VaultLeaseRow>({
    name: 'vault_lease.revoke',
    text: `update vault_leases set revoked_at = $3
           where tenant_id = $1 and id = $2 and revoked_at is null returning ${COLUMNS}`,
    values: [tenantId, id, now],
  })
  if (ended[0] !== undefined) return { lease: ended[0], first: true }
  const { rows: before } = await tx.query<VaultLeaseRow>({
    name: 'vault_lease.find',
    text: `select ${COLUMNS} from vault_leases where tenant_id = $1 and id = $2`,
    values: [tenantId, id],
  })
  return before[0] && { lease: before[0], first: false }
}

/** Revokes every lease of a credential. @returns those that this call revoked. */
export const revokeLeasesOf = (
  tx: Transaction,
  tenantId: string,
  credentialId: string,
  now: Date,
) =>
  allRows<VaultLeaseRow>(tx, {
    name: 'vault_lease.revoke_all',
    text: `update vault_leases set revoked_at = $3
           where tenant_id = $1 and credential_id = $2 and revoked_at is null returning ${COLUMNS}`,
    values: [tenantId, credentialId, now],
  })

/** What blocks of egress calls hold of the budget is not used, unless the budget is spent. */
const COLUMNS = `id, tenant_id as "tenantId", credential_id as "credentialId",
  recipient_id as "recipientId", snapshot, byte_budget as "byteBudget", bytes_used - coalesce((
    select sum(b.bytes_held) from egress_blocks b
    where b.tenant_id = vault_leases.tenant_id and b.authority_id = vault_leases.id
      and vault_leases.spent_at is null), 0)::bigint as "bytesUsed", spent_at as "spentAt",
  expires_at as "expiresAt", created_at as "createdAt", revoked_at as "revokedAt"`
