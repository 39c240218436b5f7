/** API resources: the audiences that tenants registered for their APIs and MCP servers (RFC 8707). */
import { type ApiResource, apiResource } from '../../actors/domain/entities/api-resource.js'
import { COMPARED, httpsUrl } from '../../actors/domain/entities/https-url.js'
import { entityTable } from '../platform/portable/entity-table.js'
import { allRows, allValues, firstRow, type Transaction } from '../platform/sql.js'

const RESOURCE_CHARACTERS_MAX = 512

/**
 * The canonical form, in which two spellings of one resource are equal: scheme and host in lower case, no default port,
 * `/` for an empty path (RFC 3986 section 6.2). Null unless it is an absolute https URI without fragment and user,
 * or an http one of a loopback host.
 */
export function resourceKey(uri: string): string | null {
  return httpsUrl(uri, { ...COMPARED, max: RESOURCE_CHARACTERS_MAX })?.href ?? null
}

// `listApiResources`, `createApiResource`, `getApiResource`,
// `updateApiResource`, `deleteApiResource`.
export const apiResourceTable = entityTable(apiResource, {
  resource_key: ({ resource }) => resourceKey(resource),
})
const { columns: COLUMNS } = apiResourceTable

/**
 * Finds the resource of a URI in any spelling, of any tenant. Its tenant is unknown, so the transaction crosses tenants.
 * Undefined for an unknown resource, and for a text that is no resource URI.
 */
export async function findResourceByUri(
  tx: Transaction,
  uri: string,
): Promise<ApiResource | undefined> {
  const key = resourceKey(uri)
  if (key === null) return undefined
  return firstRow<ApiResource>(tx, {
    name: 'api_resource.by_uri',
    text: `select ${COLUMNS} from api_resources where resource_key = $1`,
    values: [key],
  })
}

/** The resources of the tenant among these URIs, in any spelling. */
export async function findResourcesOfTenant(
  tx: Transaction,
  tenantId: string,
  uris: readonly string[],
): Promise<ApiResource[]> {
  const keys = uris.map(resourceKey).filter((key) => key !== null)
  if (keys.length === 0) return []
  return allRows<ApiResource>(tx, {
    name: 'api_resource.of_tenant',
    text: `select ${COLUMNS} from api_resources where tenant_id = $1 and resource_key = any($2)`,
    values: [tenantId, keys],
  })
}

/** The resources of the tenant with these ids. */
export const findResourcesById = (tx: Transaction, tenantId: string, ids: readonly string[]) =>
  allRows<ApiResource>(tx, {
    name: 'api_resource.by_id',
    text: `select ${COLUMNS} from api_resources where tenant_id = $1 and id = any($2)`,
    values: [tenantId, ids],
  })

/** The names of the scopes of the tenant's resources: of all, or of those that are open to any client. */
export const resourceScopeNames = (tx: Transaction, tenantId: string, which: 'all' | 'open') =>
  allValues<string>(tx, {
    name: 'api_resource.scope_names',
    text: `select distinct s ->> 'name' as name
           from api_resources cross join lateral jsonb_array_elements(scopes) s
           where tenant_id = $1 and ($2 or allowed_clients = 'any')`,
    values: [tenantId, which === 'all'],
  })
