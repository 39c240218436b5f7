/** ServiceProviderConfig, Schemas and ResourceTypes (RFC 7643 sections 5 to 7, RFC 7644 section 4). */
import { ScimFault } from './faults.js'
import type { JsonObject } from './resource.js'
import { ENTERPRISE_SCHEMA, GROUP_SCHEMA, SCHEMAS, USER_SCHEMA } from './schema.js'

export const LIST_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:ListResponse'
const CONFIG_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig'
const TYPE_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:ResourceType'
const SCHEMA_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:Schema'

export type DocumentFacts = {
  /** The public URL of `/scim/v2`. */
  readonly base: string
  readonly documentation: string | null
  readonly maxResults: number
  readonly groups: boolean
}

const supported = (is: boolean) => ({ supported: is })

export function providerConfig({ base, documentation, maxResults }: DocumentFacts): JsonObject {
  return {
    schemas: [CONFIG_SCHEMA],
    ...(documentation === null ? {} : { documentationUri: documentation }),
    patch: supported(true),
    bulk: { ...supported(false), maxOperations: 0, maxPayloadSize: 0 },
    filter: { ...supported(true), maxResults },
    changePassword: supported(false),
    sort: supported(false),
    etag: supported(true),
    authenticationSchemes: [
      {
        type: 'oauthbearertoken',
        name: 'OAuth Bearer Token',
        description: 'A SCIM token of the tenant in the Authorization header.',
        specUri: 'https://www.rfc-editor.org/info/rfc6750',
        primary: true,
      },
    ],
    meta: { resourceType: 'ServiceProviderConfig', location: `${base}/ServiceProviderConfig` },
  }
}

/** One schema, or all of them as a list. @throws {ScimFault} 404 */
export function schemaDocument({ base, groups }: DocumentFacts, id: string | null): JsonObject {
  const all = SCHEMAS.filter((schema) => groups || schema.id !== GROUP_SCHEMA).map((schema) => ({
    schemas: [SCHEMA_SCHEMA],
    ...schema,
    meta: { resourceType: 'Schema', location: `${base}/Schemas/${schema.id}` },
  }))
  return oneOf(all, id, ({ id: own }) => own)
}

/** One resource type, or all of them as a list. @throws {ScimFault} 404 */
export function resourceTypeDocument(
  { base, groups }: DocumentFacts,
  id: string | null,
): JsonObject {
  const type = (name: string, endpoint: string, schema: string, more: JsonObject) => ({
    schemas: [TYPE_SCHEMA],
    id: name,
    name,
    endpoint,
    schema,
    ...more,
    meta: { resourceType: 'ResourceType', location: `${base}/ResourceTypes/${name}` },
  })
  const extended = { schemaExtensions: [{ schema: ENTERPRISE_SCHEMA, required: false }] }
  const all = [
    type('User', '/Users', USER_SCHEMA, { description: 'User account', ...extended }),
    ...(groups ? [type('Group', '/Groups', GROUP_SCHEMA, { description: 'Group' })] : []),
  ]
  return oneOf(all, id, ({ name }) => name)
}

function oneOf<T extends JsonObject>(
  all: readonly T[],
  id: string | null,
  keyOf: (one: T) => string,
): JsonObject {
  if (id === null) return listOf(all, all.length, 1)
  const found = all.find((one) => keyOf(one).toLowerCase() === id.toLowerCase())
  if (found === undefined) throw new ScimFault(404, null, 'The resource does not exist.')
  return found
}

/** A ListResponse (RFC 7644 section 3.4.2). */
export function listOf(
  resources: readonly JsonObject[],
  totalResults: number,
  startIndex: number,
): JsonObject {
  const itemsPerPage = resources.length
  return { schemas: [LIST_SCHEMA], totalResults, startIndex, itemsPerPage, Resources: resources }
}
