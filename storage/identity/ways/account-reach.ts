/** Where an account reaches besides one tenant. Accounts are global, so the transaction crosses tenants. */
import { onlyRow, type Transaction } from '../../platform/sql.js'

type AccountReach = {
  /** The account is a user of another tenant. */
  readonly isElsewhere: boolean
  /** One of these places is outside of the organization of the tenant. The control plane is. */
  readonly isForeign: boolean
  /** The account owns another tenant or an organization that the caller does not own. */
  readonly ownsMore: boolean
}

/**
 * An invitation that the person has not accepted reaches nothing, so a tenant cannot block another one by inviting its
 * people. A suspended user counts: that tenant may lift the suspension.
 */
const REACHES = `(u.status in ('pre_provisioned', 'active')
    or (u.status = 'suspended' and u.suspended_from is distinct from 'invited'))`

/** @param callerSub subject of the caller in the tenant. */
export const findAccountReach = (
  tx: Transaction,
  tenantId: string,
  accountId: string,
  callerSub: string,
) =>
  onlyRow<AccountReach>(tx, {
    name: 'account.reach',
    text: `with caller as (select account_id from tenant_users where tenant_id = $1 and sub = $3),
             places as (
               select t.organization_id, true as is_tenant, 'owner' = any (u.roles)
                   and not exists (select from tenant_users c join caller on c.account_id = caller.account_id
                     where c.tenant_id = u.tenant_id and c.status = 'active' and 'owner' = any (c.roles)) as owns_more
                 from tenant_users u join tenants t on t.id = u.tenant_id
                 where u.account_id = $2 and u.tenant_id <> $1 and ${REACHES}
               union all
               select m.organization_id, false, m.role = 'owner'
                   and not exists (select from organization_members c join caller on c.member_id = caller.account_id
                     where c.organization_id = m.organization_id and c.member_type = 'account' and c.role = 'owner')
                 from organization_members m where m.member_type = 'account' and m.member_id = $2)
           select coalesce(bool_or(p.is_tenant), false) as "isElsewhere",
             coalesce(bool_or(h.organization_id is null
               or p.organization_id is distinct from h.organization_id), false) as "isForeign",
             coalesce(bool_or(p.owns_more), false) as "ownsMore"
           from tenants h cross join places p where h.id = $1`,
    values: [tenantId, accountId, callerSub],
  })
