/** Grants: who may use a credential, with which limits, until when. */
import type { CredentialType, Grant } from '../../actors/domain/entities/vault.js'
import type { Budget } from '../../actors/domain/vault/budgets.js'
import { ending } from '../platform/ends/ending.js'
import { allRows, isChanged, onlyRow, onlyValue, type Transaction } from '../platform/sql.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'

/** Properties of the credential at the time of the grant. */
export type CapabilitySnapshot = {
  readonly credential_type: CredentialType
  readonly auth_scheme: string
  readonly allowed_hosts: readonly string[]
  readonly non_exportable: boolean
}

export type VaultGrantRow = Omit<Grant, 'status' | 'budget'> & {
  readonly tenantId: string
  readonly snapshot: CapabilitySnapshot
  /** When its limit of bytes has cut a call. */
  readonly spentAt: Date | null
  readonly budget: Budget | null
  /** The window that the counts are about. */
  readonly budgetBegan: Date | null
  readonly budgetRequests: number
  readonly budgetBytes: number
  readonly budgetLlmTokens: number
}

/** What a new grant does not have yet. */
type Later =
  | 'spentAt'
  | 'revokedAt'
  | 'budgetBegan'
  | 'budgetRequests'
  | 'budgetBytes'
  | 'budgetLlmTokens'

export const insertVaultGrant = (tx: Transaction, g: Omit<VaultGrantRow, Later>) =>
  onlyRow<VaultGrantRow>(tx, {
    name: 'vault_grant.insert',
    text: `insert into vault_grants (tenant_id, id, credential_id, grantee_type, grantee_id,
             capabilities, snapshot, methods, path_prefixes, max_requests, max_bytes, expires_at,
             created_at, allow_range, budget, approval)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
           returning ${COLUMNS}`,
    values: [
      g.tenantId,
      g.id,
      g.credentialId,
      g.granteeType,
      g.granteeId,
      g.capabilities,
      JSON.stringify(g.snapshot),
      g.methods,
      g.pathPrefixes,
      g.maxRequests,
      g.maxBytes,
      g.expiresAt,
      g.createdAt,
      g.allowRange,
      g.budget && JSON.stringify(g.budget),
      g.approval,
    ],
  })

/** A page of a credential's grants, newest first, ended ones included. */
export const listVaultGrantRows = (
  tx: Transaction,
  tenantId: string,
  credentialId: string,
  limit: number,
  after: { createdAt: Date; id: string } | null,
) =>
  allRows<VaultGrantRow>(tx, {
    name: 'vault_grant.list',
    text: `select ${COLUMNS} from vault_grants
           where tenant_id = $1 and credential_id = $2
             and ($4::timestamptz is null or (created_at, id) < ($4, $5::uuid))
           order by created_at desc, id desc limit $3`,
    values: [tenantId, credentialId, limit, after?.createdAt ?? null, after?.id ?? null],
  })

/** Revokes a grant, with the certificates that it signed. `first` is false when it was revoked already. */
export async function revokeVaultGrantRow(
  tx: Transaction,
  tenantId: string,
  id: string,
  now: Date,
): Promise<{ grant: VaultGrantRow; first: boolean } | undefined> {
  const { rows: ended } = await ending(tx, 'grant.revoked', [
    { tenantId, id },
  ]).query<VaultGrantRow>({
    name: 'vault_grant.revoke',
    text: `update vault_grants set revoked_at = $3
           where tenant_id = $1 and id = $2 and revoked_at is null returning ${COLUMNS}`,
    values: [tenantId, id, now],
  })
  if (ended[0] !== undefined) return { grant: ended[0], first: true }
  const { rows: before } = await tx.query<VaultGrantRow>({
    name: 'vault_grant.find',
    text: `select ${COLUMNS} from vault_grants where tenant_id = $1 and id = $2`,
    values: [tenantId, id],
  })
  return before[0] && { grant: before[0], first: false }
}

/** Revokes every grant of a credential. @returns those that this call revoked. */
export const revokeGrantsOf = (
  tx: Transaction,
  tenantId: string,
  credentialId: string,
  now: Date,
) =>
  allRows<VaultGrantRow>(ending(tx, 'grant.revoked'), {
    name: 'vault_grant.revoke_all',
    text: `update vault_grants set revoked_at = $3
           where tenant_id = $1 and credential_id = $2 and revoked_at is null returning ${COLUMNS}`,
    values: [tenantId, credentialId, now],
  })

/** A grant to sign, and when its delegation expires. Null for the grant of an agent. */
export type SigningGrantRow = VaultGrantRow & { readonly delegationEndsAt: Date | null }

const OF_SIGNER = `and (grantee_type = 'agent' and grantee_id = $3::text
             or grantee_type = 'delegation' and exists (select from delegations d
               where d.tenant_id = $1 and d.id::text = grantee_id and d.agent_id = $3::text::uuid
                 and d.revoked_at is null and d.expires_at > $5))`

/**
 * Grants that let an agent sign with a credential: its own, and the grants of active delegations to it. Active before ended,
 * newest first.
 */
export const findSigningGrants = (
  tx: Transaction,
  tenantId: string,
  credentialId: string,
  agentId: string,
  now: Date,
) =>
  allRows<SigningGrantRow>(tx, {
    name: 'vault_grant.of_agent',
    text: `select ${COLUMNS}, (select d.expires_at from delegations d where d.tenant_id = $1
             and grantee_type = 'delegation' and d.id::text = grantee_id) as "delegationEndsAt"
           from vault_grants
           where tenant_id = $1 and credential_id = $2 and $4 = any(capabilities) ${OF_SIGNER}
           order by (revoked_at is null and (expires_at is null or expires_at > $5)) desc,
             created_at desc, id desc limit 100`,
    values: [tenantId, credentialId, agentId, 'sign', now],
  })

/** True if a grant is active. Holds it, and its delegation, against their end until the transaction ends. */
export const holdSigningGrant = (tx: Transaction, tenantId: string, id: string, now: Date) =>
  isChanged(tx, {
    name: 'vault_grant.hold',
    text: `with d as (
             select id from delegations where tenant_id = $1 and revoked_at is null and expires_at > $3
               and id = (select case when grantee_type = 'delegation' then grantee_id::uuid end
                 from vault_grants where tenant_id = $1 and id = $2) for share)
           select from vault_grants
           where tenant_id = $1 and id = $2 and revoked_at is null
             and (expires_at is null or expires_at > $3)
             and (grantee_type = 'agent' or exists (select from d)) for share`,
    values: [tenantId, id, now],
  })

/** True if the agent is registered in the tenant or a member of its organization. */
export const agentBelongs = (tx: Transaction, tenantId: string, agentId: string) =>
  onlyValue<boolean>(tx, {
    name: 'vault_grant.agent_belongs',
    text: `select exists (select from agents where tenant_id = $1 and id = $2)
               or exists (select from organization_members m
                    join tenants t on t.organization_id = m.organization_id
                    where t.id = $1 and m.member_type = 'agent' and m.member_id = $2) as belongs`,
    values: [tenantId, agentId],
  })

const COLUMNS =
  columnsOf(`id tenant_id credential_id grantee_type grantee_id capabilities snapshot methods
  path_prefixes allow_range approval max_requests max_bytes budget budget_began budget_requests budget_bytes
  budget_llm_tokens spent_at expires_at created_at revoked_at`)

/** An agent by id, a human by pairwise subject in the tenant. */
type OwnerCandidate = {
  readonly subjectType: 'human' | 'agent'
  readonly subject: string
}

/**
 * True if the candidate owns the tenant's organization and the agent belongs to it: registered in the
 * tenant, or a member.
 */
export const ownsAgentCredentials = (
  tx: Transaction,
  tenantId: string,
  agentId: string,
  { subjectType, subject }: OwnerCandidate,
) =>
  onlyValue<boolean>(tx, {
    name: 'vault_owner.of_agent',
    text: `select exists (select from tenants t
             join organizations o on o.id = t.organization_id and o.status = 'active'
             join organization_members m on m.organization_id = o.id and m.role = 'owner'
             where t.id = $1
               and (m.member_type, m.member_id::text) in (
                 select 'agent', $4::text where $3 = 'agent'
                 union all
                 select 'account', u.account_id::text from tenant_users u
                 where $3 = 'human' and u.tenant_id = $1 and u.sub = $4 and u.status = 'active')
               and (exists (select from agents a
                      where a.tenant_id = $1 and a.id = $2::uuid)
                 or exists (select from organization_members own
                      where own.organization_id = o.id and own.member_type = 'agent'
                        and own.member_id = $2::uuid))) as owns`,
    values: [tenantId, agentId, subjectType, subject],
  })

/** True if the grant has neither ended nor expired. */
export const isGrantActive = (tx: Transaction, tenantId: string, id: string, now: Date) =>
  onlyValue<boolean>(tx, {
    name: 'vault_grant.is_active',
    text: `select exists (select from vault_grants where tenant_id = $1 and id = $2 and revoked_at is null
             and (expires_at is null or expires_at > $3)) as active`,
    values: [tenantId, id, now],
  })
