/** Access policies of tenants (docs/reference/oauth.md, Access policies). */
import {
  type AccessPolicy,
  accessPolicy,
  levelOf,
} from '../../actors/domain/entities/access-policy.js'
import { entityTable } from '../platform/portable/entity-table.js'
import { allRows, type Transaction } from '../platform/sql.js'

// `listAccessPolicies`, `createAccessPolicy`, `readAccessPolicy`,
// `updateAccessPolicy`, `deleteAccessPolicy`.
export const accessPolicyTable = entityTable(
  accessPolicy,
  { required_level: ({ requiredAal }) => levelOf(requiredAal) },
  { required_aal: `'aal' || required_level` },
)

/** The policies of a tenant that are in force, oldest first. */
export const accessPoliciesInForce = (tx: Transaction, tenantId: string) =>
  allRows<AccessPolicy>(tx, {
    name: 'access_policy.in_force',
    text: `select ${accessPolicyTable.columns} from access_policies where tenant_id = $1 and enabled
           order by created_at, id`,
    values: [tenantId],
  })
