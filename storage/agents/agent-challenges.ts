/**
 * Login challenges of agents: issued, then spent by the first verify, valid or not. They are found by
 * agent, key or challenge id before the tenant is known, so these statements cross tenants.
 */
import type { KeyAlgorithm } from '../../actors/domain/signed-strings.js'
import { type OrganizationRole, roleIn } from './agents.js'
import { UNHURRIED } from '../platform/durability.js'
import { changedRows, type Database, LOOKED_UP, type Transaction } from '../platform/sql.js'

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
  agent_id: 'a.id = asked.name::uuid',
  did: `(k.tenant_id, k.fingerprint) in (
          select n.tenant_id, n.fingerprint from agent_anchors n
          where n.value = asked.name and n.type in ('did_key', 'did_web') and n.status = 'active')`,
  key_id: 'k.fingerprint = asked.name',
}

/** The name of an agent or key, and the tenant to log in to. */
export type NamedLogin = { readonly name: string; readonly tenantId: string }

/**
 * Active keys of active agents, for each name in order: agents of the requested tenant first, then newest. The agents
 * may have other home tenants, so the statement crosses tenants.
 */
export async function findLoginCandidates(
  database: Database,
  by: LoginName,
  asked: readonly NamedLogin[],
): Promise<readonly (readonly LoginCandidate[])[]> {
  const [found] = await database.together(null, [
    {
      name: `agent.login_candidates_by_${by}`,
      text: `select asked.place::integer, c.*
             from (select * from unnest($1::text[], $2::uuid[]) with ordinality
                 as a (name, tenant_id, place) where ${LOOKED_UP} offset 0) asked
             cross join lateral (
               select a.id as "agentId", a.tenant_id as "homeTenantId", k.fingerprint, k.algorithm,
                 ${roleIn('t')} as role,
                 row_number() over (order by a.tenant_id = asked.tenant_id desc, k.created_at desc,
                   k.fingerprint) as rank
               from agents a
                 join tenants h on h.id = a.tenant_id and h.status = 'active'
                 join tenants t on t.id = asked.tenant_id and t.status = 'active'
                 join agent_keys k on k.tenant_id = a.tenant_id and k.agent_id = a.id
               where a.status = 'active' and k.status = 'active' and ${NAMED[by]}
                 and not exists (select from agent_suspensions x
                   where x.tenant_id = t.id and x.agent_id = a.id)
               order by rank limit 16) c
             order by asked.place, c.rank`,
      values: [asked.map(({ name }) => name), asked.map(({ tenantId }) => tenantId)],
    },
  ])
  const candidates: LoginCandidate[][] = asked.map(() => [])
  for (const { place, rank: _, ...candidate } of found!
    .rows as unknown as readonly FoundCandidate[])
    candidates[place - 1]!.push(candidate)
  return candidates
}
type FoundCandidate = LoginCandidate & { readonly place: number; readonly rank: number }

export type NewAgentChallenge = {
  id: string
  tenantId: string
  agentId: string
  fingerprint: string
  nonce: string
  ttlSecs: number
}

/**
 * Issues challenges of any tenants. A challenge of an agent or tenant that was removed is left out.
 * @returns the expiry of each issued challenge, by id.
 */
export async function insertAgentChallenges(
  database: Database,
  challenges: readonly NewAgentChallenge[],
): Promise<ReadonlyMap<string, Date>> {
  const [issued] = await database.together(null, [
    {
      name: 'agent_challenge.insert',
      text: `insert into agent_challenges (tenant_id, id, agent_id, fingerprint, nonce, created_at,
             expires_at)
           select c.tenant_id, c.id, c.agent_id, c.fingerprint, c.nonce, clock.now,
             date_trunc('second', clock.now) + make_interval(secs => c.ttl_secs)
           from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::int[])
               with ordinality as c (tenant_id, id, agent_id, fingerprint, nonce, ttl_secs, place),
             (select clock_timestamp() as now, ${UNHURRIED}) clock
           where ${LOOKED_UP}
             and exists (select from tenants t where t.id = c.tenant_id)
             and exists (select from agents a where a.id = c.agent_id)
           returning id, expires_at as "expiresAt"`,
      values: [
        challenges.map(({ tenantId }) => tenantId),
        challenges.map(({ id }) => id),
        challenges.map(({ agentId }) => agentId),
        challenges.map(({ fingerprint }) => fingerprint),
        challenges.map(({ nonce }) => nonce),
        challenges.map(({ ttlSecs }) => ttlSecs),
      ],
    },
  ])
  const rows = issued!.rows as { id: string; expiresAt: Date }[]
  return new Map(rows.map(({ id, expiresAt }) => [id, expiresAt]))
}

/** An unspent challenge with the state of its agent, key and tenants. */
export type OpenChallenge = {
  id: string
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
 * Finds challenges, in the order of their ids. Undefined when one is unknown, spent already, or its key is deleted. The
 * tenant of a challenge is unknown until its row is found, so the statement crosses tenants.
 */
export async function findAgentChallenges(
  database: Database,
  ids: readonly string[],
): Promise<readonly (OpenChallenge | undefined)[]> {
  const [found] = await database.together(null, [
    {
      name: 'agent_challenge.find',
      text: `select c.id, c.tenant_id as "tenantId", c.agent_id as "agentId",
               a.tenant_id as "homeTenantId", c.fingerprint, c.nonce,
               c.expires_at as "expiresAt", c.expires_at <= clock_timestamp() as outlived,
               case when exists (select from agent_suspensions x
                   where x.tenant_id = c.tenant_id and x.agent_id = a.id)
                 then 'suspended' else a.status end as "agentStatus", a.scopes as granted,
               k.status as "keyStatus", k.algorithm as "keyAlgorithm", k.public_key as "publicKey",
               t.status as "tenantStatus", h.status as "homeStatus",
               t.control_plane as "controlPlane", ${roleIn('t')} as role
             from (select id from unnest($1::uuid[]) with ordinality as a (id, place)
               where ${LOOKED_UP} offset 0) asked
             cross join lateral (select * from agent_challenges
               where id = asked.id and consumed_at is null offset 0) c
             cross join lateral (select * from agents where id = c.agent_id offset 0) a
             cross join lateral (select * from agent_keys
               where tenant_id = a.tenant_id and fingerprint = c.fingerprint
                 and agent_id = a.id offset 0) k
             cross join lateral (select * from tenants where id = c.tenant_id offset 0) t
             cross join lateral (select * from tenants where id = a.tenant_id offset 0) h`,
      values: [ids],
    },
  ])
  const rowById = new Map((found!.rows as OpenChallenge[]).map((row) => [row.id, row]))
  return ids.map((id) => rowById.get(id))
}

/**
 * Spends challenges of one tenant, each once across all processes. Returns true for each challenge that this call spent,
 * in order.
 */
export async function spendAgentChallenges(
  tx: Transaction,
  tenantId: string,
  ids: readonly string[],
): Promise<readonly boolean[]> {
  const { rows } = await tx.query<{ place: number }>({
    name: 'agent_challenge.spend',
    text: `with asked as materialized (
             select $1::uuid as tenant_id, a.* from unnest($2::uuid[]) with ordinality
               as a (id, place) where ${LOOKED_UP})
           update agent_challenges c set consumed_at = clock_timestamp() from asked a
           where c.tenant_id = a.tenant_id and c.id = a.id and c.consumed_at is null
           returning a.place::integer`,
    values: [tenantId, ids],
  })
  const spent = new Set(rows.map(({ place }) => place))
  return ids.map((_, at) => spent.has(at + 1))
}

/** Deletes up to `limit` challenges that expired more than `retentionSecs` ago. @returns the number. */
export const deleteEndedAgentChallenges = (tx: Transaction, retentionSecs: number, limit: number) =>
  changedRows(tx, {
    name: 'agent_challenge.delete_ended',
    text: `delete from agent_challenges where id in (
             select id from agent_challenges
             where expires_at < statement_timestamp() - make_interval(secs => $1)
             limit $2 for update skip locked)`,
    values: [retentionSecs, limit],
  })
