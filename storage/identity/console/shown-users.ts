/** Users as lists of other objects name them. */
import { allRows, type Transaction } from '../../platform/sql.js'
import { SHOWN_EMAIL, SHOWN_NAME } from '../tenant-users.js'

type ShownUser = {
  readonly sub: string
  readonly id: string
  readonly email: string
  readonly displayName: string
}

/** The users of some subjects of a tenant. Accounts are global, so the transaction crosses tenants. */
export const shownUsers = (tx: Transaction, tenantId: string, subjects: readonly string[]) =>
  allRows<ShownUser>(tx, {
    name: 'tenant_user.shown',
    text: `select u.sub, u.id, ${SHOWN_EMAIL} as email, ${SHOWN_NAME} as "displayName"
           from tenant_users u join accounts a on a.id = u.account_id
           where u.tenant_id = $1 and u.sub = any($2::text[])`,
    values: [tenantId, subjects],
  })
