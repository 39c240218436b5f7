/**
 * Login challenges of agents: issued, then spent by the first verify, valid or not. They are found by
 * agent, key or challenge id before the tenant is known, so these statements cross tenants.
 */
import { type KeyAlgorithm, type OrganizationRole, roleIn } from './agents.js'
import { UNHURRIED } from '../platform/durability.js'
import type { Transaction } from '../platform/sql.js'

/** A key that may log in, with the role of its agent in the requested tenant. */
export type LoginCandidate = {
  agentId: string
  homeTenantId: string
  fingerprint: string
  algorithm: KeyAlgorithm
  /** Role in the organization of the requested tenant; null for none. */
  role: OrganizationRole | null
}

/** The kind of identifier in a challenge request. */
export type LoginName = 'agent_id' | 'did' | 'key_id'

const NAMED: Readonly<Record<LoginName, string>> = {
  agent_id: 'a.id = $1',
  did: `(k.tenant_id, k.fingerprint) in (
          select n.tenant_id, n.fingerprint from agent_anchors n
          where n.value = $1 and n.type in ('did_key', 'did_web') and n.status = 'active')`,
  key_id: 'k.fingerprint = $1',
}

/** Active keys of active agents with an identifier: agents of the requested tenant first, then newest. */
export async function findLoginCandidates(
  tx: Transaction,
  by: LoginName,
  value: string,
  tenantId: string,
): Promise<LoginCandidate[]> {
  const { rows } = await tx.query<LoginCandidate>({
    name: `agent.login_candidates_by_${by}`,
    text: `select a.id as "agentId", a.tenant_id as "homeTenantId", k.fingerprint, k.algorithm,
             ${roleIn('t')} as role
           from agents a
             join tenants h on h.id = a.tenant_id and h.status = 'active'
             join tenants t on t.id = $2 and t.status = 'active'
             join agent_keys k on k.tenant_id = a.tenant_id and k.agent_id = a.id
           where a.status = 'active' and k.status = 'active' and ${NAMED[by]}
             and not exists (select from agent_suspensions x
               where x.tenant_id = t.id and x.agent_id = a.id)
           order by a.tenant_id = $2 desc, k.created_at desc, k.fingerprint
           limit 16`,
    values: [value, tenantId],
  })
  return rows
}

export type NewAgentChallenge = {
  id: string
  tenantId: string
  agentId: string
  fingerprint: string
  nonce: string
  ttlSecs: number
}

export async function insertAgentChallenge(
  tx: Transaction,
  challenge: NewAgentChallenge,
): Promise<{ expiresAt: Date }> {
  const { rows } = await tx.query<{ expiresAt: Date }>({
    name: 'agent_challenge.insert',
    text: `insert into agent_challenges (tenant_id, id, agent_id, fingerprint, nonce, created_at,
             expires_at)
           select $1, $2, $3, $4, $5, clock.now,
             date_trunc('second', clock.now) + make_interval(secs => $6)
           from (select clock_timestamp() as now, ${UNHURRIED}) clock
           returning expires_at as "expiresAt"`,
    values: [
      challenge.tenantId,
      challenge.id,
      challenge.agentId,
      challenge.fingerprint,
      challenge.nonce,
      challenge.ttlSecs,
    ],
  })
  return rows[0]!
}

/** A spent challenge with the state of its agent, key and tenants. */
export type SpentChallenge = {
  tenantId: string
  agentId: string
  homeTenantId: string
  fingerprint: string
  nonce: string
  expiresAt: Date
  /** Expired by the clock of the database. */
  outlived: boolean
  /** `suspended` if the home tenant or the tenant of the login has suspended it. */
  agentStatus: 'active' | 'suspended'
  /** The scopes stored with the agent. */
  granted: string[]
  keyStatus: 'active' | 'deprecated' | 'revoked'
  keyAlgorithm: KeyAlgorithm
  publicKey: Uint8Array
  tenantStatus: 'active' | 'suspended'
  homeStatus: 'active' | 'suspended'
  controlPlane: boolean
  role: OrganizationRole | null
}

/**
 * Spends a challenge, once across all processes. Undefined when it is unknown, spent already, or its key
 * is deleted; the last case spends it too.
 */
export async function spendAgentChallenge(
  tx: Transaction,
  id: string,
): Promise<SpentChallenge | undefined> {
  const { rows } = await tx.query<SpentChallenge>({
    name: 'agent_challenge.spend',
    text: `with spent as (
             update agent_challenges set consumed_at = clock_timestamp()
             where id = $1 and consumed_at is null
             returning *)
           select c.tenant_id as "tenantId", c.agent_id as "agentId",
             a.tenant_id as "homeTenantId", c.fingerprint, c.nonce,
             c.expires_at as "expiresAt", c.expires_at <= c.consumed_at as outlived,
             case when exists (select from agent_suspensions x
                 where x.tenant_id = c.tenant_id and x.agent_id = a.id)
               then 'suspended' else a.status end as "agentStatus", a.scopes as granted, k.status as "keyStatus",
             k.algorithm as "keyAlgorithm", k.public_key as "publicKey",
             t.status as "tenantStatus", h.status as "homeStatus",
             t.control_plane as "controlPlane", ${roleIn('t')} as role
           from spent c
             join agents a on a.id = c.agent_id
             join agent_keys k on k.tenant_id = a.tenant_id and k.fingerprint = c.fingerprint
               and k.agent_id = a.id
             join tenants t on t.id = c.tenant_id
             join tenants h on h.id = a.tenant_id`,
    values: [id],
  })
  return rows[0]
}

/** Deletes up to `limit` challenges that expired more than `retentionSecs` ago. @returns the number. */
export async function deleteEndedAgentChallenges(
  tx: Transaction,
  retentionSecs: number,
  limit: number,
): Promise<number> {
  const { rowCount } = await tx.query({
    name: 'agent_challenge.delete_ended',
    text: `delete from agent_challenges where id in (
             select id from agent_challenges
             where expires_at < statement_timestamp() - make_interval(secs => $1)
             limit $2 for update skip locked)`,
    values: [retentionSecs, limit],
  })
  return rowCount
}
