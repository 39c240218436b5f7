/** OAuth clients and their secrets. A secret is stored only as its SHA-256. decisions.md 7.4. */
import { createHash } from 'node:crypto'
import type { Random } from '../runtime/kernel/random.js'
import type { Transaction } from './sql.js'

export type ApplicationRow = {
  id: string
  tenantId: string
  name: string
  status: 'active' | 'disabled'
  clientType: 'public' | 'confidential'
  tokenEndpointAuthMethod: 'none' | 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt'
  audience: string
  redirectUris: string[]
  postLogoutRedirectUris: string[]
  allowedOrigins: string[]
  grantTypes: string[]
  responseTypes: string[]
  scopes: string[]
  jwks: { keys: Record<string, unknown>[] } | null
  dpopBoundAccessTokens: boolean
  requirePushedAuthorizationRequests: boolean
  idTokenSignedResponseAlg: 'ES256' | 'EdDSA'
  logoUri: string | null
  createdAt: Date
  updatedAt: Date
}

/** What a new application must say; the rest takes the defaults of decisions.md 7.4. */
export type NewApplication = Pick<
  ApplicationRow,
  'id' | 'tenantId' | 'name' | 'redirectUris' | 'createdAt'
> &
  Partial<Omit<ApplicationRow, 'status' | 'updatedAt'>> & {
    /** SHA-256 of the secret, from `newClientSecret`; null for a client without one. */
    secretSha256: Uint8Array | null
  }

export type ClientSecret = { readonly secret: string; readonly sha256: Uint8Array }

const SECRET_BYTES = 32
const DEFAULT_GRANT_TYPES = ['authorization_code', 'refresh_token']
const DEFAULT_RESPONSE_TYPES = ['code']
const DEFAULT_SCOPES = ['openid', 'profile', 'email']

/** A fresh client secret of 256 random bits: shown once, kept as its SHA-256. */
export function newClientSecret(random: Random): ClientSecret {
  const secret = `svcs_${random.token(SECRET_BYTES)}`
  return { secret, sha256: clientSecretSha256(secret) }
}

// 256 random bits cannot be guessed, so a slow hash would only slow the service (targets.md, finding 5).
export function clientSecretSha256(secret: string): Uint8Array {
  return createHash('sha256').update(secret, 'utf8').digest()
}

/** The audience an application has unless it names another one (decisions.md 7.4). */
export function defaultAudience(applicationId: string): string {
  return `urn:svc:application:${applicationId}`
}

/** Inserts the application and, where it has one, its secret. Answers with the stored row. */
export async function insertApplication(
  tx: Transaction,
  application: NewApplication,
): Promise<ApplicationRow> {
  const a = application
  const { rows } = await tx.query<ApplicationRow>({
    name: 'application.insert',
    text: `with application as (
             insert into applications (tenant_id, id, name, client_type, token_endpoint_auth_method,
               audience, redirect_uris, post_logout_redirect_uris, allowed_origins, grant_types,
               response_types, scopes, jwks, dpop_bound_access_tokens,
               require_pushed_authorization_requests, id_token_signed_response_alg, logo_uri,
               created_at, updated_at)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
               $18, $18)
             returning *),
           secret as (
             insert into application_secrets (tenant_id, application_id, id, secret_sha256, created_at)
             select $1, $2, $2, $19, $18 where $19::bytea is not null)
           select ${COLUMNS} from application`,
    values: [
      a.tenantId,
      a.id,
      a.name,
      a.clientType ?? 'confidential',
      a.tokenEndpointAuthMethod ?? (a.clientType === 'public' ? 'none' : 'client_secret_basic'),
      a.audience ?? defaultAudience(a.id),
      a.redirectUris,
      a.postLogoutRedirectUris ?? [],
      a.allowedOrigins ?? [],
      a.grantTypes ?? DEFAULT_GRANT_TYPES,
      a.responseTypes ?? DEFAULT_RESPONSE_TYPES,
      a.scopes ?? DEFAULT_SCOPES,
      a.jwks ? JSON.stringify(a.jwks) : null,
      a.dpopBoundAccessTokens ?? false,
      a.requirePushedAuthorizationRequests ?? false,
      a.idTokenSignedResponseAlg ?? 'ES256',
      a.logoUri ?? null,
      a.createdAt,
      a.secretSha256 === null ? null : Buffer.from(a.secretSha256),
    ],
  })
  return rows[0]!
}

export async function findApplication(
  tx: Transaction,
  tenantId: string,
  applicationId: string,
): Promise<ApplicationRow | undefined> {
  const { rows } = await tx.query<ApplicationRow>({
    name: 'application.find',
    text: `select ${COLUMNS} from applications where tenant_id = $1 and id = $2`,
    values: [tenantId, applicationId],
  })
  return rows[0]
}

/** One page, newest first, after the row that `createdAt` and `id` name. */
export async function listApplications(
  tx: Transaction,
  tenantId: string,
  limit: number,
  after: { createdAt: Date; id: string } | null,
): Promise<ApplicationRow[]> {
  const { rows } = await tx.query<ApplicationRow>({
    name: 'application.list',
    text: `select ${COLUMNS} from applications
           where tenant_id = $1 and ($3::timestamptz is null or (created_at, id) < ($3, $4::uuid))
           order by created_at desc, id desc limit $2`,
    values: [tenantId, limit, after?.createdAt ?? null, after?.id ?? null],
  })
  return rows
}

/** A client as the token endpoint needs it, whatever its tenant. */
export type ClientRow = Pick<
  ApplicationRow,
  | 'id'
  | 'tenantId'
  | 'status'
  | 'clientType'
  | 'tokenEndpointAuthMethod'
  | 'audience'
  | 'grantTypes'
  | 'scopes'
  | 'jwks'
  | 'dpopBoundAccessTokens'
> & { tenantStatus: string; secrets: { sha256: string; expiresAt: string | null }[] }

/** Finds a client by its id before its tenant is known; needs a transaction that crosses tenants. */
export async function findClient(
  tx: Transaction,
  clientId: string,
): Promise<ClientRow | undefined> {
  const { rows } = await tx.query<ClientRow>({
    name: 'application.client',
    text: `select a.id, a.tenant_id as "tenantId", a.status, a.client_type as "clientType",
             a.token_endpoint_auth_method as "tokenEndpointAuthMethod", a.audience,
             a.grant_types as "grantTypes", a.scopes, a.jwks,
             a.dpop_bound_access_tokens as "dpopBoundAccessTokens", t.status as "tenantStatus",
             (select coalesce(json_agg(json_build_object('sha256', encode(s.secret_sha256, 'hex'),
                'expiresAt', s.expires_at)), '[]')
              from application_secrets s
              where s.tenant_id = a.tenant_id and s.application_id = a.id) as secrets
           from applications a join tenants t on t.id = a.tenant_id
           where a.id = $1`,
    values: [clientId],
  })
  return rows[0]
}

/** Which of these audiences belong to an active application of the tenant (RFC 8707). */
export async function knownAudiences(
  tx: Transaction,
  tenantId: string,
  audiences: readonly string[],
): Promise<string[]> {
  const { rows } = await tx.query<{ audience: string }>({
    name: 'application.audiences',
    text: `select audience from applications
           where tenant_id = $1 and audience = any($2) and status = 'active'`,
    values: [tenantId, audiences],
  })
  return rows.map(({ audience }) => audience)
}

/** Whether an active application lists the origin: that one, or with null any. Crosses tenants. */
export async function originListed(
  tx: Transaction,
  origin: string,
  applicationId: string | null,
): Promise<boolean> {
  const { rows } = await tx.query<{ listed: boolean }>({
    name: 'application.origin_listed',
    text: `select exists (select from applications
             where allowed_origins @> array[$1::text] and status = 'active'
               and ($2::uuid is null or id = $2)) as listed`,
    values: [origin, applicationId],
  })
  return rows[0]!.listed
}

const COLUMNS = `id, tenant_id as "tenantId", name, status, client_type as "clientType",
  token_endpoint_auth_method as "tokenEndpointAuthMethod", audience,
  redirect_uris as "redirectUris", post_logout_redirect_uris as "postLogoutRedirectUris",
  allowed_origins as "allowedOrigins", grant_types as "grantTypes",
  response_types as "responseTypes", scopes, jwks,
  dpop_bound_access_tokens as "dpopBoundAccessTokens",
  require_pushed_authorization_requests as "requirePushedAuthorizationRequests",
  id_token_signed_response_alg as "idTokenSignedResponseAlg", logo_uri as "logoUri",
  created_at as "createdAt", updated_at as "updatedAt"`
