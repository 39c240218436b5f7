/** Shapes and replies of SCIM (RFC 7643, RFC 7644). */
import { z } from 'zod'
import type { JsonObject } from '../../../actors/identity/scim/protocol.js'
import { SCIM_MEDIA_TYPE } from '../../response/scim-errors.js'
import { json, type ReplyRule } from '../../route.js'

/** Fields that all routes of SCIM share. */
export const scimRoute = {
  tags: ['SCIM'],
  exposure: 'public',
  security: { scheme: 'scim' },
  errors: 'scim',
  throttle: [
    {
      policy: 'scim',
      by: ({ principal }: { principal: { tokenId: string } }) => principal.tokenId,
    },
  ],
} as const

const Meta = z.object({
  resourceType: z.string(),
  created: z.iso.datetime().optional(),
  lastModified: z.iso.datetime().optional(),
  location: z.string(),
  version: z.string().optional().meta({ description: 'The weak entity tag.' }),
})

const Values = z.array(z.looseObject({ value: z.string().optional() }))

export const ScimUser = z
  .looseObject({
    schemas: z.array(z.string()),
    id: z.string(),
    externalId: z.string().optional(),
    userName: z.string().optional(),
    name: z.looseObject({}).optional(),
    displayName: z.string().optional(),
    active: z.boolean().optional().meta({ description: 'False while the user is suspended.' }),
    emails: Values.optional(),
    locale: z.string().optional(),
    timezone: z.string().optional(),
    roles: Values.optional(),
    meta: Meta.partial().optional(),
  })
  .meta({ id: 'ScimUser', description: 'A user of the tenant (RFC 7643 section 4.1).' })

export const ScimGroup = z
  .looseObject({
    schemas: z.array(z.string()),
    id: z.string(),
    externalId: z.string().optional(),
    displayName: z.string().optional(),
    members: Values.optional(),
    meta: Meta.partial().optional(),
  })
  .meta({ id: 'ScimGroup', description: 'A role of the tenant (RFC 7643 section 4.2).' })

export const ScimList = z
  .object({
    schemas: z.array(z.string()),
    totalResults: z.int(),
    startIndex: z.int(),
    itemsPerPage: z.int(),
    Resources: z.array(z.looseObject({})),
  })
  .meta({ id: 'ScimListResponse' })

export const ScimDocument = z.looseObject({ schemas: z.array(z.string()) })

const requestOf = (id: string, description: string) =>
  json(z.looseObject({}).meta({ id, description }), { contentTypes: [SCIM_MEDIA_TYPE] })

export const userBody = requestOf(
  'ScimUserRequest',
  'A user: schemas, userName and other attributes of RFC 7643 section 4.1 and of the enterprise extension.',
)
export const groupBody = requestOf(
  'ScimGroupRequest',
  'A group: schemas, displayName, and members by the ids of users.',
)
export const patchBody = requestOf(
  'ScimPatchRequest',
  'A PatchOp message with Operations (RFC 7644 section 3.5.2).',
)
export const searchBody = requestOf(
  'ScimSearchRequest',
  'A SearchRequest: filter, startIndex, count, attributes, excludedAttributes (RFC 7644 section 3.4.3).',
)

const list = (description: string) => z.string().max(4_096).optional().meta({ description })
export const AttributesQuery = z.object({
  attributes: list('Names of the attributes of the answer, separated by commas.'),
  excludedAttributes: list('Names of attributes that the answer leaves out.'),
})
export const ListQuery = AttributesQuery.extend({
  filter: z
    .string()
    .max(8_192)
    .optional()
    .meta({
      description:
        'Users: eq, ne, co, sw and pr on userName, externalId, id, active and emails.value; eq, ne, gt, ge, lt, le and ' +
        'pr on meta.lastModified. Combined by and, or, not and parentheses.',
    }),
  startIndex: z.string().max(20).optional().meta({ description: 'From 1. Default 1.' }),
  count: z.string().max(20).optional().meta({ description: 'Resources of a page. Default 100.' }),
})
export const IfMatch = z.object({
  'if-match': z.string().max(1_024).optional().meta({
    description: 'The version that the change is for. Another one is 412.',
  }),
})

type Found = {
  readonly resource: Readonly<Record<string, unknown>>
  readonly version: string
}

/** A resource with its version. A matching If-None-Match gets 304. */
export function scimResource<Outcome extends Found>(
  status: 200 | 201,
  schema: z.ZodType,
  locationOf?: (outcome: Outcome, baseUrl: string) => string,
): ReplyRule<Outcome> {
  return {
    docs: [{ status, contentType: SCIM_MEDIA_TYPE, schema }],
    render: (outcome, { baseUrl }) => ({
      form: 'body',
      status,
      contentType: SCIM_MEDIA_TYPE,
      body: JSON.stringify(outcome.resource),
      etag: outcome.version,
      ...(locationOf === undefined ? {} : { headers: { location: locationOf(outcome, baseUrl) } }),
    }),
  }
}

/** A document without a version. */
export function scimDocument<Outcome>(
  schema: z.ZodType,
  map: (outcome: Outcome) => unknown,
): ReplyRule<Outcome> {
  return {
    docs: [{ status: 200, contentType: SCIM_MEDIA_TYPE, schema }],
    render: (outcome) => ({
      form: 'body',
      status: 200,
      contentType: SCIM_MEDIA_TYPE,
      body: JSON.stringify(map(outcome)),
    }),
  }
}

type Asked = z.output<typeof AttributesQuery>
/** The lists of attributes of a query. */
export const askedOf = ({ attributes, excludedAttributes }: Asked) => ({
  attributes: attributes ?? null,
  excludedAttributes: excludedAttributes ?? null,
})

const LIST_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:ListResponse'

/** A page of resources. */
export const listed = scimDocument(
  ScimList,
  (page: { total: number; startIndex: number; resources: readonly JsonObject[] }) => ({
    schemas: [LIST_SCHEMA],
    totalResults: page.total,
    startIndex: page.startIndex,
    itemsPerPage: page.resources.length,
    Resources: page.resources,
  }),
)
