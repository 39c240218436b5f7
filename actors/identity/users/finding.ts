/** The user that an administrator names. */
import {
  findTenantUser,
  holdTenantUser,
  type TenantUserRow,
} from '../../../storage/identity/tenant-users.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { Caller } from '../../domain/audit.js'
import { isUuid } from '../../domain/ids.js'
import type { OneUser } from './protocol.js'
import { isProtectedOwner } from '../../domain/people/role-powers.js'

/** The user, unless removed: removed users appear only in the list. The transaction crosses tenants. */
export async function findUser(
  tx: Transaction,
  { caller, userId }: OneUser,
): Promise<TenantUserRow | undefined> {
  const user = isUuid(userId)
    ? await findTenantUser(tx, caller.principal.tenantId, userId)
    : undefined
  return user?.status === 'removed' ? undefined : user
}

/** The same, locked until the transaction ends. */
export async function holdUser(
  tx: Transaction,
  message: OneUser,
): Promise<TenantUserRow | undefined> {
  const { caller, userId } = message
  if (isUuid(userId)) await holdTenantUser(tx, caller.principal.tenantId, userId)
  return findUser(tx, message)
}

/** True if the user is an owner whom the caller may not change. */
export function isAbove({ roles }: TenantUserRow, { principal }: Caller): boolean {
  return isProtectedOwner(roles, principal.scopes)
}
