/** Delegations: the authority of agents to act for people. */
import { ending } from '../platform/ends/ending.js'
import {
  allRows,
  execute,
  firstRow,
  firstValue,
  isChanged,
  onlyValue,
  type Transaction,
} from '../platform/sql.js'
import { removing } from '../platform/portable/expiry.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'

/** SQL: what a delegation is for (`DelegationFacts`), as JSON. */
export const delegationFacts = (tenantId: string, id: string) =>
  `(select jsonb_build_object('id', d.id, 'purpose', d.purpose, 'scopes', d.scopes, 'audience', d.audience,
     'expiresAt', d.expires_at) from delegations d where d.tenant_id = ${tenantId} and d.id = ${id})`

export type DelegationRow = {
  readonly tenantId: string
  readonly id: string
  readonly agentId: string
  /** As shown to the person. */
  readonly agentName: string
  /** As the agent stated it and the person saw it. Null without one. */
  readonly purpose: string | null
  /** The person, by their subject in the tenant. */
  readonly subject: string
  readonly organizationId: string | null
  readonly scopes: readonly string[]
  readonly audience: string
  readonly level: number
  readonly amr: readonly string[]
  readonly authTime: Date
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly revokedAt: Date | null
  readonly revokedReason: string | null
}

const COLUMNS =
  columnsOf(`tenant_id id agent_id agent_name purpose subject organization_id scopes audience level amr
  auth_time created_at expires_at revoked_at revoked_reason`)

export const insertDelegation = (
  tx: Transaction,
  d: Omit<DelegationRow, 'revokedAt' | 'revokedReason'>,
) =>
  execute(tx, {
    name: 'delegation.insert',
    text: `insert into delegations (tenant_id, id, agent_id, agent_name, subject, organization_id,
             scopes, audience, level, amr, auth_time, created_at, expires_at, purpose)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
    values: [
      d.tenantId,
      d.id,
      d.agentId,
      d.agentName,
      d.subject,
      d.organizationId,
      d.scopes,
      d.audience,
      d.level,
      d.amr,
      d.authTime,
      d.createdAt,
      d.expiresAt,
      d.purpose,
    ],
  })

/** Filter of delegations; null matches all. */
export type DelegationsOf = { readonly agentId: string | null; readonly subject: string | null }

/** A delegation, if it matches the filter. */
export const findDelegation = (
  tx: Transaction,
  tenantId: string,
  id: string,
  { agentId, subject }: DelegationsOf = { agentId: null, subject: null },
) =>
  firstRow<DelegationRow>(tx, {
    name: 'delegation.find',
    text: `select ${COLUMNS} from delegations
           where tenant_id = $1 and id = $2
             and ($3::uuid is null or agent_id = $3) and ($4::text is null or subject = $4)`,
    values: [tenantId, id, agentId, subject],
  })

/** A page of a tenant's delegations, newest first, ended ones included. */
export const listDelegationRows = (
  tx: Transaction,
  tenantId: string,
  { agentId, subject }: DelegationsOf,
  limit: number,
  after: { readonly createdAt: Date; readonly id: string } | null,
) =>
  allRows<DelegationRow>(tx, {
    name: 'delegation.list',
    text: `select ${COLUMNS} from delegations
           where tenant_id = $1
             and ($2::uuid is null or agent_id = $2) and ($3::text is null or subject = $3)
             and ($5::timestamptz is null or (created_at, id) < ($5, $6::uuid))
           order by created_at desc, id desc limit $4`,
    values: [tenantId, agentId, subject, limit, after?.createdAt ?? null, after?.id ?? null],
  })

/** The active delegations of a person, newest first. */
export const activeDelegations = (tx: Transaction, tenantId: string, subject: string, now: Date) =>
  allRows<DelegationRow>(tx, {
    name: 'delegation.active',
    text: `select ${COLUMNS} from delegations
           where tenant_id = $1 and subject = $2 and revoked_at is null and expires_at > $3
           order by created_at desc, id desc limit 200`,
    values: [tenantId, subject, now],
  })

/** When the agents of delegations last got a token by them, by the id of the delegation. */
export async function lastUsesOfDelegations(
  tx: Transaction,
  tenantId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Date>> {
  const { rows } = await tx.query<{ id: string; usedAt: Date }>({
    name: 'delegation.last_uses',
    text: `select f.session_id as id, max(t.issued_at) as "usedAt"
           from refresh_families f
             join refresh_tokens t on t.tenant_id = f.tenant_id and t.family_id = f.id
           where f.tenant_id = $1 and f.session_id = any($2)
           group by f.session_id`,
    values: [tenantId, ids],
  })
  return new Map(rows.map(({ id, usedAt }) => [id, usedAt]))
}

/** True if the delegation is active. */
export const isDelegationActive = (tx: Transaction, tenantId: string, id: string, now: Date) =>
  onlyValue<boolean>(tx, {
    name: 'delegation.is_active',
    text: `select exists (select from delegations where tenant_id = $1 and id = $2
             and revoked_at is null and expires_at > $3) as active`,
    values: [tenantId, id, now],
  })

/** True if the delegation has expired without being revoked. */
export const isDelegationExpired = (tx: Transaction, tenantId: string, id: string, now: Date) =>
  onlyValue<boolean>(tx, {
    name: 'delegation.is_expired',
    text: `select exists (select from delegations where tenant_id = $1 and id = $2
             and revoked_at is null and expires_at <= $3) as expired`,
    values: [tenantId, id, now],
  })

type Redemption = {
  readonly tenantId: string
  readonly id: string
  /** Key of the polling login. */
  readonly keyFingerprint: string | null
  readonly jkt: string | null
  /** Audience of the tokens. */
  readonly audience: readonly string[]
  readonly familyId: string
  readonly refreshTokenSha256: Uint8Array
  readonly now: Date
  /** Expiry of the delegation. */
  readonly expiresAt: Date
  /** Expiry of its refresh tokens. */
  readonly refreshExpiresAt: Date
}

/**
 * approved -> consumed, once across all processes. Opens the session of the delegation and its refresh
 * token family. False when the request was redeemed or expired, or the delegation was revoked.
 */
export async function redeemDelegation(tx: Transaction, redemption: Redemption): Promise<boolean> {
  const r = redemption
  return isChanged(tx, {
    name: 'delegation.redeem',
    text: `with consumed as (
             update delegation_requests set status = 'consumed'
             where tenant_id = $1 and id = $2 and status = 'approved' and expires_at > $7
             returning id),
           delegation as (
             update delegations d set expires_at = $8, key_fingerprint = $3
             from consumed c where d.tenant_id = $1 and d.id = c.id and d.revoked_at is null
             returning d.*),
           session as (
             insert into sessions (tenant_id, id, subject, subject_type, agent_id, client_id,
               organization_id, key_fingerprint, amr, auth_time, created_at, expires_at)
             select tenant_id, id, subject, 'human', agent_id, agent_id, organization_id, $3, amr,
               auth_time, $7, $8 from delegation),
           family as (
             insert into refresh_families (tenant_id, id, session_id, client_id, scopes, audience,
               jkt, created_at, expires_at, subject, level, amr, auth_time)
             select tenant_id, $5, id, agent_id, scopes, $10, $4, $7, $9, subject,
               level, amr, auth_time from delegation)
           insert into refresh_tokens (tenant_id, family_id, generation, token_sha256, issued_at)
           select tenant_id, $5, 0, $6, $7 from delegation`,
    values: [
      r.tenantId,
      r.id,
      r.keyFingerprint,
      r.jkt,
      r.familyId,
      Buffer.from(r.refreshTokenSha256),
      r.now,
      r.expiresAt,
      r.refreshExpiresAt,
      r.audience,
    ],
  })
}

/** Revokes a delegation, with what ends with it. Undefined when it was revoked already. */
export const revokeDelegationRow = (
  tx: Transaction,
  tenantId: string,
  id: string,
  reason: string,
  now: Date,
) =>
  firstRow<DelegationRow>(ending(tx, 'delegation.ended', [{ tenantId, id }]), {
    name: 'delegation.revoke',
    text: `update delegations set revoked_at = $4, revoked_reason = $3
           where tenant_id = $1 and id = $2 and revoked_at is null returning ${COLUMNS}`,
    values: [tenantId, id, reason, now],
  })

/** Filter of delegations to revoke; an absent member matches all. */
export type DelegationsToEnd = {
  /** Null for every tenant. */
  readonly tenantId: string | null
  readonly agentId?: string | undefined
  readonly subject?: string | undefined
  /** Key of the login whose poll got the token. */
  readonly fingerprint?: string | undefined
  /** The account of the person, in every tenant. */
  readonly accountId?: string | undefined
}

/** Revokes delegations, with what ends with them. @returns those that this call revoked. */
export const endDelegations = (
  tx: Transaction,
  { tenantId, agentId, subject, fingerprint, accountId }: DelegationsToEnd,
  reason: string,
  now: Date,
) =>
  allRows<DelegationRow>(ending(tx, 'delegation.ended'), {
    name: 'delegation.end',
    text: `update delegations set revoked_at = $6, revoked_reason = $5
           where revoked_at is null and expires_at > $6
             and ($1::uuid is null or tenant_id = $1) and ($2::uuid is null or agent_id = $2)
             and ($3::text is null or subject = $3) and ($4::text is null or key_fingerprint = $4)
             and ($7::uuid is null or (tenant_id, subject) in (
               select u.tenant_id, u.sub from tenant_users u where u.account_id = $7))
           returning ${COLUMNS}`,
    values: [
      tenantId,
      agentId ?? null,
      subject ?? null,
      fingerprint ?? null,
      reason,
      now,
      accountId ?? null,
    ],
  })

/** Deletes up to `limit` delegations that expired before `before`. */
export const removeEndedDelegations = removing('delegation.remove_ended', 'delegations')

/** When a person last approved a delegation to an agent; null when there is no record. */
export const lastDelegated = async (
  tx: Transaction,
  of: { readonly tenantId: string; readonly agentId: string; readonly subject: string },
) =>
  (await firstValue<Date | null>(tx, {
    name: 'delegation.last_of_agent',
    text: `select max(created_at) as at from delegations
           where tenant_id = $1 and subject = $2 and agent_id = $3`,
    values: [of.tenantId, of.subject, of.agentId],
  })) ?? null
