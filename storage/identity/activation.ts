/** What the bootstrap of a sandbox created, and its removal when the sandbox becomes production. */
import { numberEvents } from '../platform/event-numbers.js'
import { allRows, allValues, changedRows, execute, type Transaction } from '../platform/sql.js'

/** The longest lifetime of an access token: of settings and of API resources. */
const ACCESS_TOKEN_LIFETIME_MAX = '1 day'

export type FixtureRow = {
  readonly id: string
  readonly tenantId: string
  readonly accountId: string
  readonly sub: string
}

/** Locks and returns a tenant's fixture users, including suspended but not removed ones. */
export const lockFixtures = (tx: Transaction, tenantId: string) =>
  allRows<FixtureRow>(tx, {
    name: 'activation.fixtures',
    text: `select id, tenant_id as "tenantId", account_id as "accountId", sub from tenant_users
           where tenant_id = $1 and fixture and status <> 'removed'
           order by created_at, id for update`,
    values: [tenantId],
  })

/** Removes password and organization from fixture accounts. Accounts are global. */
export const emptyFixtureAccounts = (tx: Transaction, accountIds: readonly string[], now: Date) =>
  execute(tx, {
    name: 'activation.empty_accounts',
    text: `with members as (
             delete from organization_members
             where member_type = 'account' and member_id = any($1::uuid[]))
           update accounts set password_hash = null, updated_at = $2 where id = any($1::uuid[])`,
    values: [accountIds, now],
  })

/**
 * The applications created by the bootstrap, if they have a secret. Locks them. They have exactly the creation time of
 * their tenant, because one transaction with one timestamp created both.
 */
export const lockBootstrapApplications = (tx: Transaction, tenantId: string) =>
  allValues<string>(tx, {
    name: 'activation.applications',
    text: `select a.id from applications a join tenants t on t.id = a.tenant_id
           where a.tenant_id = $1 and a.created_at = t.created_at
             and exists (select from application_secrets s
               where s.tenant_id = a.tenant_id and s.application_id = a.id)
           order by a.id for update of a`,
    values: [tenantId],
  })

/**
 * Revokes the unexpired tokens that applications were issued in their own name. These tokens have no session. Each is
 * found by the audit record of its event, which is committed before it is issued.
 */
export async function revokeServiceTokens(
  tx: Transaction,
  tenantId: string,
  applicationIds: readonly string[],
  now: Date,
): Promise<number> {
  await numberEvents(tx, tenantId)
  return changedRows(tx, {
    name: 'activation.revoke_tokens',
    text: `insert into revoked_tokens (tenant_id, id, revoked_at, expires_at)
           select tenant_id, (resource ->> 'id')::uuid, $3, (data ->> 'expires_at')::timestamptz
           from audit_events
           where tenant_id = $1 and type = 'auth.token.issued'
             and occurred_at > $3::timestamptz - interval '${ACCESS_TOKEN_LIFETIME_MAX}'
             and data ->> 'subject_type' = 'service' and data ->> 'client_id' = any($2::text[])
             and (data ->> 'expires_at')::timestamptz > $3
           on conflict do nothing`,
    values: [tenantId, applicationIds, now],
  })
}

/** Ends the sessions of agents in a tenant in their own name. They must log in again. */
export const endAgentSessionsIn = (tx: Transaction, tenantId: string, reason: string, now: Date) =>
  changedRows(tx, {
    name: 'activation.end_agent_sessions',
    text: `update sessions set ended_at = $3, ended_reason = $2
           where tenant_id = $1 and subject_type = 'agent' and ended_at is null`,
    values: [tenantId, reason, now],
  })

/** Ends the unused invites of a tenant. */
export const endInvites = (tx: Transaction, tenantId: string, now: Date) =>
  changedRows(tx, {
    name: 'activation.end_invites',
    text: `update operator_invites set expires_at = $2
           where tenant_id = $1 and used_at is null and expires_at > $2`,
    values: [tenantId, now],
  })
