/** Authorization codes. Each is redeemed once and keeps the id of its refresh family (RFC 6749 section 4.1.2). */
import { personInForce, tenantInForce } from '../platform/in-force.js'
import { eachEventValues, insertWonEvents, type OutboxEvent } from '../platform/outbox.js'
import {
  type Database,
  execute,
  firstRow,
  inOrderOf,
  LOOKED_UP,
  type Statement,
  type Transaction,
} from '../platform/sql.js'
import { removing } from '../platform/portable/expiry.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'

/** Individually requested claims, by destination (OpenID Connect Core section 5.5). */
export type RequestedClaims = {
  readonly idToken: readonly string[]
  readonly userinfo: readonly string[]
}

export type AuthorizationDetails = readonly Readonly<Record<string, unknown>>[]

/** The grant of a user, and how they had authenticated. */
type CodeGrant = {
  readonly tenantId: string
  /** Id of the code and of its refresh family. */
  readonly id: string
  readonly clientId: string
  readonly sessionId: string
  readonly subject: string
  readonly organizationId: string | null
  readonly redirectUri: string
  readonly codeChallenge: string | null
  /** `dpop_jkt`, or the key of the pushed request's DPoP proof (RFC 9449 section 10). */
  readonly jkt: string | null
  readonly scopes: readonly string[]
  readonly audience: readonly string[]
  /** The API resources of the grant. Null if it is for other audiences. */
  readonly resourceIds: readonly string[] | null
  readonly nonce: string | null
  readonly level: number
  readonly amr: readonly string[]
  readonly authTime: Date
  readonly authorizationDetails: AuthorizationDetails | null
  readonly claims: RequestedClaims | null
  /** The metadata document of the client at the decision. Null for a registered client. */
  readonly documentSha256: string | null
  readonly createdAt: Date
  readonly expiresAt: Date
}
type NewCode = CodeGrant & { readonly codeSha256: Uint8Array }

export const insertCode = (tx: Transaction, code: NewCode) =>
  execute(tx, {
    name: 'authorization_code.insert',
    text: `insert into authorization_codes (tenant_id, id, code_sha256, client_id, session_id,
             subject, organization_id, redirect_uri, code_challenge, jkt, scopes, audience, nonce,
             level, amr, auth_time, authorization_details, claims, created_at, expires_at, resource_ids,
             document_sha256)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
             $19, $20, $21, $22)`,
    values: [
      code.tenantId,
      code.id,
      Buffer.from(code.codeSha256),
      code.clientId,
      code.sessionId,
      code.subject,
      code.organizationId,
      code.redirectUri,
      code.codeChallenge,
      code.jkt,
      code.scopes,
      code.audience,
      code.nonce,
      code.level,
      code.amr,
      code.authTime,
      json(code.authorizationDetails),
      json(code.claims),
      code.createdAt,
      code.expiresAt,
      code.resourceIds,
      code.documentSha256,
    ],
  })

export type CodeRow = CodeGrant & {
  readonly redeemedAt: Date | null
  /** True if the session is open and the user and the tenant are active. */
  readonly standing: boolean
}

/** Finds codes, in the order of their hashes. Their tenants are unknown, so it crosses tenants. */
export async function findCodes(
  database: Database,
  hashes: readonly Uint8Array[],
): Promise<readonly (CodeRow | undefined)[]> {
  const [found] = await database.together(null, [
    {
      name: 'authorization_code.find',
      text: `select ${columnsOf(
        `code_sha256 tenant_id id client_id session_id subject organization_id redirect_uri
         code_challenge jkt scopes audience resource_ids nonce level amr auth_time authorization_details claims
         created_at expires_at redeemed_at document_sha256`,
        'c',
      )},
               ${tenantInForce('c.tenant_id')}
               and coalesce((select ended_at is null from sessions
                 where tenant_id = c.tenant_id and id = c.session_id), false)
               and ${personInForce('c.tenant_id', 'c.subject')} as standing
             from (select sha256 from unnest($1::bytea[]) with ordinality a (sha256, place)
               where ${LOOKED_UP} offset 0) asked
             cross join lateral (select * from authorization_codes
               where code_sha256 = asked.sha256 offset 0) c`,
      values: [hashes.map((hash) => Buffer.from(hash))],
    },
  ])
  return inOrderOf(hashes, found!.rows as (CodeRow & NewCode)[], (row) => row.codeSha256)
}

export type Redemption = {
  readonly id: string
  /** Key thumbprint to which the refresh tokens are bound. */
  readonly jkt: string | null
  /** Null if the application gets no refresh token. */
  readonly refreshTokenSha256: Uint8Array | null
  /**
   * True if the family gets its own session, with the id of the code, which outlives the browser session (OpenID
   * Connect Back-Channel Logout 1.0 section 2.7).
   */
  readonly offline: boolean
  readonly now: Date
  /** Expiry of the family and its session. */
  readonly expiresAt: Date
}

/**
 * Redeems codes: creates their refresh families and first refresh tokens, and records their events. Returns the place,
 * from 1, of each code that it redeemed. A family without a refresh token exists too, since revoking it
 * revokes the access tokens. Rows are locked in the order given. An offline grant needs an open session
 * and keeps it open until the transaction ends, so that a concurrent sign-out also finds the session of
 * the grant.
 */
export function redeemingCodes(
  tenantId: string,
  redemptions: readonly Redemption[],
  events: readonly OutboxEvent[],
): Statement {
  return {
    name: 'authorization_code.redeem',
    // Live codes are locked and change only by redemption, so this statement sees their latest version.
    // With `c.id = l.id` PostgreSQL expects two look-ups by the unique key, and reads a whole young table instead.
    text: `with asked as materialized (
             select $7::uuid as tenant_id, a.*
             from unnest($8::uuid[], $9::text[], $10::timestamptz[], $11::timestamptz[],
               $12::bytea[], $13::boolean[]) with ordinality
               as a (id, bound_to, turned_at, family_expires_at, refresh_token_sha256, offline, place)
               where ${LOOKED_UP}),
           live as materialized (
             select a.* from asked a
             cross join lateral (select c.session_id from authorization_codes c
               where c.tenant_id = a.tenant_id and c.id = a.id and c.redeemed_at is null
                 and c.expires_at > a.turned_at for update) c
             where not a.offline or exists (select from sessions s
               where s.tenant_id = a.tenant_id and s.id = c.session_id and s.ended_at is null
               for share)),
           redeemed as (
             update authorization_codes c set redeemed_at = l.turned_at from live l
             where c.tenant_id = l.tenant_id and c.id = any(array[l.id]) and c.redeemed_at is null
             returning c.*, l.bound_to, l.turned_at, l.family_expires_at, l.refresh_token_sha256,
               l.offline, l.place),
           session as (
             insert into sessions (tenant_id, id, subject, subject_type, client_id,
               organization_id, amr, auth_time, created_at, expires_at)
             select tenant_id, id, subject, 'human', client_id, organization_id, amr, auth_time,
               turned_at, family_expires_at
             from redeemed where offline),
           family as (
             insert into refresh_families (tenant_id, id, session_id, client_id, scopes, audience,
               jkt, created_at, expires_at, subject, level, amr, auth_time, authorization_details,
               claims, browser_session_id, resource_ids, document_sha256)
             select tenant_id, id, case when offline then id else session_id end, client_id, scopes,
               audience, bound_to, turned_at, family_expires_at, subject, level, amr, auth_time,
               authorization_details, claims, case when offline then session_id end, resource_ids,
               document_sha256
             from redeemed),
           token as (
             insert into refresh_tokens (tenant_id, family_id, generation, token_sha256, issued_at)
             select tenant_id, id, 0, refresh_token_sha256, turned_at
             from redeemed where refresh_token_sha256 is not null),
           recorded as (
             ${insertWonEvents('redeemed')})
           select place::integer from redeemed`,
    values: [
      ...eachEventValues(events),
      tenantId,
      redemptions.map(({ id }) => id),
      redemptions.map(({ jkt }) => jkt),
      redemptions.map(({ now }) => now),
      redemptions.map(({ expiresAt }) => expiresAt),
      redemptions.map(({ refreshTokenSha256: sha256 }) => sha256 && Buffer.from(sha256)),
      redemptions.map(({ offline }) => offline),
    ],
  }
}

/** A grant with individually requested claims. */
export type ClaimedGrant = {
  readonly claims: RequestedClaims
  readonly granted: readonly string[]
  /** The current scopes of its application. */
  readonly held: readonly string[]
}

/** Undefined if no claims were requested individually. */
export const findClaimedGrant = (tx: Transaction, tenantId: string, grantId: string) =>
  firstRow<ClaimedGrant>(tx, {
    name: 'refresh_family.claims',
    text: `select f.claims, f.scopes as granted, coalesce((select scopes from applications a
               where a.tenant_id = f.tenant_id and a.id = f.client_id), '{}') as held
           from refresh_families f
           where f.tenant_id = $1 and f.id = $2 and f.claims is not null`,
    values: [tenantId, grantId],
  })

/** Deletes up to `limit` codes that ended before `before`. Later uses see an unknown code. */
export const removeEndedCodes = removing('authorization_code.remove_ended', 'authorization_codes')

function json(value: object | null): string | null {
  return value === null ? null : JSON.stringify(value)
}
