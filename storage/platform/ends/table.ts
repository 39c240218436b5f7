/**
 * What ends with what, as one table (docs/concepts/ends.md). `ending` runs its rows in the transaction of the change.
 *
 * A row is a statement after the change, not a part of it: the change can wait for a lock, and the row must see what was
 * committed in that time. It reads in the database whether, when and why the thing ended, so it does nothing for one that
 * did not, and nothing twice.
 */
import { LOOKED_UP } from '../sql.js'

/** The NOTIFY channel of logout tokens to deliver (storage/oauth/logouts.ts). */
export const LOGOUTS_CHANNEL = 'svc_logouts'

/**
 * The changes that end something: what a reader calls them, and the writes that are such a change. The test of this folder
 * finds these writes in all statements.
 */
export const ENDINGS = {
  'account.suspended': {
    when: 'an account is suspended',
    writes: ['update accounts.status'],
  },
  'user.ended': {
    when: 'a user is suspended or removed',
    writes: ['update tenant_users.status', 'update tenant_users.account_active'],
  },
  'user.role_lost': {
    when: 'a user loses a role',
    writes: ['update tenant_users.roles'],
  },
  'user.deleted': {
    when: 'the account of an old guest is deleted',
    writes: ['delete accounts', 'delete tenant_users'],
  },
  'tenant.suspended': {
    when: 'a tenant is suspended, or moves to a suspended organization',
    writes: ['update tenants.suspended_at'],
  },
  'organization.suspended': {
    when: 'an organization is suspended',
    writes: ['update organizations.status'],
  },
  'agent.suspended': {
    when: 'the home tenant suspends an agent',
    writes: ['update agents.status'],
  },
  'agent.suspended_in_tenant': {
    when: 'another tenant suspends an agent',
    writes: ['insert agent_suspensions'],
  },
  'agent.deleted': {
    when: 'an agent is deleted',
    writes: ['delete agents'],
  },
  'delegation.ended': {
    when: 'a delegation ends',
    writes: ['update delegations.revoked_at', 'delete delegations'],
  },
  'grant.revoked': {
    when: 'a grant of the vault is revoked',
    writes: ['update vault_grants.revoked_at'],
  },
  'browser_session.ended': {
    when: 'a browser session ends',
    writes: ['update browser_sessions.ended_at', 'delete browser_sessions'],
  },
  'credential.revoked': {
    when: 'an issued credential is revoked',
    writes: ['update issued_credentials.revoked_at', 'delete issued_credentials'],
  },
} as const satisfies Readonly<
  Record<string, { readonly when: string; readonly writes: readonly string[] }>
>

export type Ending = keyof typeof ENDINGS

type End = {
  readonly on: Ending
  /** What ends. */
  readonly ends: string
  /** The stored reason. */
  readonly reason: string
  /** Where it is recorded. */
  readonly recorded: string
  /** What the end of these things ends. The statement returns their keys. */
  readonly next?: Ending
  /** The channel that the end of something wakes. */
  readonly wakes?: string
  readonly name: string
  /**
   * `$1` and `$2` are the tenants and ids of what the change concerns, as `k`. It returns the keys of what tokens depend on.
   */
  readonly text: string
}

const KEYS = 'unnest($1::uuid[], $2::uuid[]) with ordinality k (tenant_id, id, place)'
const SUBJECTS = 'unnest($1::uuid[], $2::text[]) with ordinality k (tenant_id, sub, place)'
const EVENT_OF_USE_CASE = '`admin.delegation.revoked`, appended by the use case'
const IN_LIST = '`revoked_at` and `revoked_reason` of the credential'
const CREDENTIALS = 'returning c.tenant_id as "tenantId", c.id'
const DELEGATIONS = 'returning d.tenant_id as "tenantId", d.id'
const SESSIONS = 'returning s.tenant_id as "tenantId", s.id'
/** The applications of sessions `s` get logout tokens. */
const LOGOUTS = {
  ends: 'sign-ins at applications with a `backchannel_logout_uri`',
  reason: 'none',
  recorded: 'a logout token, or `session.logout.undelivered`',
  wakes: LOGOUTS_CHANNEL,
} as const
const LOG_OUT = 'update session_applications s set ended_at = now(), due_at = now()'
const LOGGED_OUT = 'and s.ended_at is null returning s.tenant_id as "tenantId", s.session_id as id'
const logoutsOfTenants = (on: Ending, name: string, column: string): End => ({
  on,
  ...LOGOUTS,
  name,
  text: `${LOG_OUT}
           from ${KEYS} join tenants t on ${column} = k.id
           where ${LOOKED_UP} and t.status <> 'active' and s.tenant_id = t.id ${LOGGED_OUT}`,
})

/** The SSH certificates `c` that are revoked with something: hosts refuse them. */
const certificates = (
  on: Ending,
  { name, reason, of, where }: { name: string; reason: string; of: string; where: string },
): End => ({
  on,
  ends: `SSH certificates ${of}`,
  reason: `\`${reason}\``,
  recorded: 'the revocation list of the authority',
  name: `ends.ssh_certificates_of_${name}`,
  text: `update ssh_certificates c set revoked_at = now(), revoked_reason = '${reason}'
           from ${KEYS} ${where} and c.revoked_at is null`,
})

/** The rows of one change run in this order. */
export const ENDS: readonly End[] = [
  {
    on: 'account.suspended',
    ends: 'issued credentials of its users in all tenants',
    reason: '`user_suspended`',
    recorded: IN_LIST,
    next: 'credential.revoked',
    name: 'ends.credentials_of_account',
    text: `update issued_credentials c set revoked_at = now(), revoked_reason = 'user_suspended'
           from ${KEYS} join accounts a on a.id = k.id join tenant_users u on u.account_id = a.id
           where ${LOOKED_UP} and a.status <> 'active'
             and c.tenant_id = u.tenant_id and c.subject = u.sub and c.revoked_at is null ${CREDENTIALS}`,
  },
  {
    on: 'account.suspended',
    ...LOGOUTS,
    name: 'ends.logouts_of_account',
    text: `${LOG_OUT}
           from ${KEYS} join accounts a on a.id = k.id join tenant_users u on u.account_id = a.id
           where ${LOOKED_UP} and a.status <> 'active'
             and s.tenant_id = u.tenant_id and s.subject = u.sub ${LOGGED_OUT}`,
  },
  {
    on: 'user.ended',
    ends: 'issued credentials',
    reason: '`user_suspended`, `user_removed`',
    recorded: IN_LIST,
    next: 'credential.revoked',
    name: 'ends.credentials_of_user',
    text: `update issued_credentials c set revoked_at = now(),
             revoked_reason = 'user_' || case u.status when 'removed' then 'removed' else 'suspended' end
           from ${KEYS} join tenant_users u on u.tenant_id = k.tenant_id and u.id = k.id
           where ${LOOKED_UP} and (u.status in ('removed', 'suspended') or not u.account_active)
             and c.tenant_id = u.tenant_id and c.subject = u.sub and c.revoked_at is null ${CREDENTIALS}`,
  },
  {
    on: 'user.ended',
    ends: 'delegations',
    reason: '`user_suspended`, `user_removed`',
    recorded: EVENT_OF_USE_CASE,
    next: 'delegation.ended',
    name: 'ends.delegations_of_user',
    text: `update delegations d set revoked_at = now(), revoked_reason = 'user_' || u.status
           from ${KEYS} join tenant_users u on u.tenant_id = k.tenant_id and u.id = k.id
           where ${LOOKED_UP} and u.status in ('removed', 'suspended')
             and d.tenant_id = u.tenant_id and d.subject = u.sub and d.revoked_at is null ${DELEGATIONS}`,
  },
  {
    on: 'user.ended',
    ends: 'the SCIM record of a removed user',
    reason: 'none: it is deleted',
    recorded: '`tenant_user.removed`, appended by the use case',
    name: 'ends.scim_user',
    text: `delete from scim_users x
           using ${KEYS} join tenant_users u on u.tenant_id = k.tenant_id and u.id = k.id
           where ${LOOKED_UP} and u.status = 'removed' and x.tenant_id = u.tenant_id and x.user_id = u.id`,
  },
  {
    on: 'user.ended',
    ...LOGOUTS,
    name: 'ends.logouts_of_user',
    text: `${LOG_OUT}
           from ${KEYS} join tenant_users u on u.tenant_id = k.tenant_id and u.id = k.id
           where ${LOOKED_UP} and (u.status in ('removed', 'suspended') or not u.account_active)
             and s.tenant_id = u.tenant_id and s.subject = u.sub ${LOGGED_OUT}`,
  },
  {
    on: 'user.role_lost',
    ends: 'issued credentials that name the role',
    reason: '`role_lost`',
    recorded: IN_LIST,
    next: 'credential.revoked',
    name: 'ends.credentials_of_role',
    text: `update issued_credentials c set revoked_at = now(), revoked_reason = 'role_lost'
           from ${KEYS} join tenant_users u on u.tenant_id = k.tenant_id and u.id = k.id
           where ${LOOKED_UP} and c.tenant_id = u.tenant_id and c.subject = u.sub and c.revoked_at is null
             and not c.roles <@ u.roles ${CREDENTIALS}`,
  },
  {
    on: 'user.deleted',
    ends: 'issued credentials',
    reason: '`user_removed`',
    recorded: IN_LIST,
    next: 'credential.revoked',
    name: 'ends.credentials_of_subject',
    text: `update issued_credentials c set revoked_at = now(), revoked_reason = 'user_removed'
           from ${SUBJECTS}
           where ${LOOKED_UP} and c.tenant_id = k.tenant_id and c.subject = k.sub and c.revoked_at is null
             and not exists (select from tenant_users u where u.tenant_id = k.tenant_id and u.sub = k.sub)
           ${CREDENTIALS}`,
  },
  {
    on: 'user.deleted',
    ...LOGOUTS,
    name: 'ends.logouts_of_subject',
    text: `${LOG_OUT}
           from ${SUBJECTS}
           where ${LOOKED_UP} and s.tenant_id = k.tenant_id and s.subject = k.sub
             and not exists (select from tenant_users u where u.tenant_id = k.tenant_id and u.sub = k.sub)
             ${LOGGED_OUT}`,
  },
  logoutsOfTenants('tenant.suspended', 'ends.logouts_of_tenant', 't.id'),
  logoutsOfTenants('organization.suspended', 'ends.logouts_of_organization', 't.organization_id'),
  {
    on: 'agent.suspended',
    ends: 'delegations in all tenants',
    reason: '`agent_suspended`',
    recorded: EVENT_OF_USE_CASE,
    next: 'delegation.ended',
    name: 'ends.delegations_of_agent',
    text: `update delegations d set revoked_at = now(), revoked_reason = 'agent_suspended'
           from ${KEYS} join agents a on a.id = k.id
           where ${LOOKED_UP} and a.status <> 'active' and d.agent_id = a.id and d.revoked_at is null ${DELEGATIONS}`,
  },
  certificates('agent.suspended', {
    name: 'agent',
    reason: 'agent_suspended',
    of: 'of the agent in all tenants',
    where: `join agents a on a.id = k.id
           where ${LOOKED_UP} and a.status <> 'active' and c.agent_id = a.id::text`,
  }),
  {
    on: 'agent.suspended_in_tenant',
    ends: 'delegations in that tenant',
    reason: '`agent_suspended`',
    recorded: EVENT_OF_USE_CASE,
    next: 'delegation.ended',
    name: 'ends.delegations_in_tenant',
    text: `update delegations d set revoked_at = now(), revoked_reason = 'agent_suspended'
           from ${KEYS} join agent_suspensions x on x.tenant_id = k.tenant_id and x.agent_id = k.id
           where ${LOOKED_UP} and d.tenant_id = x.tenant_id and d.agent_id = x.agent_id
             and d.revoked_at is null ${DELEGATIONS}`,
  },
  certificates('agent.suspended_in_tenant', {
    name: 'agent_in_tenant',
    reason: 'agent_suspended',
    of: 'of the agent in that tenant',
    where: `join agent_suspensions x on x.tenant_id = k.tenant_id and x.agent_id = k.id
           where ${LOOKED_UP} and c.tenant_id = x.tenant_id and c.agent_id = x.agent_id::text`,
  }),
  {
    on: 'agent.deleted',
    ends: 'delegations in all tenants',
    reason: '`agent_deleted`',
    recorded: EVENT_OF_USE_CASE,
    next: 'delegation.ended',
    name: 'ends.delegations_of_deleted_agent',
    text: `update delegations d set revoked_at = now(), revoked_reason = 'agent_deleted'
           from ${KEYS}
           where ${LOOKED_UP} and d.agent_id = k.id and d.revoked_at is null
             and not exists (select from agents a where a.id = k.id) ${DELEGATIONS}`,
  },
  certificates('agent.deleted', {
    name: 'deleted_agent',
    reason: 'agent_deleted',
    of: 'of the agent in all tenants',
    where: `where ${LOOKED_UP} and c.agent_id = k.id::text and not exists (select from agents a where a.id = k.id)`,
  }),
  certificates('delegation.ended', {
    name: 'delegation',
    reason: 'delegation_ended',
    of: 'that a grant to the delegation signed',
    where: `join delegations d on d.tenant_id = k.tenant_id and d.id = k.id
           where ${LOOKED_UP} and d.revoked_at is not null and c.tenant_id = d.tenant_id and c.delegation_id = d.id`,
  }),
  certificates('grant.revoked', {
    name: 'grant',
    reason: 'grant_revoked',
    of: 'that the grant signed',
    where: `join vault_grants g on g.tenant_id = k.tenant_id and g.id = k.id
           where ${LOOKED_UP} and g.revoked_at is not null and c.tenant_id = g.tenant_id and c.grant_id = g.id`,
  }),
  {
    on: 'delegation.ended',
    ends: 'issued credentials of its agent for its user',
    reason: '`delegation_ended`',
    recorded: IN_LIST,
    next: 'credential.revoked',
    name: 'ends.credentials_of_delegation',
    text: `update issued_credentials c set revoked_at = d.revoked_at, revoked_reason = 'delegation_ended'
           from ${KEYS} join delegations d on d.tenant_id = k.tenant_id and d.id = k.id
           where ${LOOKED_UP} and d.revoked_at is not null
             and c.tenant_id = d.tenant_id and c.delegation_id = d.id and c.revoked_at is null ${CREDENTIALS}`,
  },
  {
    on: 'delegation.ended',
    ends: 'grants of connected accounts of its user to its agent, with the last delegation between them',
    reason: 'none',
    recorded: '`revoked_at` of the grant',
    name: 'ends.connection_grants_of_delegation',
    text: `update vault_grants g set revoked_at = d.revoked_at
           from ${KEYS} join delegations d on d.tenant_id = k.tenant_id and d.id = k.id
             join vault_connections c on c.tenant_id = d.tenant_id and c.subject = d.subject and c.agent_id = d.agent_id
           where ${LOOKED_UP} and d.revoked_at is not null
             and g.tenant_id = c.tenant_id and g.id = c.grant_id and g.revoked_at is null
             and not exists (select from delegations o where o.tenant_id = d.tenant_id and o.subject = d.subject
               and o.agent_id = d.agent_id and o.revoked_at is null and o.expires_at > now())
           returning g.tenant_id as "tenantId", g.id`,
  },
  {
    on: 'delegation.ended',
    ends: 'its session, with access and refresh tokens',
    reason: 'the reason of the delegation',
    recorded: '`ended_reason` of the session',
    name: 'ends.session_of_delegation',
    text: `update sessions s set ended_at = d.revoked_at, ended_reason = d.revoked_reason
           from ${KEYS} join delegations d on d.tenant_id = k.tenant_id and d.id = k.id
           where ${LOOKED_UP} and d.revoked_at is not null
             and s.tenant_id = d.tenant_id and s.id = d.id and s.ended_at is null ${SESSIONS}`,
  },
  {
    on: 'browser_session.ended',
    ends: 'access and refresh tokens issued in it and in those that it replaced. With `logout_revokes_offline`, offline tokens too',
    reason: 'the reason of the browser session',
    recorded: '`ended_reason` of the sessions',
    name: 'ends.tokens_of_browser_session',
    text: `with recursive earlier (tenant_id, id, ended_at, ended_reason) as (
             select b.tenant_id, b.id, b.ended_at, b.ended_reason
             from ${KEYS} join browser_sessions b on b.tenant_id = k.tenant_id and b.id = k.id
             where ${LOOKED_UP} and b.ended_at is not null and b.ended_reason <> 'replaced'
             union
             select b.tenant_id, b.id, e.ended_at, e.ended_reason
             from earlier e join browser_sessions b on b.tenant_id = e.tenant_id and b.replaced_by = e.id)
           update sessions s set ended_at = x.ended_at, ended_reason = x.ended_reason
           from (
             select tenant_id, id, ended_at, ended_reason from earlier
             union
             select f.tenant_id, f.session_id, e.ended_at, e.ended_reason
             from earlier e
               join refresh_families f on f.tenant_id = e.tenant_id and f.browser_session_id = e.id
             where exists (select from tenants t where t.id = e.tenant_id
               and t.settings -> 'logout_revokes_offline' = 'true')) x
           where s.tenant_id = x.tenant_id and s.id = x.id and s.ended_at is null ${SESSIONS}`,
  },
  {
    on: 'browser_session.ended',
    ...LOGOUTS,
    name: 'ends.logouts_of_browser_session',
    text: `with recursive earlier (tenant_id, id) as (
             select b.tenant_id, b.id
             from ${KEYS} join browser_sessions b on b.tenant_id = k.tenant_id and b.id = k.id
             where ${LOOKED_UP} and b.ended_at is not null and b.ended_reason <> 'replaced'
             union
             select b.tenant_id, b.id
             from earlier e join browser_sessions b on b.tenant_id = e.tenant_id and b.replaced_by = e.id)
           ${LOG_OUT} from earlier e
           where s.tenant_id = e.tenant_id and s.session_id = e.id ${LOGGED_OUT}`,
  },
  {
    on: 'credential.revoked',
    ends: 'its entry in the status list becomes INVALID',
    reason: 'none',
    recorded: 'the status list',
    name: 'ends.status_of_credential',
    text: `update status_entries e set invalid_at = c.revoked_at
           from ${KEYS} join issued_credentials c on c.tenant_id = k.tenant_id and c.id = k.id
           where ${LOOKED_UP} and c.revoked_at is not null and e.tenant_id = c.tenant_id
             and e.list_id = c.list_id and e.idx = c.idx and e.invalid_at is null`,
  },
]

/** Triggers that write other rows than their own, and why they are no rows of the table. */
export const TRIGGERS: Readonly<Record<string, string>> = {
  accounts_credentials:
    'an address that is changed or no longer proved ends VerifiedEmail credentials, with their status entries. No statement of the service takes a proved address away: the trigger is for those who do it with SQL',
  accounts_tenant_users: 'a copy: `account_active` of users is the status of their account',
  applications_origins_added: 'a copy: the origins of an application',
  applications_origins_changed: 'a copy: the origins of an application',
  billing_plans_tenants: 'a copy: `billing` of tenants has the features of the plan',
  event_sequences_sinks: 'a copy: what each event sink has to send',
  ledger_balance: 'a sum: the balance of a book',
  organizations_billing: 'a copy: `billing` of tenants has the plan of the organization',
  organizations_tenants:
    'a copy: `status` and support contact of tenants follow their organization',
}
