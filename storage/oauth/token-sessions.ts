/** Sessions of tokens, their refresh families, and the status of tokens. */
import { agentInForce, personInForce, tenantInForce } from '../platform/in-force.js'
import { eachEventValues, insertWonEvents, type OutboxEvent } from '../platform/outbox.js'
import {
  allRows,
  type Database,
  firstRow,
  isChanged,
  LOOKED_UP,
  onlyValue,
  type Statement,
  type Transaction,
} from '../platform/sql.js'
import { removing } from '../platform/portable/expiry.js'

/** The NOTIFY channel for ids whose token status changed (migration 0004_tokens). */
export const TOKEN_STATUS_CHANNEL = 'svc_standing'

type NewAgentSession = {
  /** The login challenge that opens the session. Null if the agent has proved its key before. */
  readonly challengeId: string | null
  readonly sessionId: string
  readonly agentId: string
  readonly organizationId: string | null
  readonly keyFingerprint: string
  readonly scopes: readonly string[]
  readonly audience: string
  readonly jkt: string | null
  readonly familyId: string
  readonly refreshTokenSha256: Uint8Array
  readonly now: Date
  /** End of the session, its family and every refresh token in it. */
  readonly expiresAt: Date
}

/**
 * Creates sessions of agents in a tenant, each with its refresh family and the family's first token, and spends their
 * challenges, and records their events. The rows are the places, from 1, of the sessions that it created. It creates none
 * for a challenge that was spent or has expired.
 */
export function openingAgentSessions(
  tenantId: string,
  sessions: readonly NewAgentSession[],
  events: readonly OutboxEvent[],
): Statement {
  const column = <Value>(value: (session: NewAgentSession) => Value) => sessions.map(value)
  return {
    name: 'session.open_agent',
    text: `with asked as materialized (
             select $7::uuid as tenant_id, a.*
             from unnest($8::uuid[], $9::uuid[], $10::text[], $11::uuid[], $12::text[], $13::text[],
               $14::text[], $15::text[], $16::uuid[], $17::bytea[], $18::timestamptz[],
               $19::timestamptz[]) with ordinality
               as a (challenge_id, session_id, agent, organization_id, key_fingerprint, scope,
                 audience, jkt, family_id, token_sha256, now, expires_at, place)
             where ${LOOKED_UP}),
           spent as (
             update agent_challenges c set consumed_at = clock_timestamp() from asked a
             where c.tenant_id = a.tenant_id and c.id = a.challenge_id and c.consumed_at is null
               and c.expires_at > clock_timestamp()
             returning a.place),
           opened as materialized (
             select * from asked
             where challenge_id is null or place in (select place from spent)),
           session as (
             insert into sessions (tenant_id, id, subject, subject_type, agent_id, client_id,
               organization_id, key_fingerprint, amr, auth_time, created_at, expires_at)
             select tenant_id, session_id, agent, 'agent', agent::uuid, agent::uuid,
               organization_id, key_fingerprint, '{pop}', now, now, expires_at
             from opened),
           family as (
             insert into refresh_families (tenant_id, id, session_id, client_id, scopes, audience,
               jkt, created_at, expires_at)
             select tenant_id, family_id, session_id, agent::uuid, string_to_array(scope, ' '),
               array[audience], jkt, now, expires_at
             from opened),
           token as (
             insert into refresh_tokens (tenant_id, family_id, generation, token_sha256, issued_at)
             select tenant_id, family_id, 0, token_sha256, now from opened),
           recorded as (
             ${insertWonEvents('opened')})
           select place::integer from opened`,
    values: [
      ...eachEventValues(events),
      tenantId,
      column((s) => s.challengeId),
      column((s) => s.sessionId),
      column((s) => s.agentId),
      column((s) => s.organizationId),
      column((s) => s.keyFingerprint),
      column((s) => s.scopes.join(' ')),
      column((s) => s.audience),
      column((s) => s.jkt),
      column((s) => s.familyId),
      column((s) => Buffer.from(s.refreshTokenSha256)),
      column((s) => s.now),
      column((s) => s.expiresAt),
    ],
  }
}

type NewPersonSession = {
  readonly tenantId: string
  /** The id of the browser session. */
  readonly sessionId: string
  readonly subject: string
  /** The first application that gets tokens in the session. */
  readonly clientId: string
  readonly organizationId: string | null
  /** The latest expiry of its tokens. */
  readonly expiresAt: Date
}

/** Extra lifetime of a row, so that not every code of a browser session has to extend it. */
const SPARE_MS = 60 * 60_000

/**
 * Creates the token session of an open browser session. Returns false if the browser session is not
 * open. The token session ends with the browser session (migration 0009_authorization), but outlives
 * its expiry. A row that lives long enough is only read, so that concurrent codes of one browser do
 * not wait for each other.
 */
export async function openPersonSession(
  tx: Transaction,
  session: NewPersonSession,
): Promise<boolean> {
  const s = session
  const { rows } = await tx.query<{ opened: boolean }>({
    name: 'session.open_person',
    text: `with browser as materialized (
             select tenant_id, id, amr, auth_time, created_at
             from browser_sessions where tenant_id = $1 and id = $2 and ended_at is null
             for share),
           lasting as materialized (
             select from sessions where tenant_id = $1 and id = $2 and ended_at is null
               and expires_at >= $6),
           written as (
             insert into sessions as s (tenant_id, id, subject, subject_type, client_id,
               organization_id, amr, auth_time, created_at, expires_at)
             select tenant_id, id, $3, 'human', $4, $5, amr, auth_time, created_at, $7
             from browser where not exists (select from lasting)
             on conflict (tenant_id, id) do update
               set expires_at = greatest(s.expires_at, excluded.expires_at)
               where s.ended_at is null
             returning 1)
           select exists (select from browser)
             and (exists (select from lasting) or exists (select from written)) as opened`,
    values: [
      s.tenantId,
      s.sessionId,
      s.subject,
      s.clientId,
      s.organizationId,
      s.expiresAt,
      new Date(s.expiresAt.getTime() + SPARE_MS),
    ],
  })
  return rows[0]!.opened
}

/**
 * True if the session is open. The lock keeps it open until the transaction ends: a concurrent
 * sign-out waits, and then sees what was decided. @param id of a browser session or token session.
 */
export const holdOpenSession = (tx: Transaction, tenantId: string, id: string) =>
  onlyValue<boolean>(tx, {
    name: 'session.hold_open',
    text: `with browser as materialized (
             select from browser_sessions
             where tenant_id = $1 and id = $2 and ended_at is null for share),
           tokens as materialized (
             select from sessions
             where tenant_id = $1 and id = $2 and ended_at is null for share)
           select exists (select from browser) or exists (select from tokens) as open`,
    values: [tenantId, id],
  })

/** Whether a token is still valid. It is valid if all members are true. */
export type TokenStatus = {
  /** False if the session ended, does not exist or began with a revoked key. True without a session. */
  readonly sessionOpen: boolean
  /** The tenant and the token's organization are active. */
  readonly tenantActive: boolean
  /** The user, the agents and the application of the token exist and are active. */
  readonly subjectActive: boolean
  /** Neither the token nor its refresh family was revoked, and its client may use its API resources. */
  readonly tokenKept: boolean
  /** The delegation is in force. True without a delegation. */
  readonly delegationKept: boolean
}

export type TokenStatusQuery = {
  readonly tenantId: string
  readonly sessionId: string | null
  /** Every agent of the token: its subject or its actors. */
  readonly agentIds: readonly string[]
  readonly applicationId: string | null
  /** The `jti`. */
  readonly tokenId: string
  /** The refresh family of the token. Null without one. */
  readonly grantId: string | null
  /** The `sub` of a user. Null for tokens of agents and services. */
  readonly personSub: string | null
  readonly delegationId: string | null
  /** The organization of the token. Null without one. */
  readonly organizationId: string | null
  /** The API resources of the token. Null if it is for other audiences. */
  readonly resourceIds: readonly string[] | null
  readonly clientId: string
}

/** The query for a token that may still be issued. */
type RecentTokenQuery = TokenStatusQuery & {
  /** True if its session and its grant may not be stored yet. Default: false. */
  readonly isBeingIssued?: boolean
}

/**
 * Reads the status of tokens, in the order of the queries. An agent's home tenant may differ from the
 * token's, so the transaction crosses tenants.
 */
export const readTokenStatus = (tx: Transaction, queries: readonly TokenStatusQuery[]) =>
  allRows<TokenStatus>(tx, tokenStandings(queries))

/** The same in its own round trip, without a transaction. */
export async function readTokenStatusBatch(
  database: Database,
  queries: readonly RecentTokenQuery[],
): Promise<readonly TokenStatus[]> {
  const [found] = await database.together(null, [tokenStandings(queries)], {
    pool: 'identity',
  })
  return found!.rows as TokenStatus[]
}

function tokenStandings(queries: readonly RecentTokenQuery[]): Statement {
  return {
    name: 'session.standings',
    // The status is selected, not filtered: with `ended_at is null` in the search condition the
    // planner may scan a partial index of all open rows instead of looking up the key.
    text: `select
             g."sessionId" is null or coalesce((select s.ended_at is null
                 and not exists (select from agent_keys k where k.fingerprint = s.key_fingerprint
                   and k.agent_id = s.agent_id and k.status = 'revoked')
               from sessions s where s.tenant_id = g."tenantId" and s.id = g."sessionId"),
               g."isBeingIssued", false)
               as "sessionOpen",
             ${tenantInForce('g."tenantId"')}
             and (g."organizationId" is null or exists (select from organizations o
               where o.id = g."organizationId" and o.status = 'active')) as "tenantActive",
             not exists (select from unnest(g."agentIds") with ordinality acting (id, place)
               where acting.${LOOKED_UP}
                 and (not ${agentInForce('acting.id')}
                   or exists (select from agent_suspensions x
                     where x.tenant_id = g."tenantId" and x.agent_id = acting.id)))
             and (g."applicationId" is null or exists (select from applications a
               where a.tenant_id = g."tenantId" and a.id = g."applicationId" and a.status = 'active'))
             and (g."personSub" is null or ${personInForce('g."tenantId"', 'g."personSub"')})
               as "subjectActive",
             not exists (select from revoked_tokens r
               where r.tenant_id = g."tenantId" and r.id = g."tokenId")
             and (g."grantId" is null or coalesce((select f.revoked_at is null
               from refresh_families f where f.tenant_id = g."tenantId" and f.id = g."grantId"),
               g."isBeingIssued", false))
             and (g."resourceIds" is null or not exists (
               select from unnest(g."resourceIds") with ordinality named (id, place)
               where named.${LOOKED_UP} and not exists (select from api_resources r
                 where r.tenant_id = g."tenantId" and r.id = named.id
                   and (r.allowed_clients = 'any' or g."clientId" = any(r.client_ids)))))
               as "tokenKept",
             g."delegationId" is null or coalesce((select d.revoked_at is null
               from delegations d where d.tenant_id = g."tenantId" and d.id = g."delegationId"), false)
               as "delegationKept"
           from rows from (jsonb_to_recordset($1::jsonb) as ("tenantId" uuid, "sessionId" uuid,
             "agentIds" uuid[], "applicationId" uuid, "tokenId" uuid, "grantId" uuid,
             "personSub" text, "delegationId" uuid, "organizationId" uuid, "resourceIds" uuid[],
             "clientId" text, "isBeingIssued" boolean)) with ordinality
             g ("tenantId", "sessionId", "agentIds", "applicationId", "tokenId", "grantId", "personSub",
               "delegationId", "organizationId", "resourceIds", "clientId", "isBeingIssued", place)
           where ${LOOKED_UP}
           order by g.place`,
    values: [JSON.stringify(queries)],
  }
}

/** Ends a session once. True for the call that ended it. */
export const endSessionRow = (
  tx: Transaction,
  tenantId: string,
  sessionId: string,
  reason: string,
  now: Date,
) =>
  isChanged(tx, {
    name: 'session.end',
    text: `update sessions set ended_at = $3, ended_reason = $4
           where tenant_id = $1 and id = $2 and ended_at is null`,
    values: [tenantId, sessionId, now, reason],
  })

/** Deletes up to `limit` sessions that expired before `before`, with their families. */
export const removeExpiredSessions = removing('session.remove_expired', 'sessions')

/** An agent in its role as a client of the token endpoint. */
export type AgentClientRow = {
  readonly id: string
  readonly status: 'active' | 'suspended'
  readonly homeTenantId: string
  readonly keys: readonly {
    readonly fingerprint: string
    readonly algorithm: 'ed25519' | 'es256'
    /** The raw key in hexadecimal: 32 bytes (ed25519) or 33 bytes (es256). */
    readonly publicKey: string
  }[]
}

/** Finds an agent and its active keys by id. Its home tenant is unknown, so the look-up crosses tenants. */
export const findAgentClient = (tx: Transaction, agentId: string) =>
  firstRow<AgentClientRow>(tx, {
    name: 'agent.client',
    text: `select a.id, a.tenant_id as "homeTenantId",
             case when ${agentInForce('a.id')} then 'active' else 'suspended' end as status,
             (select coalesce(json_agg(json_build_object('fingerprint', k.fingerprint,
                'algorithm', k.algorithm, 'publicKey', encode(k.public_key, 'hex'))), '[]')
              from agent_keys k where k.tenant_id = a.tenant_id and k.agent_id = a.id
                and k.status = 'active') as keys
           from agents a where a.id = $1`,
    values: [agentId],
  })
