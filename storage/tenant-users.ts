/** A human in one tenant: status, roles and a subject that says nothing elsewhere. */
import type { Transaction } from './sql.js'

export type NewTenantUser = {
  tenantId: string
  id: string
  accountId: string
  /** Pairwise: made for this tenant alone. */
  sub: string
  status: 'invited' | 'pre_provisioned' | 'active'
  roles: readonly string[]
  fixture: boolean
  createdAt: Date
}

export async function insertTenantUser(tx: Transaction, user: NewTenantUser): Promise<void> {
  await tx.query({
    name: 'tenant_user.insert',
    text: `insert into tenant_users (tenant_id, id, account_id, sub, status, roles, fixture,
             created_at, updated_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $8)`,
    values: [
      user.tenantId,
      user.id,
      user.accountId,
      user.sub,
      user.status,
      user.roles,
      user.fixture,
      user.createdAt,
    ],
  })
}
