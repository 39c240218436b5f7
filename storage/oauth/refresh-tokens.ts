/** Refresh tokens and their families: each token is rotated once, and a family is revoked as a whole (RFC 9700 section 4.14.2). */
import type { DelegationFacts } from '../../actors/domain/agents/delegation-intent.js'
import { delegationFacts } from '../agents/delegations.js'
import type { RequestedClaims, AuthorizationDetails } from './authorization-codes.js'
import { agentInForce, personInForce, tenantInForce } from '../platform/in-force.js'
import { eachEventValues, insertWonEvents, type OutboxEvent } from '../platform/outbox.js'
import {
  changedRows,
  type Database,
  firstRow,
  inOrderOf,
  LOOKED_UP,
  onlyValue,
  type Statement,
  type Transaction,
} from '../platform/sql.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'

export type RefreshTokenRow = {
  readonly tenantId: string
  readonly familyId: string
  readonly generation: number
  readonly tokenSha256: Uint8Array
  readonly issuedAt: Date
  readonly rotatedAt: Date | null
  readonly successorAnswer: Uint8Array | null
  /** The next generation exists and was itself rotated. */
  readonly successorUsed: boolean
  readonly clientId: string
  readonly scopes: readonly string[]
  readonly audience: readonly string[]
  /** The API resources of the grant. Null if it is for other audiences. */
  readonly resourceIds: readonly string[] | null
  readonly jkt: string | null
  readonly expiresAt: Date
  readonly revokedAt: Date | null
  readonly sessionId: string
  /** The `sid` of ID tokens, if it differs from the session: the id of the browser session. */
  readonly browserSessionId: string | null
  /** The session of the next access token: the browser session while it is open. */
  readonly accessSessionId: string
  readonly subject: string
  readonly subjectType: 'human' | 'agent'
  readonly agentId: string | null
  readonly organizationId: string | null
  readonly amr: string[]
  readonly authTime: Date
  /** Assurance level of the user at the grant. Null for agents. */
  readonly level: number | null
  readonly authorizationDetails: AuthorizationDetails | null
  readonly claims: RequestedClaims | null
  /** Set if an agent acts for the user of the session. */
  readonly delegationId: string | null
  readonly delegation: DelegationFacts | null
  readonly sessionEndedAt: Date | null
  readonly tenantActive: boolean
  /** The client, the user and the key of the session are all still valid. */
  readonly clientActive: boolean
}

/** Finds a token by its hash. Its tenant is unknown, so the transaction crosses tenants. */
export const findRefreshToken = (tx: Transaction, tokenSha256: Uint8Array) =>
  firstRow<RefreshTokenRow>(tx, finding([tokenSha256]))

/** The same for many tokens, in the order of their hashes. */
export async function findRefreshTokens(
  database: Database,
  hashes: readonly Uint8Array[],
): Promise<readonly (RefreshTokenRow | undefined)[]> {
  const [found] = await database.together(null, [finding(hashes)])
  return inOrderOf(hashes, found!.rows as RefreshTokenRow[], (row) => row.tokenSha256)
}

function finding(hashes: readonly Uint8Array[]): Statement {
  return {
    name: 'refresh_token.find',
    // From token to family to session, one row each. `offset 0` prevents the planner from joining all
    // sessions of the tenant first, as it does on tables without statistics.
    text: `select ${columnsOf('tenant_id family_id generation token_sha256 issued_at rotated_at', 't')},
             t.successor_answer as "successorAnswer",
             exists (select from refresh_tokens n where n.tenant_id = t.tenant_id
               and n.family_id = t.family_id and n.generation = t.generation + 1
               and n.rotated_at is not null) as "successorUsed",
             f.client_id as "clientId", f.scopes, f.audience, f.resource_ids as "resourceIds", f.jkt, f.expires_at as "expiresAt",
             f.revoked_at as "revokedAt", s.id as "sessionId",
             f.browser_session_id as "browserSessionId",
             case when f.browser_session_id is not null and exists (select from sessions b
               where b.tenant_id = t.tenant_id and b.id = f.browser_session_id
                 and b.ended_at is null and b.expires_at > now() + interval '1 hour')
               then f.browser_session_id else s.id end as "accessSessionId",
             ${columnsOf('subject subject_type agent_id organization_id', 's')}, coalesce(f.amr, s.amr) as amr,
             coalesce(f.auth_time, s.auth_time) as "authTime", f.level,
             f.authorization_details as "authorizationDetails", f.claims,
             case when s.subject_type = 'human' and s.agent_id is not null then s.id end
               as "delegationId",
             case when s.subject_type = 'human' and s.agent_id is not null
               then ${delegationFacts('s.tenant_id', 's.id')} end as delegation,
             s.ended_at as "sessionEndedAt",
             ${tenantInForce('t.tenant_id')} as "tenantActive",
             ((${agentInForce('f.client_id')}
               and not exists (select from agent_suspensions
                 where tenant_id = t.tenant_id and agent_id = s.agent_id)
               and not exists (select from agent_keys k where k.fingerprint = s.key_fingerprint
                 and k.agent_id = s.agent_id and k.status = 'revoked'))
               or exists (select from applications where tenant_id = t.tenant_id
                 and id = f.client_id and status = 'active'))
             and (s.subject_type <> 'human' or ${personInForce('t.tenant_id', 's.subject')})
               as "clientActive"
           from (select sha256 from unnest($1::bytea[]) with ordinality a (sha256, place)
             where ${LOOKED_UP} offset 0) asked
           cross join lateral (select * from refresh_tokens
             where token_sha256 = asked.sha256 offset 0) t
           cross join lateral (select * from refresh_families
             where tenant_id = t.tenant_id and id = t.family_id offset 0) f
           cross join lateral (select * from sessions
             where tenant_id = f.tenant_id and id = f.session_id offset 0) s`,
    values: [hashes.map((hash) => Buffer.from(hash))],
  }
}

export type Rotation = {
  readonly familyId: string
  /** Generation of the presented token. */
  readonly generation: number
  readonly successorSha256: Uint8Array
  /** The whole response, encrypted, so that a lost response can be repeated. */
  readonly successorAnswer: Uint8Array
  readonly now: Date
}

/**
 * Rotates tokens and records the event of each rotation. Returns the place, from 1, of each token that it rotated, and
 * none of a token that was rotated before, or whose family is revoked or expired. Erases the stored response of the
 * previous rotation. Rows are locked in the order given.
 */
export function rotatingRefreshTokens(
  tenantId: string,
  rotations: readonly Rotation[],
  events: readonly OutboxEvent[],
): Statement {
  return {
    name: 'refresh_token.rotate',
    // Every part of the key comes from the joined row: with the tenant as a parameter the planner could
    // choose to read all rows of the tenant.
    text: `with asked as materialized (
             select $7::uuid as tenant_id, a.*
             from unnest($8::uuid[], $9::integer[], $10::bytea[], $11::bytea[],
               $12::timestamptz[]) with ordinality
               as a (family_id, generation, successor_sha256, successor_answer, turned_at, place)
             where ${LOOKED_UP}),
           live as materialized (
             select a.* from asked a
             cross join lateral (select from refresh_families f
               where f.tenant_id = a.tenant_id and f.id = a.family_id and f.revoked_at is null
                 and f.expires_at > a.turned_at offset 0) f
             cross join lateral (select from refresh_tokens t
               where t.tenant_id = a.tenant_id and t.family_id = a.family_id
                 and t.generation = a.generation and t.rotated_at is null for update) t),
           rotated as (
             update refresh_tokens t set rotated_at = l.turned_at, successor_answer = l.successor_answer
             from live l
             where t.tenant_id = l.tenant_id and t.family_id = l.family_id
               and t.generation = l.generation and t.rotated_at is null
             returning t.tenant_id, t.family_id, t.generation - 1 as before, t.generation + 1 as after,
               l.successor_sha256, l.turned_at, l.place),
           wiped as (
             update refresh_tokens t set successor_answer = null
             from rotated r
             where t.tenant_id = r.tenant_id and t.family_id = r.family_id
               and t.generation = r.before and t.successor_answer is not null),
           succeeded as (
             insert into refresh_tokens (tenant_id, family_id, generation, token_sha256, issued_at)
             select tenant_id, family_id, after, successor_sha256, turned_at from rotated),
           recorded as (
             ${insertWonEvents('rotated')})
           select place::integer from rotated`,
    values: [
      ...eachEventValues(events),
      tenantId,
      rotations.map(({ familyId }) => familyId),
      rotations.map(({ generation }) => generation),
      rotations.map(({ successorSha256 }) => Buffer.from(successorSha256)),
      rotations.map(({ successorAnswer }) => Buffer.from(successorAnswer)),
      rotations.map(({ now }) => now),
    ],
  }
}

/** Revokes a family once and erases its stored responses. True for the call that did. */
export const revokeRefreshFamily = (
  tx: Transaction,
  tenantId: string,
  familyId: string,
  reason: string,
  now: Date,
) =>
  onlyValue<boolean>(tx, {
    name: 'refresh_family.revoke',
    text: `with revoked as (
             update refresh_families set revoked_at = $3, revoked_reason = $4
             where tenant_id = $1 and id = $2 and revoked_at is null
             returning tenant_id, id),
           wiped as (
             update refresh_tokens t set successor_answer = null from revoked r
             where t.tenant_id = r.tenant_id and t.family_id = r.id
               and t.successor_answer is not null)
           select exists (select from revoked) as revoked`,
    values: [tenantId, familyId, now, reason],
  })

/** Erases up to `limit` stored responses of rotations before `before`, which cannot be repeated any more. */
export const wipeOldAnswers = (tx: Transaction, before: Date, limit: number) =>
  changedRows(tx, {
    name: 'refresh_token.wipe',
    text: `update refresh_tokens set successor_answer = null
           where (tenant_id, family_id, generation) in (
             select tenant_id, family_id, generation from refresh_tokens
             where successor_answer is not null and rotated_at < $1
             limit $2 for update skip locked)`,
    values: [before, limit],
  })
