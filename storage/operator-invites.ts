/** Links that make the human who opens them an operator of an organization. Only hashes are kept. */
import type { Transaction } from './sql.js'

export type NewOperatorInvite = {
  tenantId: string
  id: string
  organizationId: string
  tokenSha256: Uint8Array
  /** Null: made by whoever holds the deployment. */
  invitedByAgentId: string | null
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

/** An invite that was just used up. */
export type UsedInvite = {
  readonly tenantId: string
  readonly tenantSettings: Readonly<Record<string, unknown>>
  readonly organizationId: string
  readonly organizationName: string
  readonly role: 'owner' | 'admin' | 'member'
}

/** Uses an invite, once: of any number that try, one gets it. Its tenant is not known before. */
export async function useOperatorInvite(
  tx: Transaction,
  tokenSha256: Uint8Array,
  now: Date,
): Promise<UsedInvite | undefined> {
  const { rows } = await tx.query<UsedInvite>({
    name: 'operator_invite.use',
    text: `update operator_invites i set used_at = $2
           from organizations o, tenants t
           where i.token_sha256 = $1 and i.used_at is null and i.expires_at > $2
             and o.id = i.organization_id and t.id = i.tenant_id and t.status = 'active'
           returning i.tenant_id as "tenantId", t.settings as "tenantSettings",
             i.organization_id as "organizationId", o.name as "organizationName", i.role`,
    values: [Buffer.from(tokenSha256), now],
  })
  return rows[0]
}
