/**
 * Tokens for API resources (RFC 8707): which resources a request names, who may use them, and what they demand of their
 * tokens. See docs/guides/oauth/api-resources.md.
 */
import type { ApiResource } from '../../../domain/entities/api-resource.js'
import {
  findResourcesById,
  findResourcesOfTenant,
  resourceKey,
} from '../../../../storage/oauth/api-resources.js'
import type { Database } from '../../../../storage/platform/sql.js'
import type { TtlCache } from '../../../platform/batching/ttl-cache.js'

/** Scopes that may be requested in addition to a resource's scopes. */
const ADDITIONAL = new Set(['openid', 'profile', 'email', 'offline_access'])
const NONE: readonly ApiResource[] = []

export interface ResourceLookup {
  /** The resources of the tenant among these URIs, in any spelling. */
  byUri(tenantId: string, uris: readonly string[]): Promise<readonly ApiResource[]>
  /** The resources of the tenant with these ids that still exist. */
  byId(tenantId: string, ids: readonly string[]): Promise<readonly ApiResource[]>
}

/** Only resources that exist are cached, so that a new one is usable immediately. Null reads every time. */
export function resourceLookup(
  database: Database,
  cache: TtlCache<ApiResource> | null,
): ResourceLookup {
  async function look(
    tenantId: string,
    keys: readonly string[],
    read: () => Promise<readonly ApiResource[]>,
    keyOf: (row: ApiResource) => string,
  ): Promise<readonly ApiResource[]> {
    const known = keys.map((key) => cache?.peek(`${tenantId} ${key}`))
    if (known.every((row) => row !== undefined)) return known
    const rows = await read()
    for (const row of rows)
      void cache?.get(`${tenantId} ${keyOf(row)}`, [row.id], () => Promise.resolve(row))
    return rows
  }
  return {
    byUri(tenantId, uris) {
      const keys = [...new Set(uris.map(resourceKey))].filter((key) => key !== null)
      if (keys.length === 0) return Promise.resolve(NONE)
      const read = () =>
        database.tenant(tenantId, (tx) => findResourcesOfTenant(tx, tenantId, uris))
      return look(tenantId, keys, read, (row) => resourceKey(row.resource)!)
    },
    byId(tenantId, ids) {
      const read = () => database.tenant(tenantId, (tx) => findResourcesById(tx, tenantId, ids))
      return look(tenantId, ids, read, (row) => row.id)
    },
  }
}

/** True if the client may get tokens for the resource. */
export function mayUse(
  { allowedClients, clientIds }: Pick<ApiResource, 'allowedClients' | 'clientIds'>,
  clientId: string,
): boolean {
  return allowedClients === 'any' || clientIds.includes(clientId)
}

export type NamedResources =
  | { readonly resources: readonly ApiResource[] }
  | { readonly fault: string }

/**
 * The API resources that a request names. Empty if it names none: then the audiences of applications decide. A token is
 * for API resources alone, so that none of them can use it at an application or at this service.
 */
export async function namedResources(
  lookup: ResourceLookup,
  {
    id,
    tenantId,
    metadataUrl,
  }: { readonly id: string; readonly tenantId: string; readonly metadataUrl?: string | null },
  requested: readonly string[],
): Promise<NamedResources> {
  if (requested.length === 0) return { resources: NONE }
  const resources = await lookup.byUri(tenantId, requested)
  if (resources.length === 0) return { resources }
  const keys = resources.map(({ resource }) => resourceKey(resource))
  if (!requested.every((uri) => keys.includes(resourceKey(uri))))
    return { fault: 'an API resource cannot be combined with another audience' }
  return resources.every((resource) => mayUse(resource, metadataUrl ?? id))
    ? { resources }
    : { fault: 'the client is not allowed to use the resource' }
}

/** The names of the scopes of these resources. */
export function scopesOfResources(resources: readonly ApiResource[]): readonly string[] {
  return [...new Set(resources.flatMap(({ scopes }) => scopes.map(({ name }) => name)))]
}

/** The scopes that do not belong to the resources and are not allowed in addition. */
export function foreignScopes(
  scopes: readonly string[],
  resources: readonly ApiResource[],
): readonly string[] {
  const own = scopesOfResources(resources)
  return scopes.filter((scope) => !own.includes(scope) && !ADDITIONAL.has(scope))
}

/**
 * The scopes of an authorization request without `scope`: the application's scopes that the resources know. If it has
 * none of them, the scopes that only read.
 */
export function defaultResourceScopes(
  held: readonly string[],
  resources: readonly ApiResource[],
): readonly string[] {
  const all = resources.flatMap(({ scopes }) => scopes)
  const additional = held.filter((scope) => ADDITIONAL.has(scope))
  const listed = all.filter(({ name }) => held.includes(name))
  const reading = all.filter(({ kind }) => kind === 'read')
  const chosen = [listed, reading, all].find((some) => some.length > 0) ?? []
  return [...new Set([...additional, ...chosen.map(({ name }) => name)])]
}

/**
 * The scopes that a client may have in addition to a resource's scopes: its own user scopes, and `offline_access` if it
 * gets refresh tokens, since the metadata of this service offers it to every client.
 */
export function scopesBeside({
  scopes,
  grantTypes,
}: {
  readonly scopes: readonly string[]
  readonly grantTypes: readonly string[]
}): readonly string[] {
  const offline = grantTypes.includes('refresh_token') ? ['offline_access'] : []
  return [...scopes.filter((scope) => ADDITIONAL.has(scope)), ...offline]
}

/** The granted scopes that one client may have at these resources. User scopes come from the client. */
export function resourceScopesWithin(
  granted: readonly string[],
  held: readonly string[],
  resources: readonly ApiResource[],
): readonly string[] {
  const own = scopesOfResources(resources)
  return granted.filter(
    (scope) => own.includes(scope) || (ADDITIONAL.has(scope) && held.includes(scope)),
  )
}

/**
 * The scopes of a client that acts without a user: those that it lists among its own, and all scopes of a resource that
 * lists the client. A client that registered itself chose its own scopes, so they do not count.
 */
export function scopesOfService(
  client: {
    readonly id: string
    readonly scopes: readonly string[]
    readonly selfRegistered: boolean
  },
  resources: readonly ApiResource[],
): readonly string[] {
  const listed = resources.filter(({ clientIds }) => clientIds.includes(client.id))
  const held = client.selfRegistered ? [] : client.scopes
  const own = new Set([...scopesOfResources(listed), ...held])
  return scopesOfResources(resources).filter((scope) => own.has(scope))
}

export const RESOURCE_NEEDS_PROOF =
  'the resource needs tokens that are bound to a key: send a DPoP proof'

export function demandsDpop(resources: readonly ApiResource[]): boolean {
  return resources.some(({ requireDpop }) => requireDpop)
}

/** The shortest lifetime of the resources in seconds. `usual` if none has its own. */
export function resourceLifetimeSecs(
  resources: readonly Pick<ApiResource, 'accessTokenLifetimeSecs'>[],
  usual: number,
): number {
  const own = resources.map((one) => one.accessTokenLifetimeSecs).filter((secs) => secs !== null)
  return own.length === 0 ? usual : Math.min(...own)
}

/** What the resources mean for a token: its claim `resource_id`, and whether it gets an entry in a status list. */
export function claimsOfResources(
  resources: readonly Pick<ApiResource, 'id' | 'tokenStatusList'>[],
): { readonly resourceIds: readonly string[] | null; readonly tokenStatusList: boolean } {
  return {
    resourceIds: resources.length === 0 ? null : resources.map(({ id }) => id),
    tokenStatusList: resources.some(({ tokenStatusList }) => tokenStatusList),
  }
}
