/** Applications (OAuth clients) and their secrets. Only the SHA-256 of a secret is stored. */
import { hash, timingSafeEqual } from 'node:crypto'
import type { Random } from '../../runtime/kernel/random.js'
import {
  allValues,
  type Database,
  execute,
  firstRow,
  firstValue,
  isChanged,
  LOOKED_UP,
  onlyValue,
  type Statement,
  type Transaction,
} from '../platform/sql.js'
import { claimAudience, defaultAudience } from './audiences.js'
import { columnsOf, listing } from '../platform/portable/tenant-rows.js'

export type ApplicationRow = {
  id: string
  tenantId: string
  name: string
  status: 'active' | 'disabled'
  clientType: 'public' | 'confidential'
  tokenEndpointAuthMethod:
    | 'none'
    | 'client_secret_basic'
    | 'client_secret_post'
    | 'private_key_jwt'
    | 'spiffe_jwt'
  /** The creator named the method: a secret in the place of the other method is refused. */
  heldToMethod: boolean
  audience: string
  redirectUris: string[]
  postLogoutRedirectUris: string[]
  /** Where logout tokens go (OpenID Connect Back-Channel Logout 1.0). */
  backchannelLogoutUri: string | null
  backchannelLogoutSessionRequired: boolean
  /** What a frame of the sign-out page loads (OpenID Connect Front-Channel Logout 1.0). */
  frontchannelLogoutUri: string | null
  frontchannelLogoutSessionRequired: boolean
  allowedOrigins: string[]
  grantTypes: string[]
  responseTypes: string[]
  scopes: string[]
  /** The scopes of client_credentials without `scope`. Null selects the service default. */
  defaultScopes: string[] | null
  jwks: { keys: Record<string, unknown>[] } | null
  /** URL of the keys, instead of `jwks`. */
  jwksUri: string | null
  dpopBoundAccessTokens: boolean
  /** False: refresh tokens stay as they are. */
  rotateRefreshTokens: boolean
  requirePushedAuthorizationRequests: boolean
  idTokenSignedResponseAlg: 'ES256' | 'EdDSA' | 'RS256'
  /** The signature of authorization responses as a JWT. Null: RS256. */
  authorizationSignedResponseAlg: 'ES256' | 'EdDSA' | 'RS256' | null
  /** Null: userinfo is JSON, and not signed. */
  userinfoSignedResponseAlg: 'ES256' | 'EdDSA' | 'RS256' | null
  /** The signature of introspection responses as a JWT. Null: RS256. */
  introspectionSignedResponseAlg: 'ES256' | 'EdDSA' | 'RS256' | null
  /** Authorization requests are pushed as signed request objects (RFC 9101). */
  requireSignedRequestObject: boolean
  /** Null: any algorithm of its keys. */
  requestObjectSigningAlg: 'ES256' | 'EdDSA' | null
  requirePkce: boolean
  /** The port of loopback redirect URIs is free (RFC 8252 section 7.3). */
  loopbackAnyPort: boolean
  authorizationDetailsTypes: string[]
  logoUri: string | null
  /** The client_id of a client that is identified by its metadata document. Null for a registered one. */
  metadataUrl: string | null
  createdAt: Date
  updatedAt: Date
}

/** The required members of a new application. The others have defaults. */
export type NewApplication = Pick<
  ApplicationRow,
  'id' | 'tenantId' | 'name' | 'redirectUris' | 'createdAt'
> &
  Partial<Omit<ApplicationRow, 'status' | 'updatedAt' | 'metadataUrl'>> & {
    /** SHA-256 of the secret, from `newClientSecret`. Null for a client without one. */
    secretSha256: Uint8Array | null
  }

type ClientSecret = { readonly secret: string; readonly sha256: Uint8Array }

const SECRET_BYTES = 32
const DEFAULT_GRANT_TYPES = ['authorization_code', 'refresh_token']
const DEFAULT_RESPONSE_TYPES = ['code']
export const DEFAULT_SCOPES = ['openid', 'profile', 'email']

/** A new client secret of 256 random bits. It is returned once and stored as its SHA-256. */
export function newClientSecret(random: Random): ClientSecret {
  const secret = `svcs_${random.token(SECRET_BYTES)}`
  return { secret, sha256: clientSecretSha256(secret) }
}

// 256 random bits cannot be guessed, so a slow password hash would add cost without protection.
export function clientSecretSha256(secret: string): Uint8Array {
  // Hashing to text and decoding is twice as fast as hashing to bytes.
  return Buffer.from(hash('sha256', secret, 'binary'), 'binary')
}

/**
 * Inserts the application and its secret, if it has one. Returns the stored row.
 * @throws an error of `isAudienceTaken`.
 */
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
               require_pkce, authorization_details_types, jwks_uri, default_scopes,
               loopback_any_port, held_to_method, backchannel_logout_uri,
               backchannel_logout_session_required, frontchannel_logout_uri,
               frontchannel_logout_session_required, rotate_refresh_tokens, require_signed_request_object,
               request_object_signing_alg, userinfo_signed_response_alg,
               authorization_signed_response_alg, introspection_signed_response_alg, created_at, updated_at)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
               $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $34)
             returning *),
           secret as (
             insert into application_secrets (tenant_id, application_id, id, secret_sha256, created_at)
             select $1, $2, $2, $35, $34 where $35::bytea is not null)
           select ${COLUMNS} from application`,
    values: [
      ...memberValues(a),
      a.createdAt,
      a.secretSha256 === null ? null : Buffer.from(a.secretSha256),
    ],
  })
  if (a.audience !== undefined) await claimAudience(tx, { ...a, holder: 'application' }, a.audience)
  return rows[0]!
}

type BuiltInClient = {
  readonly tenantId: string
  readonly id: string
  /** Stored as `metadata_url`. */
  readonly clientId: string
  readonly name: string
  readonly redirectUri: string
  readonly scopes: readonly string[]
  readonly now: Date
}

/** Writes a client of the service to the tenant, or brings its members up to date. Returns its id. */
export async function provideBuiltInClient(tx: Transaction, c: BuiltInClient): Promise<string> {
  const known = await tx.query<{ id: string }>({
    name: 'application.built_in',
    text: `select id from applications where tenant_id = $1 and metadata_url = $2
             and redirect_uris = array[$3::text] and scopes = $4::text[]`,
    values: [c.tenantId, c.clientId, c.redirectUri, c.scopes],
  })
  if (known.rows[0] !== undefined) return known.rows[0].id
  const { rows } = await tx.query<{ id: string }>({
    name: 'application.provide_built_in',
    text: `insert into applications (tenant_id, id, metadata_url, audience, name, client_type,
             token_endpoint_auth_method, redirect_uris, grant_types, response_types, scopes,
             require_pkce, created_at, updated_at)
           values ($1, $2::uuid, $3, 'urn:svc:application:' || $2::uuid::text, $4, 'public', 'none',
             array[$5::text], '{authorization_code,refresh_token}', '{code}', $6, true, $7, $7)
           on conflict (tenant_id, metadata_url) where metadata_url is not null
             do update set redirect_uris = excluded.redirect_uris, scopes = excluded.scopes,
               updated_at = excluded.updated_at
           returning id`,
    values: [c.tenantId, c.id, c.clientId, c.name, c.redirectUri, c.scopes, c.now],
  })
  return rows[0]!.id
}

/** Locks the application until the transaction ends, so that changes are serialised. */
export const lockApplication = (tx: Transaction, tenantId: string, applicationId: string) =>
  firstRow<ApplicationRow>(tx, {
    name: 'application.lock',
    text: `select ${COLUMNS} from applications
           where tenant_id = $1 and id = $2 and metadata_url is null for update`,
    values: [tenantId, applicationId],
  })

/** Every member that can change. All of them are replaced. */
type ReplacedApplication = Pick<ApplicationRow, 'id' | 'tenantId' | 'name' | 'redirectUris'> &
  Partial<Omit<ApplicationRow, 'createdAt' | 'metadataUrl'>> & { readonly updatedAt: Date }

/** Returns the stored row. @throws an error of `isAudienceTaken`, unless `before` already has the audience. */
export async function replaceApplicationRow(
  tx: Transaction,
  application: ReplacedApplication,
  before: Pick<ApplicationRow, 'audience'>,
): Promise<ApplicationRow> {
  const a = application
  const { rows } = await tx.query<ApplicationRow>({
    name: 'application.replace',
    text: `update applications set name = $3, client_type = $4, token_endpoint_auth_method = $5,
             audience = $6, redirect_uris = $7, post_logout_redirect_uris = $8,
             allowed_origins = $9, grant_types = $10, response_types = $11, scopes = $12,
             jwks = $13, dpop_bound_access_tokens = $14,
             require_pushed_authorization_requests = $15, id_token_signed_response_alg = $16,
             logo_uri = $17, require_pkce = $18, authorization_details_types = $19,
             jwks_uri = $20, default_scopes = $21, loopback_any_port = $22, held_to_method = $23,
             backchannel_logout_uri = $24, backchannel_logout_session_required = $25,
             frontchannel_logout_uri = $26, frontchannel_logout_session_required = $27,
             rotate_refresh_tokens = $28, require_signed_request_object = $29,
             request_object_signing_alg = $30, userinfo_signed_response_alg = $31,
             authorization_signed_response_alg = $32, introspection_signed_response_alg = $33,
             updated_at = $34, status = $35
           where tenant_id = $1 and id = $2
           returning ${COLUMNS}`,
    values: [...memberValues(a), a.updatedAt, a.status ?? 'active'],
  })
  const { audience } = rows[0]!
  if (audience !== before.audience)
    await claimAudience(tx, { ...a, holder: 'application' }, audience)
  return rows[0]!
}

/** Notes that an application sent its secret in another place than its method names, once a day. */
export const noteMisplacedSecret = (
  tx: Transaction,
  tenantId: string,
  applicationId: string,
  now: Date,
) =>
  execute(tx, {
    name: 'application.note_misplaced_secret',
    text: `update applications set secret_misplaced_at = $3
           where tenant_id = $1 and id = $2
             and (secret_misplaced_at is null or secret_misplaced_at < $3::timestamptz - interval '1 day')`,
    values: [tenantId, applicationId, now],
  })

/** Deletes the application with its secrets. Its tokens become invalid. */
export const deleteApplicationRow = (tx: Transaction, tenantId: string, applicationId: string) =>
  isChanged(tx, {
    name: 'application.delete',
    text: 'delete from applications where tenant_id = $1 and id = $2',
    values: [tenantId, applicationId],
  })

type SecretRotation = {
  readonly tenantId: string
  readonly applicationId: string
  readonly secretId: string
  readonly sha256: Uint8Array
  readonly now: Date
  /** When the previous secrets expire at the latest. `now` ends them immediately. */
  readonly othersUntil: Date
}

/** Adds a secret and sets the expiry of the previous ones. The application must be locked. */
export async function rotateApplicationSecretRow(
  tx: Transaction,
  rotation: SecretRotation,
): Promise<void> {
  const r = rotation
  await tx.query({
    name: 'application.rotate_secret',
    text: `with ended as (
             update application_secrets set expires_at = least(expires_at, $6::timestamptz)
             where tenant_id = $1 and application_id = $2)
           insert into application_secrets
             (tenant_id, application_id, id, secret_sha256, created_at)
           values ($1, $2, $3, $4, $5)`,
    values: [r.tenantId, r.applicationId, r.secretId, Buffer.from(r.sha256), r.now, r.othersUntil],
  })
}

/** Deletes secrets that expired by `now`, or all secrets if the application needs none. */
export const removeApplicationSecrets = (
  tx: Transaction,
  tenantId: string,
  applicationId: string,
  endedBy: Date | 'all',
) =>
  execute(tx, {
    name: 'application.remove_secrets',
    text: `delete from application_secrets where tenant_id = $1 and application_id = $2
             and ($3::timestamptz is null or expires_at <= $3)`,
    values: [tenantId, applicationId, endedBy === 'all' ? null : endedBy],
  })

export const findApplication = (tx: Transaction, tenantId: string, applicationId: string) =>
  firstRow<ApplicationRow>(tx, {
    name: 'application.find',
    text: `select ${COLUMNS} from applications
           where tenant_id = $1 and id = $2 and metadata_url is null`,
    values: [tenantId, applicationId],
  })

/** A client of the token endpoint, of any tenant. */
export type ClientRow = Pick<
  ApplicationRow,
  | 'id'
  | 'tenantId'
  | 'status'
  | 'clientType'
  | 'tokenEndpointAuthMethod'
  | 'heldToMethod'
  | 'audience'
  | 'grantTypes'
  | 'scopes'
  | 'defaultScopes'
  | 'jwks'
  | 'jwksUri'
  | 'dpopBoundAccessTokens'
  | 'rotateRefreshTokens'
  | 'idTokenSignedResponseAlg'
  | 'introspectionSignedResponseAlg'
  | 'metadataUrl'
> & {
  tenantStatus: string
  /** It registered itself (RFC 7591). */
  selfRegistered: boolean
  secrets: readonly ClientSecretRow[]
}

type ClientSecretRow = { readonly sha256: Uint8Array; readonly expiresAt: Date | null }

type FoundClient = Omit<ClientRow, 'secrets'> & {
  secrets: { sha256: string; expiresAt: string | null }[]
}

/** Finds a client by id. Its tenant is unknown, so the transaction must cross tenants. */
export async function findClient(
  tx: Transaction,
  clientId: string,
): Promise<ClientRow | undefined> {
  const { rows } = await tx.query<FoundClient>(findingClients([clientId]))
  return rows.map(withSecrets)[0]
}

/** The same for several clients, in the order of their ids, which differ. */
export async function findClients(
  database: Database,
  clientIds: readonly string[],
): Promise<readonly (ClientRow | undefined)[]> {
  const [found] = await database.together(null, [findingClients(clientIds)], { pool: 'identity' })
  const clients = (found!.rows as FoundClient[]).map(withSecrets)
  const byId = new Map(clients.map((client) => [client.id, client]))
  return clientIds.map((id) => byId.get(id))
}

function findingClients(clientIds: readonly string[]): Statement {
  return {
    name: 'application.client',
    text: `select ${columnsOf(
      `id tenant_id status client_type token_endpoint_auth_method held_to_method audience
       grant_types scopes default_scopes jwks jwks_uri dpop_bound_access_tokens
       rotate_refresh_tokens id_token_signed_response_alg introspection_signed_response_alg`,
      'a',
    )},
             t.status as "tenantStatus", a.metadata_url as "metadataUrl",
             a.registration is not null or a.metadata_url is not null as "selfRegistered",
             (select coalesce(json_agg(json_build_object('sha256', encode(s.secret_sha256, 'hex'),
                'expiresAt', s.expires_at)), '[]')
              from application_secrets s
              where s.tenant_id = a.tenant_id and s.application_id = a.id) as secrets
           from (select id from unnest($1::uuid[]) with ordinality asked (id, place)
             where ${LOOKED_UP} offset 0) asked
           cross join lateral (select * from applications where id = asked.id offset 0) a
           cross join lateral (select status from tenants where id = a.tenant_id offset 0) t`,
    values: [clientIds],
  }
}

function withSecrets(row: FoundClient): ClientRow {
  const secrets = row.secrets.map(({ sha256, expiresAt }) => ({
    sha256: Buffer.from(sha256, 'hex'),
    expiresAt: expiresAt === null ? null : new Date(expiresAt),
  }))
  return { ...row, secrets }
}

/** The hashes of the client's secrets that have not expired. */
export function secretsInForce({ secrets }: ClientRow, now: Date): readonly Uint8Array[] {
  return secrets
    .filter(({ expiresAt }) => expiresAt === null || expiresAt > now)
    .map(({ sha256 }) => sha256)
}

/** Compares the secret with every hash, each in constant time. */
export function isSecretOf(secret: string, hashes: readonly Uint8Array[]): boolean {
  const own = clientSecretSha256(secret)
  return hashes.reduce((found, known) => timingSafeEqual(own, known) || found, false)
}

/** An application in an authorization request. */
export type AuthorizingClientRow = ApplicationRow & {
  readonly tenantName: string
  /** Settings of the tenant: its branding. */
  readonly tenantSettings: Readonly<Record<string, unknown>>
  readonly tenantActive: boolean
  /** It registered itself (RFC 7591). */
  readonly selfRegistered: boolean
}

/** Finds an application by id. Its tenant is unknown, so the transaction must cross tenants. */
export const findAuthorizingClient = (tx: Transaction, clientId: string) =>
  firstRow<AuthorizingClientRow>(tx, {
    name: 'application.authorizing',
    text: `select a.*, t.name as "tenantName", t.settings as "tenantSettings",
             t.status = 'active' as "tenantActive"
           from (select ${COLUMNS}, registration is not null as "selfRegistered"
             from applications where id = $1) a
           join tenants t on t.id = a."tenantId"`,
    values: [clientId],
  })

/** The client_id of a client that is identified by its metadata document. Undefined for a registered one. */
export const findMetadataUrl = (tx: Transaction, tenantId: string, applicationId: string) =>
  firstValue<string>(tx, {
    name: 'application.metadata_url',
    text: `select metadata_url as url from applications
           where tenant_id = $1 and id = $2 and metadata_url is not null`,
    values: [tenantId, applicationId],
  })

/** The client of a token by its client_id: an id, or the URL of a metadata document. Undefined for an agent or wallet. */
export const findTokenClient = (
  tx: Transaction,
  tenantId: string,
  { clientId, isId }: { readonly clientId: string; readonly isId: boolean },
) =>
  firstRow<Pick<ApplicationRow, 'audience' | 'userinfoSignedResponseAlg'>>(tx, {
    name: 'application.of_token',
    text: `select ${columnsOf('audience userinfo_signed_response_alg')} from applications
           where tenant_id = $1 and (id = $2::uuid or metadata_url = $3)`,
    values: [tenantId, isId ? clientId : null, clientId],
  })

/** The application of such a client in a tenant. */
export const findByMetadataUrl = (tx: Transaction, tenantId: string, metadataUrl: string) =>
  firstRow<{ id: string }>(tx, {
    name: 'application.by_metadata_url',
    text: 'select id from applications where tenant_id = $1 and metadata_url = $2',
    values: [tenantId, metadataUrl],
  })

/**
 * The audiences among these that belong to an active application of the tenant, or to the tenant as credential issuer
 * (RFC 8707). @param baseUrl public base URL of the service. Null leaves out the credential issuer.
 */
export const knownAudiences = (
  tx: Transaction,
  tenantId: string,
  audiences: readonly string[],
  baseUrl: string | null = null,
) =>
  allValues<string>(tx, {
    name: 'application.audiences',
    text: `select audience from applications
           where tenant_id = $1 and audience = any($2) and status = 'active'
           union
           select i.audience from (select $3::text || '/credential-issuers/' || slug as audience
             from tenants where id = $1 and credential_issuer_enabled) i
           where i.audience = any($2)`,
    values: [tenantId, audiences, baseUrl],
  })

/** The same for the client of a metadata document, in any tenant. Crosses tenants. */
export const originListedByUrl = (tx: Transaction, origin: string, metadataUrl: string) =>
  onlyValue<boolean>(tx, {
    name: 'application.origin_listed_by_url',
    text: `select exists (select from application_origins o
               join applications a on a.tenant_id = o.tenant_id and a.id = o.application_id
             where o.origin = any($1) and a.metadata_url = $2 and a.status = 'active') as listed`,
    values: [spellingsOf(origin), metadataUrl],
  })

/**
 * True if the application lists the origin or has a redirect URI there. Without an application of that id, so that its page
 * reads the refusal, and if null: if any active one does. Crosses tenants.
 */
export const originListed = (tx: Transaction, origin: string, applicationId: string | null) =>
  onlyValue<boolean>(tx, {
    name: 'application.origin_listed',
    text: `select exists (select from application_origins o
               join applications a on a.tenant_id = o.tenant_id and a.id = o.application_id
             where o.origin = any($1) and a.status = 'active'
               and ($2::uuid is null or a.id = $2
                 or not exists (select from applications where id = $2))) as listed`,
    values: [spellingsOf(origin), applicationId],
  })

/** The origin, and a loopback one without its port too, which the row of an application with a free port has. */
function spellingsOf(origin: string): readonly string[] {
  const host = /^(http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])):[0-9]+$/.exec(origin)?.[1]
  return host === undefined ? [origin] : [origin, host]
}

/** The `authorization_details` types of the tenant's active applications, in order. */
export const authorizationDetailsTypes = (tx: Transaction, tenantId: string, most: number) =>
  allValues<string>(tx, {
    name: 'application.authorization_details_types',
    text: `select distinct unnest(authorization_details_types) as type from applications
           where tenant_id = $1 and status = 'active' order by type limit $2`,
    values: [tenantId, most],
  })

/** The values of $1 to $33, with the defaults. */
function memberValues(a: NewApplication | ReplacedApplication): readonly unknown[] {
  return [
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
    a.requirePkce ?? false,
    a.authorizationDetailsTypes ?? [],
    a.jwksUri ?? null,
    a.defaultScopes ?? null,
    a.loopbackAnyPort ?? false,
    a.heldToMethod ?? false,
    a.backchannelLogoutUri ?? null,
    a.backchannelLogoutSessionRequired ?? false,
    a.frontchannelLogoutUri ?? null,
    a.frontchannelLogoutSessionRequired ?? false,
    a.rotateRefreshTokens ?? true,
    a.requireSignedRequestObject ?? false,
    a.requestObjectSigningAlg ?? null,
    a.userinfoSignedResponseAlg ?? null,
    a.authorizationSignedResponseAlg ?? null,
    a.introspectionSignedResponseAlg ?? null,
  ]
}

const COLUMNS =
  columnsOf(`id tenant_id name status client_type token_endpoint_auth_method held_to_method audience
  redirect_uris post_logout_redirect_uris backchannel_logout_uri backchannel_logout_session_required
  frontchannel_logout_uri frontchannel_logout_session_required allowed_origins grant_types response_types scopes default_scopes jwks
  jwks_uri dpop_bound_access_tokens rotate_refresh_tokens require_pushed_authorization_requests id_token_signed_response_alg logo_uri
  require_signed_request_object request_object_signing_alg userinfo_signed_response_alg
  authorization_signed_response_alg introspection_signed_response_alg
  require_pkce loopback_any_port authorization_details_types metadata_url created_at updated_at`)

const FOREIGN_KEY_VIOLATION = '23503'

/**
 * True if a statement failed because another transaction deleted the application that the row refers to. The
 * transaction of the statement is rolled back.
 */
export function isDeletedClientError(error: unknown): boolean {
  const { code, constraint } = (error ?? {}) as { code?: unknown; constraint?: unknown }
  return code === FOREIGN_KEY_VIOLATION && String(constraint).endsWith('_client_id_fkey')
}

/** One page, newest first, after the row of `createdAt` and `id`. */
export const listApplicationRows = listing<ApplicationRow>(
  'application.list',
  `select ${COLUMNS} from applications where tenant_id = $1 and metadata_url is null`,
)
