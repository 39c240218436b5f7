/** Links that make the human who opens them an operator of an organization. Only hashes are kept. */
import type { Transaction } from './sql.js'

export type NewOperatorInvite = {
  tenantId: string
  id: string
  organizationId: string
  tokenSha256: Uint8Array
  invitedByAgentId: string
  createdAt: Date
  expiresAt: Date
}

export async function insertOperatorInvite(
  tx: Transaction,
  invite: NewOperatorInvite,
): Promise<void> {
  await tx.query({
    name: 'operator_invite.insert',
    text: `insert into operator_invites (tenant_id, id, organization_id, token_sha256,
             invited_by_agent_id, created_at, expires_at)
           values ($1, $2, $3, $4, $5, $6, $7)`,
    values: [
      invite.tenantId,
      invite.id,
      invite.organizationId,
      Buffer.from(invite.tokenSha256),
      invite.invitedByAgentId,
      invite.createdAt,
      invite.expiresAt,
    ],
  })
}

export type OperatorInviteRow = { organizationName: string; expiresAt: Date; usedAt: Date | null }

/** Finds an invite by its token, before its tenant is known. */
export async function findOperatorInvite(
  tx: Transaction,
  tokenSha256: Uint8Array,
): Promise<OperatorInviteRow | undefined> {
  const { rows } = await tx.query<OperatorInviteRow>({
    name: 'operator_invite.find',
    text: `select o.name as "organizationName", i.expires_at as "expiresAt", i.used_at as "usedAt"
           from operator_invites i join organizations o on o.id = i.organization_id
           where i.token_sha256 = $1`,
    values: [Buffer.from(tokenSha256)],
  })
  return rows[0]
}
