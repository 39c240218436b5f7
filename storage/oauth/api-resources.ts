/** API resources: the audiences that tenants registered for their APIs and MCP servers (RFC 8707). */
import type { Transaction } from '../platform/sql.js'
import { claimAudience } from './audiences.js'

export type ResourceScope = {
  readonly name: string
  readonly description: string
  /** What the scope permits, for the consent page. */
  readonly kind: 'read' | 'write' | 'money'
}

export type ApiResourceRow = {
  readonly id: string
  readonly tenantId: string
  /** As registered: the `aud` of its tokens. */
  readonly resource: string
  readonly name: string
  readonly scopes: readonly ResourceScope[]
  readonly allowedClients: 'any' | 'listed'
  /** Ids of applications, or URLs of client metadata documents. */
  readonly clientIds: readonly string[]
  readonly requireDpop: boolean
  /** Null selects the lifetime of the deployment. */
  readonly accessTokenLifetimeSecs: number | null
  readonly tokenStatusList: boolean
  readonly createdAt: Date
  readonly updatedAt: Date
}

const RESOURCE_CHARACTERS_MAX = 512

/**
 * The canonical form, in which two spellings of one resource are equal: scheme and host in lower case, no default port,
 * `/` for an empty path (RFC 3986 section 6.2). Null unless it is an absolute http or https URI without fragment and
 * user.
 */
export function resourceKey(uri: string): string | null {
  if (uri.length > RESOURCE_CHARACTERS_MAX || !/^[\x21-\x7e]+$/.test(uri)) return null
  if (uri.includes('#') || uri.includes('\\') || !/^https?:\/\/[^/?]/i.test(uri)) return null
  if (!URL.canParse(uri)) return null
  const { href, username, password } = new URL(uri)
  return username === '' && password === '' ? href : null
}

/** True if the tenant has fewer than `most` resources. Holds the tenant until the transaction ends. */
export async function hasRoomForApiResource(
  tx: Transaction,
  tenantId: string,
  most: number,
): Promise<boolean> {
  await tx.query({
    name: 'api_resource.turn',
    text: 'select from tenants where id = $1 for no key update',
    values: [tenantId],
  })
  const { rows } = await tx.query<{ room: boolean }>({
    name: 'api_resource.room',
    text: 'select count(*) < $2 as room from api_resources where tenant_id = $1',
    values: [tenantId, most],
  })
  return rows[0]!.room
}

/** Inserts the resource. @throws an error of `isAudienceTaken`. */
export async function insertApiResource(tx: Transaction, row: ApiResourceRow): Promise<void> {
  await tx.query({
    name: 'api_resource.insert',
    text: `insert into api_resources (tenant_id, id, resource, resource_key, name, scopes,
             allowed_clients, client_ids, require_dpop, access_token_lifetime_secs,
             token_status_list, created_at, updated_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
    values: [...memberValues(row), row.createdAt, row.updatedAt],
  })
  await claimAudience(tx, { ...row, holder: 'resource' }, row.resource)
}

/** Replaces every member that can change. @throws an error of `isAudienceTaken`. */
export async function updateApiResource(
  tx: Transaction,
  row: ApiResourceRow,
  before: Pick<ApiResourceRow, 'resource'>,
): Promise<void> {
  await tx.query({
    name: 'api_resource.update',
    text: `update api_resources set resource = $3, resource_key = $4, name = $5, scopes = $6,
             allowed_clients = $7, client_ids = $8, require_dpop = $9,
             access_token_lifetime_secs = $10, token_status_list = $11, updated_at = $12
           where tenant_id = $1 and id = $2`,
    values: [...memberValues(row), row.updatedAt],
  })
  if (row.resource !== before.resource)
    await claimAudience(tx, { ...row, holder: 'resource' }, row.resource)
}

/** Locks the resource until the transaction ends, so that changes are serialised. */
export async function lockApiResource(
  tx: Transaction,
  tenantId: string,
  id: string,
): Promise<ApiResourceRow | undefined> {
  const { rows } = await tx.query<ApiResourceRow>({
    name: 'api_resource.lock',
    text: `select ${COLUMNS} from api_resources where tenant_id = $1 and id = $2 for update`,
    values: [tenantId, id],
  })
  return rows[0]
}

export async function findApiResource(
  tx: Transaction,
  tenantId: string,
  id: string,
): Promise<ApiResourceRow | undefined> {
  const { rows } = await tx.query<ApiResourceRow>({
    name: 'api_resource.find',
    text: `select ${COLUMNS} from api_resources where tenant_id = $1 and id = $2`,
    values: [tenantId, id],
  })
  return rows[0]
}

/** One page, newest first, after the row of `createdAt` and `id`. */
export async function listApiResources(
  tx: Transaction,
  tenantId: string,
  limit: number,
  after: { readonly createdAt: Date; readonly id: string } | null,
): Promise<ApiResourceRow[]> {
  const { rows } = await tx.query<ApiResourceRow>({
    name: 'api_resource.list',
    text: `select ${COLUMNS} from api_resources
           where tenant_id = $1 and ($3::timestamptz is null or (created_at, id) < ($3, $4::uuid))
           order by created_at desc, id desc limit $2`,
    values: [tenantId, limit, after?.createdAt ?? null, after?.id ?? null],
  })
  return rows
}

/** Deletes the resource. Its tokens become invalid. */
export async function deleteApiResource(
  tx: Transaction,
  tenantId: string,
  id: string,
): Promise<void> {
  await tx.query({
    name: 'api_resource.delete',
    text: 'delete from api_resources where tenant_id = $1 and id = $2',
    values: [tenantId, id],
  })
}

/**
 * Finds the resource of a URI in any spelling, of any tenant. Its tenant is unknown, so the transaction crosses tenants.
 * Undefined for an unknown resource, and for a text that is no resource URI.
 */
export async function findResourceByUri(
  tx: Transaction,
  uri: string,
): Promise<ApiResourceRow | undefined> {
  const key = resourceKey(uri)
  if (key === null) return undefined
  const { rows } = await tx.query<ApiResourceRow>({
    name: 'api_resource.by_uri',
    text: `select ${COLUMNS} from api_resources where resource_key = $1`,
    values: [key],
  })
  return rows[0]
}

/** The resources of the tenant among these URIs, in any spelling. */
export async function findResourcesOfTenant(
  tx: Transaction,
  tenantId: string,
  uris: readonly string[],
): Promise<ApiResourceRow[]> {
  const keys = uris.map(resourceKey).filter((key) => key !== null)
  if (keys.length === 0) return []
  const { rows } = await tx.query<ApiResourceRow>({
    name: 'api_resource.of_tenant',
    text: `select ${COLUMNS} from api_resources where tenant_id = $1 and resource_key = any($2)`,
    values: [tenantId, keys],
  })
  return rows
}

/** The resources of the tenant with these ids. */
export async function findResourcesById(
  tx: Transaction,
  tenantId: string,
  ids: readonly string[],
): Promise<ApiResourceRow[]> {
  const { rows } = await tx.query<ApiResourceRow>({
    name: 'api_resource.by_id',
    text: `select ${COLUMNS} from api_resources where tenant_id = $1 and id = any($2)`,
    values: [tenantId, ids],
  })
  return rows
}

/** The names of the scopes of the tenant's resources: of all, or of those that are open to any client. */
export async function resourceScopeNames(
  tx: Transaction,
  tenantId: string,
  which: 'all' | 'open',
): Promise<string[]> {
  const { rows } = await tx.query<{ name: string }>({
    name: 'api_resource.scope_names',
    text: `select distinct s ->> 'name' as name
           from api_resources cross join lateral jsonb_array_elements(scopes) s
           where tenant_id = $1 and ($2 or allowed_clients = 'any')`,
    values: [tenantId, which === 'all'],
  })
  return rows.map(({ name }) => name)
}

/** $1 to $11 of the statements that write. */
function memberValues(row: ApiResourceRow): readonly unknown[] {
  return [
    row.tenantId,
    row.id,
    row.resource,
    resourceKey(row.resource),
    row.name,
    JSON.stringify(row.scopes),
    row.allowedClients,
    row.clientIds,
    row.requireDpop,
    row.accessTokenLifetimeSecs,
    row.tokenStatusList,
  ]
}

const COLUMNS = `id, tenant_id as "tenantId", resource, name, scopes,
  allowed_clients as "allowedClients", client_ids as "clientIds", require_dpop as "requireDpop",
  access_token_lifetime_secs as "accessTokenLifetimeSecs", token_status_list as "tokenStatusList",
  created_at as "createdAt", updated_at as "updatedAt"`
