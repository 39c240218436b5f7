/**
 * Agent management. An agent has one home tenant and may be a member of organizations of other tenants.
 * So these statements cross tenants, and each restricts the agents to those the tenant may see.
 */
import type { KeyAlgorithm } from '../../actors/domain/signed-strings.js'
import type { JoinedMember } from '../identity/organization-members.js'
import { ending } from '../platform/ends/ending.js'
import {
  allRows,
  execute,
  firstRow,
  firstValue,
  isChanged,
  type Transaction,
} from '../platform/sql.js'

/** An agent that a tenant may see. */
export type VisibleAgent = {
  readonly id: string
  readonly homeTenantId: string
  readonly createdAt: Date
  /** Suspended by this tenant, which is not its home tenant. */
  readonly suspendedHere: boolean
  /** The stored scopes. */
  readonly scopes: readonly string[]
  /** It owns an organization, and so holds every scope in the tenants of that organization. */
  readonly owner: boolean
  /** It owns the organization of this tenant. */
  readonly ownerHere: boolean
  /** This tenant is the control plane, where a token may be restricted to one organization. */
  readonly seenFromControlPlane: boolean
}

const PLACE = `a.id, a.tenant_id as "homeTenantId", a.created_at as "createdAt",
  exists (select from agent_suspensions x where x.tenant_id = $1 and x.agent_id = a.id)
    as "suspendedHere", a.scopes, exists (select from organization_members o
    where o.member_type = 'agent' and o.member_id = a.id and o.role = 'owner') as owner,
  exists (select from organization_members o join tenants u on u.organization_id = o.organization_id
    where u.id = $1 and o.member_type = 'agent' and o.member_id = a.id and o.role = 'owner') as "ownerHere",
  exists (select from tenants p where p.id = $1 and p.organization_id is null)
    as "seenFromControlPlane"`

/** Registered in the tenant, or a member of its organization. */
const SEEN = `(a.tenant_id = $1 or a.id in (
  select m.member_id from organization_members m
    join tenants t on t.organization_id = m.organization_id
  where t.id = $1 and m.member_type = 'agent'))`

/** A page of agents that a tenant may see, newest first. */
export const listVisibleAgents = (
  tx: Transaction,
  tenantId: string,
  limit: number,
  after: { readonly createdAt: Date; readonly id: string } | null,
) =>
  allRows<VisibleAgent>(tx, {
    name: 'agent.places',
    // The newest of the tenant by their index, and the members of its organization, which are few.
    text: `select ${PLACE} from agents a
           where a.id in (
             (select h.id from agents h
              where h.tenant_id = $1
                and ($3::timestamptz is null or (h.created_at, h.id) < ($3, $4::uuid))
              order by h.created_at desc, h.id desc limit $2)
             union all
             select m.member_id from organization_members m
               join tenants t on t.organization_id = m.organization_id
             where t.id = $1 and m.member_type = 'agent')
             and ($3::timestamptz is null or (a.created_at, a.id) < ($3, $4::uuid))
           order by a.created_at desc, a.id desc limit $2`,
    values: [tenantId, limit, after?.createdAt ?? null, after?.id ?? null],
  })

/** Undefined when the tenant may not see the agent. */
export const findVisibleAgent = (tx: Transaction, tenantId: string, agentId: string) =>
  firstRow<VisibleAgent>(tx, {
    name: 'agent.place',
    text: `select ${PLACE} from agents a where a.id = $2 and ${SEEN}`,
    values: [tenantId, agentId],
  })

/** Sets the status in the home tenant. A suspension ends what depends on the agent. False when it is unchanged. */
export const setAgentStatus = (
  tx: Transaction,
  agentId: string,
  status: 'active' | 'suspended',
  now: Date,
) =>
  isChanged(ending(tx, 'agent.suspended', [{ tenantId: null, id: agentId }]), {
    name: 'agent.set_status',
    text: `update agents set status = $2, updated_at = $3 where id = $1 and status <> $2`,
    values: [agentId, status, now],
  })

/** Suspends a member agent in one tenant; false when it was suspended already. */
export const insertAgentSuspension = (
  tx: Transaction,
  tenantId: string,
  agentId: string,
  now: Date,
) =>
  isChanged(ending(tx, 'agent.suspended_in_tenant', [{ tenantId, id: agentId }]), {
    name: 'agent_suspension.insert',
    text: `insert into agent_suspensions (tenant_id, agent_id, created_at) values ($1, $2, $3)
           on conflict do nothing`,
    values: [tenantId, agentId, now],
  })

/** Lifts a suspension in one tenant; false if the agent is not suspended. */
export const deleteAgentSuspension = (tx: Transaction, tenantId: string, agentId: string) =>
  isChanged(tx, {
    name: 'agent_suspension.delete',
    text: 'delete from agent_suspensions where tenant_id = $1 and agent_id = $2',
    values: [tenantId, agentId],
  })

/** Replaces the stored scopes. @returns the previous ones, undefined for an unknown agent. */
export const setAgentScopes = (
  tx: Transaction,
  agentId: string,
  scopes: readonly string[],
  now: Date,
) =>
  firstValue<string[]>(tx, {
    name: 'agent.set_scopes',
    text: `with before as (select id, scopes from agents where id = $1 for update)
           update agents a set scopes = $2, updated_at = $3 from before
           where a.id = before.id returning before.scopes as before`,
    values: [agentId, scopes, now],
  })

/** Deletes an agent with its keys, anchors and challenges. @returns its memberships, which end. */
export const deleteAgentRows = (tx: Transaction, agentId: string) =>
  allRows<JoinedMember>(ending(tx, 'agent.deleted', [{ tenantId: null, id: agentId }]), {
    name: 'agent.delete',
    text: `with left_organizations as (
             delete from organization_members where member_type = 'agent' and member_id = $1
             returning id, organization_id as "organizationId", role),
           gone as (delete from agents where id = $1)
           select * from left_organizations`,
    values: [agentId],
  })

/** Locks the agent until the transaction ends, to serialise changes. False for an unknown agent. */
export const holdAgent = (tx: Transaction, agentId: string) =>
  isChanged(tx, {
    name: 'agent.hold',
    text: 'select from agents where id = $1 for update',
    values: [agentId],
  })

type NewAgentKey = {
  readonly tenantId: string
  readonly agentId: string
  readonly fingerprint: string
  readonly algorithm: KeyAlgorithm
  readonly publicKey: Uint8Array
  readonly did: string
  readonly createdAt: Date
}

/** Adds a key with its did:key anchor; false when the tenant has a key with this fingerprint. */
export const insertAgentKey = (tx: Transaction, key: NewAgentKey) =>
  isChanged(tx, {
    name: 'agent_key.insert',
    text: `with key as (
             insert into agent_keys (tenant_id, fingerprint, agent_id, algorithm, public_key,
               created_at)
             values ($1, $2, $3, $4, $5, $6)
             on conflict (tenant_id, fingerprint) do nothing
             returning tenant_id, agent_id)
           insert into agent_anchors (tenant_id, agent_id, type, value, fingerprint, verified_at)
           select tenant_id, agent_id, 'did_key', $7, $2, $6 from key`,
    values: [
      key.tenantId,
      key.fingerprint,
      key.agentId,
      key.algorithm,
      Buffer.from(key.publicKey),
      key.createdAt,
      key.did,
    ],
  })

export type KeyStatus = 'active' | 'deprecated' | 'revoked'

/** The status of each key of an agent. */
export const findKeyStatuses = (tx: Transaction, agentId: string) =>
  allRows<{ fingerprint: string; status: KeyStatus }>(tx, {
    name: 'agent_key.statuses',
    text: `select k.fingerprint, k.status from agents a
             join agent_keys k on k.tenant_id = a.tenant_id and k.agent_id = a.id
           where a.id = $1`,
    values: [agentId],
  })

/** active -> deprecated. */
export const deprecateKey = (tx: Transaction, agentId: string, fingerprint: string, now: Date) =>
  execute(tx, {
    name: 'agent_key.deprecate',
    text: `update agent_keys set status = 'deprecated', deprecated_at = $3
           where agent_id = $1 and fingerprint = $2 and status = 'active'`,
    values: [agentId, fingerprint, now],
  })

/** active or deprecated -> revoked, with its anchors. */
export const revokeKey = (tx: Transaction, agentId: string, fingerprint: string, now: Date) =>
  execute(tx, {
    name: 'agent_key.revoke',
    text: `with anchors as (
             update agent_anchors set status = 'revoked', revoked_at = $3
             where agent_id = $1 and fingerprint = $2 and status = 'active')
           update agent_keys set status = 'revoked', revoked_at = $3
           where agent_id = $1 and fingerprint = $2 and status <> 'revoked'`,
    values: [agentId, fingerprint, now],
  })
