/** Agents with their keys and anchors. An agent's home tenant is the one it registered in. */
import { insertChainAnchor, type OnChainAgent, onChainName } from './chain-anchors.js'
import { UNHURRIED } from '../platform/durability.js'
import { lockUntilEnd } from '../platform/portable/locks.js'
import type { KeyAlgorithm } from '../../actors/domain/signed-strings.js'
import { type Database, execute, isChanged, LOOKED_UP, type Transaction } from '../platform/sql.js'

/** A DID derived from the key, a DID of a document on the web that lists the key, or an agent of a registry on a chain. */
export type AnchorType = 'did_key' | 'did_web' | 'erc8004'

type AgentRow = {
  id: string
  tenantId: string
  name: string
  status: 'active' | 'suspended'
  scopes: string[]
  metadata: Record<string, unknown>
  createdAt: Date
  updatedAt: Date
  lastAuthenticatedAt: Date | null
}

export type AgentKeyRow = {
  fingerprint: string
  algorithm: KeyAlgorithm
  publicKey: Uint8Array
  status: 'active' | 'deprecated' | 'revoked'
  createdAt: Date
  revokedAt: Date | null
}

export type AgentAnchorRow = {
  type: AnchorType
  value: string
  status: 'active' | 'revoked'
  verifiedAt: Date
}

export type NewAgent = Pick<AgentRow, 'id' | 'tenantId' | 'name' | 'scopes' | 'createdAt'> &
  Pick<AgentKeyRow, 'fingerprint' | 'algorithm' | 'publicKey'> & {
    anchorType: AnchorType
    /** Its method follows from the anchor type. An agent on a chain has a did:key. */
    did: string
    /** Undefined unless the anchor type is erc8004. */
    onChain?: OnChainAgent | undefined
  }

/** Outcome of a registration; only `registered` changes anything. */
export type Registered = 'registered' | 'fingerprint_known' | 'anchor_known'

/**
 * Inserts agent, key and anchor in one statement, unless the tenant has the key or the anchor already, in
 * any status.
 */
export async function registerAgentRow(tx: Transaction, agent: NewAgent): Promise<Registered> {
  // A did:key is unique with its key. Other anchors can have many keys, so they need their own check.
  const { anchorType: type } = agent
  const isShared = type === 'did_web' || type === 'erc8004'
  if (isShared && (await anchorTaken(tx, agent))) return 'anchor_known'
  // The primary key of agent_keys decides, so the key is inserted first and the others depend on it.
  // Foreign keys are checked at the end of the statement.
  const { rowCount } = await tx.query({
    name: 'agent.register',
    text: `with key as (
             insert into agent_keys (tenant_id, fingerprint, agent_id, algorithm, public_key,
               created_at)
             values ($1, $2, $3, $4, $5, $6)
             on conflict (tenant_id, fingerprint) do nothing
             returning tenant_id, agent_id),
           anchor as (
             insert into agent_anchors (tenant_id, agent_id, type, value, fingerprint, verified_at)
             select tenant_id, agent_id, $10, $7, $2, $6 from key)
           insert into agents (tenant_id, id, name, scopes, created_at, updated_at)
           select tenant_id, agent_id, $8, $9, $6, $6 from key`,
    values: [
      agent.tenantId,
      agent.fingerprint,
      agent.id,
      agent.algorithm,
      Buffer.from(agent.publicKey),
      agent.createdAt,
      agent.did,
      agent.name,
      agent.scopes,
      agent.anchorType === 'erc8004' ? 'did_key' : agent.anchorType,
    ],
  })
  if (rowCount !== 1) return 'fingerprint_known'
  if (agent.onChain !== undefined) await insertChainAnchor(tx, agent, agent.onChain)
  return 'registered'
}

/** True if the anchor is registered. Takes a lock per anchor until the transaction ends. */
async function anchorTaken(
  tx: Transaction,
  { tenantId, anchorType, did, onChain }: NewAgent,
): Promise<boolean> {
  const value = onChain === undefined ? did : onChainName(onChain)
  await lockUntilEnd(tx, { kind: 'anchor', tenantId, subject: value })
  return anchorKnown(tx, tenantId, anchorType, value)
}

/** True if the anchor is registered in the tenant, in any status. */
export const anchorKnown = (tx: Transaction, tenantId: string, type: AnchorType, value: string) =>
  isChanged(tx, {
    name: 'agent_anchor.known',
    text: `select from agent_anchors where tenant_id = $1 and type = $2 and value = $3`,
    values: [tenantId, type, value],
  })

/** active -> revoked. The row stays, so that no other agent can register the DID. */
export const revokeAnchor = (
  tx: Transaction,
  { tenantId, type, value }: { tenantId: string; type: AnchorType; value: string },
  now: Date,
) =>
  execute(tx, {
    name: 'agent_anchor.revoke',
    text: `update agent_anchors set status = 'revoked', revoked_at = $4
           where tenant_id = $1 and type = $2 and value = $3 and status = 'active'`,
    values: [tenantId, type, value, now],
  })

/** True if the key is registered in the tenant, in any status. */
export const fingerprintKnown = (tx: Transaction, tenantId: string, fingerprint: string) =>
  isChanged(tx, {
    name: 'agent_key.known',
    text: `select from agent_keys where tenant_id = $1 and fingerprint = $2`,
    values: [tenantId, fingerprint],
  })

export type AgentWithKeys = AgentRow & {
  /** The home tenant is the control plane. */
  controlPlane: boolean
  /** Its role in the organization of its home tenant; for the control plane the highest in any. */
  role: OrganizationRole | null
  keys: AgentKeyRow[]
  anchors: AgentAnchorRow[]
}
export type OrganizationRole = 'owner' | 'admin' | 'member'

/** Selects agents `a` with keys and anchors, oldest first; `h` is the home tenant. */
const AGENT = `select a.id, a.tenant_id as "tenantId", a.name, a.status, a.scopes, a.metadata,
    a.created_at as "createdAt", a.updated_at as "updatedAt",
    a.last_authenticated_at as "lastAuthenticatedAt",
    h.control_plane as "controlPlane",
    ${roleIn('h')} as role,
    (select coalesce(json_agg(json_build_object('fingerprint', k.fingerprint,
       'algorithm', k.algorithm, 'publicKey', encode(k.public_key, 'hex'),
       'status', k.status, 'createdAt', k.created_at, 'revokedAt', k.revoked_at)
       order by k.created_at, k.fingerprint), '[]')
     from agent_keys k where k.tenant_id = a.tenant_id and k.agent_id = a.id) as keys,
    (select coalesce(json_agg(json_build_object('type', n.type, 'value', n.value,
       'status', n.status, 'verifiedAt', n.verified_at) order by n.verified_at, n.value), '[]')
     from agent_anchors n where n.tenant_id = a.tenant_id and n.agent_id = a.id) as anchors
  from agents a join tenants h on h.id = a.tenant_id`

type AgentJson = AgentWithKeys & { keys: KeyJson[]; anchors: AnchorJson[] }

/** Reads an agent with its keys and anchors. Crosses tenants. */
export async function findAgent(
  tx: Transaction,
  agentId: string,
): Promise<AgentWithKeys | undefined> {
  const { rows } = await tx.query<AgentJson>({
    name: 'agent.find',
    text: `${AGENT} where a.id = $1`,
    values: [agentId],
  })
  return rows.map(agentOf)[0]
}

/** Reads agents, newest first. Crosses tenants. */
export async function findAgents(
  tx: Transaction,
  agentIds: readonly string[],
): Promise<AgentWithKeys[]> {
  const { rows } = await tx.query<AgentJson>({
    name: 'agent.find_some',
    text: `${AGENT} where a.id = any($1::uuid[]) order by a.created_at desc, a.id desc`,
    values: [agentIds],
  })
  return rows.map(agentOf)
}

/** A login of an agent. */
export type AgentLogin = { readonly agentId: string; readonly now: Date }

/**
 * Sets the time of the last login of agents. Crosses tenants. Rows are locked in the order of their ids, so that two
 * processes cannot deadlock.
 */
export async function touchAgents(
  database: Database,
  logins: readonly AgentLogin[],
): Promise<void> {
  await database.together(null, [
    {
      name: 'agent.touch',
      text: `with latest as materialized (
             select id, max(now) as now
             from unnest($1::uuid[], $2::timestamptz[]) with ordinality as a (id, now, place)
             where ${LOOKED_UP} group by id order by id),
           due as materialized (
             select l.* from latest l
             cross join lateral (select from agents a where a.id = l.id
               and (a.last_authenticated_at is null or a.last_authenticated_at < l.now)
               for no key update) a)
           update agents a set last_authenticated_at = d.now
           from due d, (select ${UNHURRIED}) hurry
           where a.id = d.id`,
      values: [logins.map(({ agentId }) => agentId), logins.map(({ now }) => now)],
    },
  ])
}

/**
 * SQL for the role of agent `a` in a tenant: its role in the tenant's organization; in the control plane
 * its highest role in any active organization.
 */
export function roleIn(tenantAlias: string): string {
  return `(select m.role from organization_members m
      join organizations o on o.id = m.organization_id and o.status = 'active'
    where m.member_type = 'agent' and m.member_id = a.id
      and (${tenantAlias}.control_plane or m.organization_id = ${tenantAlias}.organization_id)
    order by array_position(array['owner', 'admin', 'member'], m.role) limit 1)`
}

type KeyJson = Omit<AgentKeyRow, 'publicKey' | 'createdAt' | 'revokedAt'> & {
  publicKey: string
  createdAt: string
  revokedAt: string | null
}
type AnchorJson = Omit<AgentAnchorRow, 'verifiedAt'> & { verifiedAt: string }

function agentOf(row: AgentJson): AgentWithKeys {
  return { ...row, keys: row.keys.map(keyOf), anchors: row.anchors.map(anchorOf) }
}

function keyOf(key: KeyJson): AgentKeyRow {
  return {
    ...key,
    publicKey: new Uint8Array(Buffer.from(key.publicKey, 'hex')),
    createdAt: new Date(key.createdAt),
    revokedAt: key.revokedAt === null ? null : new Date(key.revokedAt),
  }
}

function anchorOf(anchor: AnchorJson): AgentAnchorRow {
  return { ...anchor, verifiedAt: new Date(anchor.verifiedAt) }
}
