/** Authorization codes: redeemed once, and what they became can be found again. RFC 6749 section 4.1.2. */
import type { Transaction } from './sql.js'

/** Claims asked for one by one, by where they are wanted (OpenID Connect Core section 5.5). */
export type AskedClaims = {
  readonly idToken: readonly string[]
  readonly userinfo: readonly string[]
}

export type AuthorizationDetails = readonly Readonly<Record<string, unknown>>[]

/** What a person allowed, and how they had signed in when they did. */
export type CodeGrant = {
  readonly tenantId: string
  /** Of the code, and of the refresh family it is turned into. */
  readonly id: string
  readonly clientId: string
  readonly sessionId: string
  readonly subject: string
  readonly organizationId: string | null
  readonly redirectUri: string
  readonly codeChallenge: string | null
  /** `dpop_jkt`, or the key that the request was pushed with (RFC 9449 section 10). */
  readonly jkt: string | null
  readonly scopes: readonly string[]
  readonly audience: readonly string[]
  readonly nonce: string | null
  readonly level: number
  readonly amr: readonly string[]
  readonly authTime: Date
  readonly authorizationDetails: AuthorizationDetails | null
  readonly claims: AskedClaims | null
  readonly createdAt: Date
  readonly expiresAt: Date
}
export type NewCode = CodeGrant & { readonly codeSha256: Uint8Array }

export async function insertCode(tx: Transaction, code: NewCode): Promise<void> {
  await tx.query({
    name: 'authorization_code.insert',
    text: `insert into authorization_codes (tenant_id, id, code_sha256, client_id, session_id,
             subject, organization_id, redirect_uri, code_challenge, jkt, scopes, audience, nonce,
             level, amr, auth_time, authorization_details, claims, created_at, expires_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
             $19, $20)`,
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
    ],
  })
}

export type CodeRow = CodeGrant & {
  readonly redeemedAt: Date | null
  /** Session, person and tenant are as they were: the grant may still begin. */
  readonly standing: boolean
}

/** Finds a code by its hash. Its tenant is not known before, so the transaction crosses tenants. */
export async function findCode(
  tx: Transaction,
  codeSha256: Uint8Array,
): Promise<CodeRow | undefined> {
  const { rows } = await tx.query<CodeRow>({
    name: 'authorization_code.find',
    text: `select c.tenant_id as "tenantId", c.id, c.client_id as "clientId",
             c.session_id as "sessionId", c.subject, c.organization_id as "organizationId",
             c.redirect_uri as "redirectUri", c.code_challenge as "codeChallenge", c.jkt, c.scopes,
             c.audience, c.nonce, c.level, c.amr, c.auth_time as "authTime",
             c.authorization_details as "authorizationDetails", c.claims,
             c.created_at as "createdAt", c.expires_at as "expiresAt",
             c.redeemed_at as "redeemedAt",
             exists (select from tenants where id = c.tenant_id and status = 'active')
             and exists (select from sessions
               where tenant_id = c.tenant_id and id = c.session_id and ended_at is null)
             and exists (select from tenant_users
               where tenant_id = c.tenant_id and sub = c.subject and status = 'active')
               as standing
           from authorization_codes c where c.code_sha256 = $1`,
    values: [Buffer.from(codeSha256)],
  })
  return rows[0]
}

export type Redemption = {
  readonly tenantId: string
  readonly id: string
  /** Key that the refresh tokens are bound to. */
  readonly jkt: string | null
  /** Null: the application gets no refresh token. */
  readonly refreshTokenSha256: Uint8Array | null
  readonly now: Date
  /** End of the family. */
  readonly expiresAt: Date
}

/**
 * Turns a code into its family and the first refresh token of it; true for the one caller that did.
 * The family exists without a refresh token too: it is what revokes the access tokens.
 */
export async function redeemCode(tx: Transaction, redemption: Redemption): Promise<boolean> {
  const r = redemption
  const { rows } = await tx.query<{ redeemed: boolean }>({
    name: 'authorization_code.redeem',
    text: `with redeemed as (
             update authorization_codes set redeemed_at = $4
             where tenant_id = $1 and id = $2 and redeemed_at is null and expires_at > $4
             returning *),
           family as (
             insert into refresh_families (tenant_id, id, session_id, client_id, scopes, audience,
               jkt, created_at, expires_at, subject, level, amr, auth_time, authorization_details,
               claims)
             select tenant_id, id, session_id, client_id, scopes, audience, $3, $4, $5, subject,
               level, amr, auth_time, authorization_details, claims
             from redeemed),
           token as (
             insert into refresh_tokens (tenant_id, family_id, generation, token_sha256, issued_at)
             select tenant_id, id, 0, $6, $4 from redeemed where $6::bytea is not null)
           select exists (select from redeemed) as redeemed`,
    values: [
      r.tenantId,
      r.id,
      r.jkt,
      r.now,
      r.expiresAt,
      r.refreshTokenSha256 === null ? null : Buffer.from(r.refreshTokenSha256),
    ],
  })
  return rows[0]!.redeemed
}

/** The claims that were asked for one by one when a grant was made. */
export async function findGrantClaims(
  tx: Transaction,
  tenantId: string,
  grantId: string,
): Promise<AskedClaims | null> {
  const { rows } = await tx.query<{ claims: AskedClaims | null }>({
    name: 'refresh_family.claims',
    text: 'select claims from refresh_families where tenant_id = $1 and id = $2',
    values: [tenantId, grantId],
  })
  return rows[0]?.claims ?? null
}

/** Removes up to `limit` codes that ended before `before`: a use after that is an unknown code. */
export async function removeEndedCodes(
  tx: Transaction,
  before: Date,
  limit: number,
): Promise<number> {
  const { rowCount } = await tx.query({
    name: 'authorization_code.remove_ended',
    text: `delete from authorization_codes where (tenant_id, id) in (
             select tenant_id, id from authorization_codes where expires_at < $1
             order by expires_at limit $2 for update skip locked)`,
    values: [before, limit],
  })
  return rowCount
}

function json(value: object | null): string | null {
  return value === null ? null : JSON.stringify(value)
}
