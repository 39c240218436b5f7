/** Owners and operators who lost their sign-in methods. Accounts belong to no tenant, so all statements cross tenants. */
import type { Email } from '../../../actors/domain/email.js'
import { allRows, allValues, firstRow, type Transaction } from '../../platform/sql.js'

type RecoverableAccount = {
  readonly id: string
  readonly email: Email
  /** Owns an organization, or administers the deployment. */
  readonly isOwner: boolean
}

/** The active account of an address. */
export const findRecoverableAccount = (tx: Transaction, email: Email) =>
  firstRow<RecoverableAccount>(tx, {
    name: 'recovery.account',
    text: `select a.id, a.email,
             exists (select from organization_members m where m.member_type = 'account'
               and m.member_id = a.id and m.role = 'owner')
             or exists (select from deployment_operators d where d.account_id = a.id) as "isOwner"
           from accounts a where a.email_key = lower($1) and a.status = 'active'`,
    values: [email],
  })

type RecoveryPlace = {
  readonly tenantId: string
  readonly tenantSlug: string
  readonly tenantName: string
  readonly tenantSettings: Readonly<Record<string, unknown>>
  /** The subject of the account's user. */
  readonly sub: string
}

/** The active tenants where an account may sign in. Tenants of organizations that it owns come first. */
export const listRecoveryPlaces = (tx: Transaction, accountId: string) =>
  allRows<RecoveryPlace>(tx, {
    name: 'recovery.places',
    text: `select t.id as "tenantId", t.slug as "tenantSlug", t.name as "tenantName",
             t.settings as "tenantSettings", u.sub
           from tenant_users u join tenants t on t.id = u.tenant_id
             left join organization_members m on m.organization_id = t.organization_id
               and m.member_type = 'account' and m.member_id = u.account_id
           where u.account_id = $1 and u.status in ('active', 'pre_provisioned')
             and t.status = 'active'
           order by coalesce(m.role = 'owner', false) desc, t.control_plane desc, t.created_at, t.id`,
    values: [accountId],
  })

/** Verified addresses of the other owners of the organizations that an account owns. */
export const listFellowOwners = (tx: Transaction, accountId: string) =>
  allValues<Email>(tx, {
    name: 'recovery.fellow_owners',
    text: `select distinct a.email from organization_members own
             join organization_members m on m.organization_id = own.organization_id
               and m.member_type = 'account' and m.role = 'owner' and m.member_id <> $1
             join accounts a on a.id = m.member_id and a.status = 'active' and a.email_verified
           where own.member_type = 'account' and own.member_id = $1 and own.role = 'owner'
           order by a.email`,
    values: [accountId],
  })
