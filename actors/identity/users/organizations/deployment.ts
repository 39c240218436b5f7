/** Organizations, environments and accounts of the deployment, as its operators see them. */
import { listOrganizationRows } from '../../../../storage/identity/organizations.js'
import { findAccountRecord } from '../../../../storage/identity/suspensions.js'
import { listEnvironments } from '../../../../storage/identity/tenants.js'
import { isUuid } from '../../../domain/ids.js'
import { listed } from '../../../platform/paging.js'
import { tenantRecord } from './creation.js'
import type { Handling } from './needs.js'

export const listDeploymentOrganizations: Handling<'listDeploymentOrganizations'> = async (
  { database },
  { limit, after },
  context,
) => {
  const rows = await database.system((tx) => listOrganizationRows(tx, limit + 1, after), context)
  return listed(
    rows.map((row) => ({ ...row, role: null })),
    limit,
  )
}

export const listDeploymentTenants: Handling<'listDeploymentTenants'> = async (
  { database },
  { limit, after },
  context,
) => {
  const rows = await database.system((tx) => listEnvironments(tx, limit + 1, after), context)
  return listed(rows.map(tenantRecord), limit)
}

export const findAccounts: Handling<'findAccounts'> = async ({ database }, by, context) => {
  const found = await database.system((tx) => findAccountRecord(tx, by), context)
  return { tag: 'listed', accounts: found === undefined ? [] : [found] }
}

export const readAccount: Handling<'readAccount'> = async (
  { database },
  { accountId: id },
  context,
) => {
  const account = isUuid(id)
    ? await database.system((tx) => findAccountRecord(tx, { id }), context)
    : undefined
  return account === undefined ? { tag: 'unknown_account' } : { tag: 'found', account }
}
