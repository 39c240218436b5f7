/** People who administer the deployment. Accounts belong to no tenant, so all statements cross tenants. */
import type { Email } from '../../../actors/domain/email.js'
import { execute, firstRow, firstValue, type Transaction } from '../../platform/sql.js'

/** The scopes of an operator, and locks them. Empty if the account is no operator. */
export const lockOperatorScopes = async (tx: Transaction, accountId: string) =>
  (await firstValue<string[]>(tx, {
    name: 'deployment_operator.lock',
    text: 'select scopes from deployment_operators where account_id = $1 for update',
    values: [accountId],
  })) ?? []

/** The scopes of an operator in a tenant: none outside of the control plane. */
export const findOperatorScopes = async (tx: Transaction, tenantId: string, accountId: string) =>
  (await firstValue<string[]>(tx, {
    name: 'deployment_operator.scopes',
    text: `select o.scopes from deployment_operators o
           join accounts a on a.id = o.account_id and a.status = 'active'
           join tenants t on t.id = $1 and t.control_plane
           where o.account_id = $2`,
    values: [tenantId, accountId],
  })) ?? []

/** Replaces the scopes of an operator. Without scopes the account is no operator. */
export const setOperatorScopes = (
  tx: Transaction,
  accountId: string,
  scopes: readonly string[],
  now: Date,
) =>
  execute(
    tx,
    scopes.length === 0
      ? {
          name: 'deployment_operator.remove',
          text: 'delete from deployment_operators where account_id = $1',
          values: [accountId],
        }
      : {
          name: 'deployment_operator.set',
          text: `insert into deployment_operators (account_id, scopes, appointed_at) values ($1, $2, $3)
                 on conflict (account_id) do update set scopes = excluded.scopes`,
          values: [accountId, scopes, now],
        },
  )

type OperatorAccount = { readonly id: string; readonly emailVerified: boolean }

/** The active account of an address. */
export const findOperatorAccount = (tx: Transaction, email: Email) =>
  firstRow<OperatorAccount>(tx, {
    name: 'deployment_operator.account',
    text: `select id, email_verified as "emailVerified" from accounts
           where email_key = lower($1) and status = 'active'`,
    values: [email],
  })
