/** Access policies of tenants (docs/reference/oauth.md, Access policies). */
import { lockUntilEnd } from '../platform/portable/locks.js'
import { allRows, firstRow, isChanged, type Transaction } from '../platform/sql.js'

export type PolicyAction = 'sign_in' | 'token'

export type AccessPolicyRow = {
  readonly id: string
  readonly tenantId: string
  readonly name: string
  readonly enabled: boolean
  readonly actions: readonly PolicyAction[]
  /** Empty: all applications and agents. */
  readonly clientIds: readonly string[]
  /** Empty: tokens of all scopes, otherwise those with one of them. */
  readonly scopes: readonly string[]
  /** Networks in CIDR notation. Empty: all. */
  readonly allowedNetworks: readonly string[]
  readonly deniedNetworks: readonly string[]
  /** The least assurance level of users. */
  readonly requiredLevel: 1 | 2 | 3 | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

const COLUMNS = `p.id, p.tenant_id as "tenantId", p.name, p.enabled, p.actions, p.client_ids as "clientIds", p.scopes,
  p.allowed_networks as "allowedNetworks", p.denied_networks as "deniedNetworks",
  p.required_level as "requiredLevel", p.created_at as "createdAt", p.updated_at as "updatedAt"`

/** Inserts a policy. False, and nothing written, when the tenant has `most`. */
export async function insertAccessPolicy(
  tx: Transaction,
  policy: AccessPolicyRow,
  most: number,
): Promise<boolean> {
  // The lock makes concurrent creations of one tenant count one after the other.
  await lockUntilEnd(tx, { kind: 'access_policies', tenantId: policy.tenantId })
  return isChanged(tx, {
    name: 'access_policy.insert',
    text: `insert into access_policies (tenant_id, id, name, enabled, actions, client_ids, scopes, allowed_networks,
             denied_networks, required_level, created_at, updated_at)
           select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11
           where (select count(*) from access_policies where tenant_id = $1) < $12`,
    values: [...memberValues(policy), policy.createdAt, most],
  })
}

/** Replaces every member that can change. */
export async function updateAccessPolicy(tx: Transaction, policy: AccessPolicyRow): Promise<void> {
  await tx.query({
    name: 'access_policy.update',
    text: `update access_policies set name = $3, enabled = $4, actions = $5, client_ids = $6, scopes = $7,
             allowed_networks = $8, denied_networks = $9, required_level = $10, updated_at = $11
           where tenant_id = $1 and id = $2`,
    values: [...memberValues(policy), policy.updatedAt],
  })
}

function memberValues(policy: AccessPolicyRow): unknown[] {
  return [
    policy.tenantId,
    policy.id,
    policy.name,
    policy.enabled,
    policy.actions,
    policy.clientIds,
    policy.scopes,
    policy.allowedNetworks,
    policy.deniedNetworks,
    policy.requiredLevel,
  ]
}

/** Locks the policy until the transaction ends, so that changes are serialised. */
export const lockAccessPolicy = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<AccessPolicyRow>(tx, {
    name: 'access_policy.lock',
    text: `select ${COLUMNS} from access_policies p where p.tenant_id = $1 and p.id = $2 for update`,
    values: [tenantId, id],
  })

export const findAccessPolicy = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<AccessPolicyRow>(tx, {
    name: 'access_policy.find',
    text: `select ${COLUMNS} from access_policies p where p.tenant_id = $1 and p.id = $2`,
    values: [tenantId, id],
  })

/** A page of a tenant's policies, newest first. */
export const listAccessPolicies = (
  tx: Transaction,
  tenantId: string,
  limit: number,
  after: { readonly createdAt: Date; readonly id: string } | null,
) =>
  allRows<AccessPolicyRow>(tx, {
    name: 'access_policy.list',
    text: `select ${COLUMNS} from access_policies p
           where p.tenant_id = $1
             and ($3::timestamptz is null or (p.created_at, p.id) < ($3, $4::uuid))
           order by p.created_at desc, p.id desc limit $2`,
    values: [tenantId, limit, after?.createdAt ?? null, after?.id ?? null],
  })

/** The policies of a tenant that are in force, oldest first. */
export const accessPoliciesInForce = (tx: Transaction, tenantId: string) =>
  allRows<AccessPolicyRow>(tx, {
    name: 'access_policy.in_force',
    text: `select ${COLUMNS} from access_policies p where p.tenant_id = $1 and p.enabled
           order by p.created_at, p.id`,
    values: [tenantId],
  })

export const deleteAccessPolicy = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<AccessPolicyRow>(tx, {
    name: 'access_policy.delete',
    text: `delete from access_policies p where p.tenant_id = $1 and p.id = $2 returning ${COLUMNS}`,
    values: [tenantId, id],
  })
