/** Policies of identity assertions that the service issues (docs/guides/oauth/identity-assertions.md). */
import {
  type IdentityAssertionPolicy,
  identityAssertionPolicy,
} from '../../actors/domain/entities/identity-assertion-policy.js'
import { entityTable } from '../platform/portable/entity-table.js'
import { firstRow, firstValue, type Transaction } from '../platform/sql.js'

// `listIdentityAssertionPolicies`, `createIdentityAssertionPolicy`, `getIdentityAssertionPolicy`,
// `updateIdentityAssertionPolicy`, `deleteIdentityAssertionPolicy`.
export const identityAssertionPolicyTable = entityTable(identityAssertionPolicy)

/** The policy of an application for an audience, or else another of its policies. Undefined if it has none. */
export const findPolicyFor = (
  tx: Transaction,
  tenantId: string,
  clientId: string,
  audience: string,
) =>
  firstRow<IdentityAssertionPolicy>(tx, {
    name: 'identity_assertion_policy.for_audience',
    text: `select ${identityAssertionPolicyTable.columns} from identity_assertion_policies
           where tenant_id = $1 and client_id = $2 order by audience = $3 desc limit 1`,
    values: [tenantId, clientId, audience],
  })

/** Whether an active application is confidential. Undefined for another id. */
export const findPolicyClient = (tx: Transaction, tenantId: string, clientId: string) =>
  firstValue<boolean>(tx, {
    name: 'identity_assertion_policy.client',
    text: `select client_type = 'confidential' as confidential from applications
           where tenant_id = $1 and id = $2 and status = 'active'`,
    values: [tenantId, clientId],
  })

/** True if a write failed because the application has a policy for the audience. */
export const isPolicyTaken = (error: unknown): boolean =>
  (error as { readonly constraint?: unknown } | null)?.constraint ===
  'identity_assertion_policies_one'
