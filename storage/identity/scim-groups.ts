/** SCIM groups: the roles of a tenant by the names that a directory has for them. The members are the users with the role. */
import { ending } from '../platform/ends/ending.js'
import {
  allRows,
  execute,
  firstRow,
  isChanged,
  onlyValue,
  type Transaction,
} from '../platform/sql.js'

export type ScimGroupRow = {
  readonly id: string
  readonly tenantId: string
  readonly displayName: string
  readonly role: string
  readonly externalId: string | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

const COLUMNS = `id, tenant_id as "tenantId", display_name as "displayName", role, external_id as "externalId",
  created_at as "createdAt", updated_at as "updatedAt"`

/**
 * Inserts a group unless the tenant has `most` groups. A taken name violates `scim_groups_display_name`, a taken role
 * `scim_groups_role`.
 */
export const insertScimGroup = (tx: Transaction, group: ScimGroupRow, most: number) =>
  isChanged(tx, {
    name: 'scim_group.insert',
    text: `insert into scim_groups (tenant_id, id, display_name, display_name_key, role, external_id, created_at,
             updated_at)
           select $1, $2, $3, lower($3), $4, $5, $6, $6
           where (select count(*) from scim_groups where tenant_id = $1) < $7`,
    values: [
      group.tenantId,
      group.id,
      group.displayName,
      group.role,
      group.externalId,
      group.createdAt,
      most,
    ],
  })

/** All groups of a tenant, oldest first. Their number is bounded by `insertScimGroup`. */
export const listScimGroupRows = (tx: Transaction, tenantId: string) =>
  allRows<ScimGroupRow>(tx, {
    name: 'scim_group.list',
    text: `select ${COLUMNS} from scim_groups where tenant_id = $1 order by created_at, id`,
    values: [tenantId],
  })

/** A group, locked until the transaction ends if the caller changes it. */
export const findScimGroup = (tx: Transaction, tenantId: string, id: string, isLocked: boolean) =>
  firstRow<ScimGroupRow>(tx, {
    name: isLocked ? 'scim_group.hold' : 'scim_group.find',
    text: `select ${COLUMNS} from scim_groups where tenant_id = $1 and id = $2${isLocked ? ' for update' : ''}`,
    values: [tenantId, id],
  })

export const updateScimGroup = (
  tx: Transaction,
  group: Pick<ScimGroupRow, 'tenantId' | 'id' | 'displayName' | 'externalId'>,
  now: Date,
) =>
  execute(tx, {
    name: 'scim_group.update',
    text: `update scim_groups set display_name = $3, display_name_key = lower($3), external_id = $4,
             updated_at = $5
           where tenant_id = $1 and id = $2`,
    values: [group.tenantId, group.id, group.displayName, group.externalId, now],
  })

export const deleteScimGroupRow = (tx: Transaction, tenantId: string, id: string) =>
  execute(tx, {
    name: 'scim_group.delete',
    text: 'delete from scim_groups where tenant_id = $1 and id = $2',
    values: [tenantId, id],
  })

export type ScimMemberRow = {
  readonly role: string
  readonly id: string
  readonly display: string | null
}

/** The users with these roles, in the order of their creation. */
export const membersWithRoles = (
  tx: Transaction,
  tenantId: string,
  roles: readonly string[],
  most: number | null = null,
) =>
  allRows<ScimMemberRow>(tx, {
    name: 'scim_group.members',
    text: `select r.role, u.id, u.display_name as display
           from tenant_users u, unnest(u.roles) r (role)
           where u.tenant_id = $1 and u.roles && $2 and u.status <> 'removed' and r.role = any ($2)
           order by u.created_at, u.id limit $3`,
    values: [tenantId, roles, most],
  })

type RoleChanged = {
  readonly id: string
  readonly tenantId: string
  readonly sub: string
  readonly accountId: string
  /** After the change. */
  readonly roles: readonly string[]
}

const CHANGED = `returning id, tenant_id as "tenantId", sub, account_id as "accountId", roles`

/** Gives users a role. Returns those who did not have it. */
export const giveRole = (
  tx: Transaction,
  tenantId: string,
  role: string,
  userIds: readonly string[],
  now: Date,
) =>
  allRows<RoleChanged>(tx, {
    name: 'scim_group.give_role',
    text: `update tenant_users set roles = roles || $2::text, updated_at = $4
           where tenant_id = $1 and id = any ($3::uuid[]) and status <> 'removed' and not $2 = any (roles)
           ${CHANGED}`,
    values: [tenantId, role, userIds, now],
  })

/** Takes a role from users, with the credentials that name it. Returns those who had it. */
export const takeRole = (
  tx: Transaction,
  tenantId: string,
  role: string,
  userIds: readonly string[],
  now: Date,
) =>
  allRows<RoleChanged>(ending(tx, 'user.role_lost'), {
    name: 'scim_group.take_role',
    text: `update tenant_users set roles = array_remove(roles, $2::text), updated_at = $4
           where tenant_id = $1 and id = any ($3::uuid[]) and $2 = any (roles)
           ${CHANGED}`,
    values: [tenantId, role, userIds, now],
  })

/** How many of these users the tenant has, without removed ones. */
export const countTenantUsers = (tx: Transaction, tenantId: string, userIds: readonly string[]) =>
  onlyValue<number>(tx, {
    name: 'scim_group.count_users',
    text: `select count(*) as count from tenant_users
           where tenant_id = $1 and id = any ($2::uuid[]) and status <> 'removed'`,
    values: [tenantId, userIds],
  })
