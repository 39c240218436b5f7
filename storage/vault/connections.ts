/** Connected accounts of people, and the requests to connect them. */
import type { ConnectionRow } from '../../actors/domain/vault/connections.js'
import { personInForce } from '../platform/in-force.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'
import {
  allRows,
  changedRows,
  execute,
  firstRow,
  isChanged,
  onlyRow,
  onlyValue,
  type Transaction,
} from '../platform/sql.js'

const NAMES = `tenant_id id connector_id connector user_id subject requester_type requester_id agent_id status scopes
  reason return_to max_bytes grant_expires_at account_label credential_id grant_id code code_expires_at created_at
  updated_at`
const COLUMNS = columnsOf(NAMES)

/** Associated data of a sealed PKCE verifier, and of what the person agreed to. */
export const connectionVerifierContext = (id: string): string => `vault_connection:${id}:verifier`

/**
 * How many connections of an agent and of the tenant were requested since a time. Holds the tenant until the transaction
 * ends, so that requests at the same time cannot exceed a limit.
 */
export async function countConnectionsInTurn(
  tx: Transaction,
  tenantId: string,
  agentId: string | null,
  since: Date,
) {
  await execute(tx, {
    name: 'connection.turn',
    text: 'select from tenants where id = $1 for no key update',
    values: [tenantId],
  })
  return onlyRow<{ readonly ofAgent: number; readonly ofTenant: number }>(tx, {
    name: 'connection.count',
    text: `select count(*) filter (where agent_id = $2)::integer as "ofAgent", count(*)::integer as "ofTenant"
           from vault_connections where tenant_id = $1 and created_at > $3`,
    values: [tenantId, agentId, since],
  })
}

/** Inserts a pending connection. False: the person has `most` open ones. */
export const insertConnection = (
  tx: Transaction,
  c: Omit<ConnectionRow, 'accountLabel' | 'credentialId' | 'grantId' | 'status' | 'updatedAt'>,
  most: number,
) =>
  isChanged(tx, {
    name: 'connection.insert',
    text: `insert into vault_connections (tenant_id, id, connector_id, connector, user_id, subject, requester_type,
             requester_id, agent_id, status, scopes, reason, return_to, max_bytes, grant_expires_at, code,
             code_expires_at, created_at, updated_at)
           select $1, $2, $3, $4, $5, $6, $7, $8, $9, 'pending', $10, $11, $12, $13, $14, $15, $16, $17::timestamptz, $17
           where (select count(*) from vault_connections
             where tenant_id = $1 and subject = $6 and status = 'pending' and code_expires_at > $17) < $18`,
    values: [
      c.tenantId,
      c.id,
      c.connectorId,
      c.connector,
      c.userId,
      c.subject,
      c.requesterType,
      c.requesterId,
      c.agentId,
      c.scopes,
      c.reason,
      c.returnTo,
      c.maxBytes,
      c.grantExpiresAt,
      c.code,
      c.codeExpiresAt,
      c.createdAt,
      most,
    ],
  })

/** A filter of connections. Null matches all. */
export type ConnectionsOf = {
  readonly subject: string | null
  readonly agentId: string | null
  /** The client that requested it. */
  readonly clientId: string | null
}

const SEEN = `($3::text is null or subject = $3) and ($4::uuid is null or agent_id = $4)
             and ($5::text is null or (requester_type = 'service' and requester_id = $5))`

export const findConnection = (
  tx: Transaction,
  tenantId: string,
  id: string,
  { subject, agentId, clientId }: ConnectionsOf,
) =>
  firstRow<ConnectionRow>(tx, {
    name: 'connection.find',
    text: `select ${COLUMNS} from vault_connections where tenant_id = $1 and id = $2 and ${SEEN}`,
    values: [tenantId, id, subject, agentId, clientId],
  })

/** A page of connections, newest first. */
export const listConnectionRows = (
  tx: Transaction,
  tenantId: string,
  { subject, agentId, clientId }: ConnectionsOf,
  limit: number,
  after: { readonly createdAt: Date; readonly id: string } | null,
) =>
  allRows<ConnectionRow>(tx, {
    name: 'connection.list',
    text: `select ${COLUMNS} from vault_connections
           where tenant_id = $1 and ($2::integer is not null) and ${SEEN}
             and ($6::timestamptz is null or (created_at, id) < ($6, $7::uuid))
           order by created_at desc, id desc limit $2`,
    values: [
      tenantId,
      limit,
      subject,
      agentId,
      clientId,
      after?.createdAt ?? null,
      after?.id ?? null,
    ],
  })

/** Records a poll of a pending connection. False: it came before the interval was over. */
export const pollConnection = (
  tx: Transaction,
  tenantId: string,
  id: string,
  now: Date,
  intervalSecs: number,
) =>
  isChanged(tx, {
    name: 'connection.poll',
    text: `update vault_connections set polled_at = $3
           where tenant_id = $1 and id = $2
             and (polled_at is null or polled_at <= $3::timestamptz - make_interval(secs => $4))`,
    values: [tenantId, id, now, intervalSecs],
  })

/** What the page of a request shows besides the connection and its connector. */
export type ConnectionPage = ConnectionRow & {
  /** The name of the agent or application; null for a deleted one. */
  readonly requesterName: string | null
  readonly agentName: string | null
  readonly tenantName: string
  readonly tenantSettings: Readonly<Record<string, unknown>>
}

const PAGE = `select ${columnsOf(NAMES, 'c')}, t.name as "tenantName", t.settings as "tenantSettings",
             (select a.name from agents a where a.id = c.agent_id) as "agentName",
             case when c.requester_type = 'agent' then (select a.name from agents a where a.id = c.agent_id)
               else (select p.name from applications p where p.tenant_id = c.tenant_id and p.id::text = c.requester_id)
             end as "requesterName"
           from vault_connections c join tenants t on t.id = c.tenant_id and t.status = 'active'`

/** The connection of a code. Crosses tenants: the code determines the tenant. */
export const findConnectionOfCode = (tx: Transaction, code: string) =>
  firstRow<ConnectionPage>(tx, {
    name: 'connection.of_code',
    text: `${PAGE} where c.code = $1`,
    values: [code],
  })

/** The redirect to a provider begins: the state of an earlier one is no longer valid. False: the request is over. */
export const beginConnection = (
  tx: Transaction,
  { tenantId, id }: Pick<ConnectionRow, 'tenantId' | 'id'>,
  redirect: {
    readonly stateSha256: Uint8Array
    readonly sessionId: string
    readonly verifierSealed: Uint8Array
    readonly maxBytes: number | null
    readonly grantExpiresAt: Date | null
    readonly now: Date
  },
) =>
  isChanged(tx, {
    name: 'connection.begin',
    text: `update vault_connections set state_sha256 = $3, session_id = $4, verifier_sealed = $5, max_bytes = $6,
             grant_expires_at = $7, updated_at = $8
           where tenant_id = $1 and id = $2 and code_expires_at > $8
             and status in ('pending', 'needs_reauthorization')`,
    values: [
      tenantId,
      id,
      Buffer.from(redirect.stateSha256),
      redirect.sessionId,
      Buffer.from(redirect.verifierSealed),
      redirect.maxBytes,
      redirect.grantExpiresAt,
      redirect.now,
    ],
  })

/**
 * Takes the state of a redirect, once, in the session that began it. Crosses tenants: the state determines the tenant.
 */
export const takeConnectionState = (
  tx: Transaction,
  stateSha256: Uint8Array,
  sessionId: string,
  now: Date,
) =>
  firstRow<ConnectionRow & { readonly verifierSealed: Uint8Array }>(tx, {
    name: 'connection.take_state',
    text: `with taken as (
             select tenant_id, id, verifier_sealed from vault_connections
             where state_sha256 = $1 and session_id = $2 and code_expires_at > $3
               and status in ('pending', 'needs_reauthorization') for update)
           update vault_connections c set state_sha256 = null, session_id = null, verifier_sealed = null
           from taken where c.tenant_id = taken.tenant_id and c.id = taken.id
           returning ${columnsOf(NAMES, 'c')}, taken.verifier_sealed as "verifierSealed"`,
    values: [Buffer.from(stateSha256), sessionId, now],
  })

/** pending or needs_reauthorization -> active. The code is kept for its page, which shows the result, and opens nothing more. */
export const activateConnection = (
  tx: Transaction,
  { tenantId, id }: Pick<ConnectionRow, 'tenantId' | 'id'>,
  made: {
    readonly credentialId: string
    readonly grantId: string | null
    readonly accountLabel: string | null
    readonly scopes: readonly string[]
    readonly now: Date
  },
) =>
  isChanged(tx, {
    name: 'connection.activate',
    text: `update vault_connections set status = 'active', credential_id = $3, grant_id = coalesce($4, grant_id),
             account_label = coalesce($5, account_label), scopes = $6, updated_at = $7,
             code_expires_at = least(code_expires_at, $7::timestamptz)
           where tenant_id = $1 and id = $2 and status in ('pending', 'needs_reauthorization')`,
    values: [
      tenantId,
      id,
      made.credentialId,
      made.grantId,
      made.accountLabel,
      made.scopes,
      made.now,
    ],
  })

/** Locks a connection until the transaction ends. */
export const lockConnection = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<ConnectionRow>(tx, {
    name: 'connection.lock',
    text: `select ${COLUMNS} from vault_connections where tenant_id = $1 and id = $2 for update`,
    values: [tenantId, id],
  })

/** pending -> denied or expired. A connection that was active before keeps its status, and its request is over. */
export const closeConnectionRequest = (
  tx: Transaction,
  { tenantId, id }: Pick<ConnectionRow, 'tenantId' | 'id'>,
  status: 'denied' | 'expired',
  now: Date,
) =>
  firstRow<ConnectionRow>(tx, {
    name: 'connection.close_request',
    text: `update vault_connections
           set status = case status when 'pending' then $3 else status end,
             state_sha256 = null, session_id = null, verifier_sealed = null,
             code_expires_at = least(code_expires_at, $4::timestamptz), updated_at = $4
           where tenant_id = $1 and id = $2 and status in ('pending', 'needs_reauthorization')
             and ($3 = 'denied' or code_expires_at <= $4)
           returning ${COLUMNS}`,
    values: [tenantId, id, status, now],
  })

/** Any status but an end -> revoked. Undefined: it had ended. */
export const revokeConnectionRow = (tx: Transaction, tenantId: string, id: string, now: Date) =>
  firstRow<ConnectionRow>(tx, {
    name: 'connection.revoke',
    text: `update vault_connections set status = 'revoked', code = null, state_sha256 = null, session_id = null,
             verifier_sealed = null, updated_at = $3
           where tenant_id = $1 and id = $2 and status in ('pending', 'active', 'needs_reauthorization')
           returning ${COLUMNS}`,
    values: [tenantId, id, now],
  })

/** The same of the connection of a credential. */
export const revokeConnectionOf = (
  tx: Transaction,
  tenantId: string,
  credentialId: string,
  now: Date,
) =>
  firstRow<ConnectionRow>(tx, {
    name: 'connection.revoke_of',
    text: `update vault_connections set status = 'revoked', code = null, state_sha256 = null, session_id = null,
             verifier_sealed = null, updated_at = $3
           where tenant_id = $1 and credential_id = $2 and status in ('pending', 'active', 'needs_reauthorization')
           returning ${COLUMNS}`,
    values: [tenantId, credentialId, now],
  })

/** Connections of a connector that have not ended. @param limit null for all. */
export const listOpenConnections = (
  tx: Transaction,
  tenantId: string,
  connectorId: string,
  limit: number | null,
) =>
  allRows<ConnectionRow>(tx, {
    name: 'connection.list_open',
    text: `select ${COLUMNS} from vault_connections
           where tenant_id = $1 and connector_id = $2 and status in ('pending', 'active', 'needs_reauthorization')
           order by credential_id, id limit $3`,
    values: [tenantId, connectorId, limit],
  })

/** active -> needs_reauthorization. */
export const lapseConnection = (
  tx: Transaction,
  tenantId: string,
  credentialId: string,
  now: Date,
) =>
  firstRow<ConnectionRow>(tx, {
    name: 'connection.lapse',
    text: `update vault_connections set status = 'needs_reauthorization', updated_at = $3
           where tenant_id = $1 and credential_id = $2 and status = 'active' returning ${COLUMNS}`,
    values: [tenantId, credentialId, now],
  })

/** The connection of a credential, if it needs the person again. */
export const lapsedConnection = (tx: Transaction, tenantId: string, credentialId: string) =>
  firstRow<ConnectionRow>(tx, {
    name: 'connection.lapsed',
    text: `select ${COLUMNS} from vault_connections
           where tenant_id = $1 and credential_id = $2 and status = 'needs_reauthorization' for update`,
    values: [tenantId, credentialId],
  })

/** Opens a request to connect the account again. */
export const reopenConnection = (
  tx: Transaction,
  { tenantId, id }: Pick<ConnectionRow, 'tenantId' | 'id'>,
  code: string,
  expiresAt: Date,
) =>
  execute(tx, {
    name: 'connection.reopen',
    text: `update vault_connections set code = $3, code_expires_at = $4
           where tenant_id = $1 and id = $2 and status = 'needs_reauthorization'`,
    values: [tenantId, id, code, expiresAt],
  })

/** Pending connections whose time is over. Crosses tenants. */
export const expiredConnections = (tx: Transaction, now: Date, limit: number) =>
  allRows<ConnectionRow>(tx, {
    name: 'connection.expired',
    text: `select ${COLUMNS} from vault_connections where status = 'pending' and code_expires_at <= $1
           order by code_expires_at limit $2 for update skip locked`,
    values: [now, limit],
  })

/** A user of a tenant, as connections need it. */
export type ConnectionPerson = { readonly id: string; readonly sub: string }

/** The active user with this id or `sub`. */
export const findConnectionPerson = (
  tx: Transaction,
  tenantId: string,
  { id, sub }: { readonly id: string | null; readonly sub: string | null },
) =>
  firstRow<ConnectionPerson>(tx, {
    name: 'connection.person',
    text: `select u.id, u.sub from tenant_users u
           where u.tenant_id = $1 and ($2::uuid is not null or $3::text is not null)
             and ($2::uuid is null or u.id = $2) and ($3::text is null or u.sub = $3)
             and ${personInForce('u.tenant_id', 'u.sub')}`,
    values: [tenantId, id, sub],
  })

/** True if the person has an active delegation to the agent. */
export const delegatesTo = (
  tx: Transaction,
  tenantId: string,
  subject: string,
  agentId: string,
  now: Date,
) =>
  onlyValue<boolean>(tx, {
    name: 'connection.delegates_to',
    text: `select exists (select from delegations where tenant_id = $1 and subject = $2 and agent_id = $3
             and revoked_at is null and expires_at > $4) as found`,
    values: [tenantId, subject, agentId, now],
  })

/** The redirect URIs of active applications of the tenant: of one, or of all. */
export const redirectUrisOf = (tx: Transaction, tenantId: string, clientId: string | null) =>
  allRows<{ readonly uri: string }>(tx, {
    name: 'connection.redirect_uris',
    text: `select distinct uri from applications cross join lateral unnest(redirect_uris) uri
           where tenant_id = $1 and status = 'active' and ($2::text is null or id::text = $2) limit 2000`,
    values: [tenantId, clientId],
  })

/** The connections of a person that have not ended, with who uses them. Names of agents are of all tenants. */
export const listSeenConnections = (tx: Transaction, tenantId: string, subject: string) =>
  allRows<ConnectionRow & { readonly name: string | null; readonly lastUsedAt: Date | null }>(tx, {
    name: 'connection.list_seen',
    text: `select ${columnsOf(NAMES, 'c')}, v.last_used_at as "lastUsedAt",
             coalesce((select a.name from agents a where a.id = c.agent_id),
               (select p.name from applications p where p.tenant_id = c.tenant_id and p.id::text = c.requester_id)) as name
           from vault_connections c
             left join vault_credentials v on v.tenant_id = c.tenant_id and v.id = c.credential_id
           where c.tenant_id = $1 and c.subject = $2 and c.status in ('active', 'needs_reauthorization')
           order by c.created_at desc, c.id desc limit 200`,
    values: [tenantId, subject],
  })

/** Deletes connections that ended before a time, the oldest first. Crosses tenants. @returns how many. */
export const removeEndedConnections = (tx: Transaction, before: Date, limit: number) =>
  changedRows(tx, {
    name: 'connection.remove_ended',
    text: `delete from vault_connections where (tenant_id, id) in (select tenant_id, id from vault_connections
             where status in ('denied', 'expired', 'revoked') and updated_at < $1
             order by updated_at limit $2 for update skip locked)`,
    values: [before, limit],
  })
