/** ServiceProviderConfig, Schemas and ResourceTypes (RFC 7643 sections 5 to 7, RFC 7644 section 4). */
import { ScimFault } from './faults.js'
import type { Handling } from './needs.js'
import type { Described, JsonObject, ScimRefusal } from './protocol.js'
import { ENTERPRISE_SCHEMA, GROUP_SCHEMA, SCHEMAS, USER_SCHEMA } from './schema.js'

const LIST_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:ListResponse'
const CONFIG_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig'
const TYPE_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:ResourceType'
const SCHEMA_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:Schema'

const supported = (is: boolean) => ({ supported: is })

export const readScimServiceProviderConfig: Handling<'readScimServiceProviderConfig'> = async ({
  base,
  documentation,
  maxResults,
}) => ({
  tag: 'described',
  document: {
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
  },
})

/** One schema, or all of them as a list. */
// Also the operation `listScimSchemas`.
export const readScimSchema: Handling<'readScimSchema'> = async ({ base, groups }, { id }) => {
  const all = SCHEMAS.filter((schema) => groups || schema.id !== GROUP_SCHEMA).map((schema) => ({
    schemas: [SCHEMA_SCHEMA],
    ...schema,
    meta: { resourceType: 'Schema', location: `${base}/Schemas/${schema.id}` },
  }))
  return oneOf(all, id, ({ id: own }) => own)
}

/** One resource type, or all of them as a list. */
// Also the operation `listScimResourceTypes`.
export const readScimResourceType: Handling<'readScimResourceType'> = async (
  { base, groups },
  { id },
) => {
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
): Described | ScimRefusal {
  if (id === null) return { tag: 'described', document: listOf(all, all.length, 1) }
  const document = all.find((one) => keyOf(one).toLowerCase() === id.toLowerCase())
  return document === undefined
    ? new ScimFault(404, null, 'The resource does not exist.').refusal
    : { tag: 'described', document }
}

/** A ListResponse (RFC 7644 section 3.4.2). */
function listOf(
  resources: readonly JsonObject[],
  totalResults: number,
  startIndex: number,
): JsonObject {
  const itemsPerPage = resources.length
  return { schemas: [LIST_SCHEMA], totalResults, startIndex, itemsPerPage, Resources: resources }
}
