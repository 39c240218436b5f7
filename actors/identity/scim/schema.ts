/** The attributes of SCIM resources, as RFC 7643 defines them. Reading, PATCH, filters and GET /Schemas follow this table. */

export const USER_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:User'
export const ENTERPRISE_SCHEMA = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'
export const GROUP_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:Group'

type Kind = 'string' | 'boolean' | 'complex' | 'reference' | 'binary'

/** One attribute (RFC 7643 section 7). */
export type Attribute = {
  readonly name: string
  readonly type: Kind
  readonly multiValued: boolean
  readonly description: string
  readonly required: boolean
  readonly caseExact: boolean
  readonly mutability: 'readWrite' | 'readOnly' | 'immutable'
  readonly returned: 'always' | 'default'
  readonly uniqueness: 'none' | 'server'
  readonly canonicalValues?: readonly string[]
  readonly referenceTypes?: readonly string[]
  readonly subAttributes?: readonly Attribute[]
}

type More = Partial<Omit<Attribute, 'name' | 'description'>>

function attribute(name: string, description: string, more: More = {}): Attribute {
  return {
    name,
    type: 'string',
    multiValued: false,
    description,
    required: false,
    caseExact: false,
    mutability: 'readWrite',
    returned: 'default',
    uniqueness: 'none',
    ...more,
  }
}

/** The sub-attributes of a multi-valued attribute (RFC 7643 section 2.4). */
function plural(
  name: string,
  description: string,
  value: Attribute,
  canonicalValues: readonly string[] = [],
): Attribute {
  return attribute(name, description, {
    type: 'complex',
    multiValued: true,
    subAttributes: [
      value,
      attribute('display', 'A name of the value, for display.'),
      attribute(
        'type',
        'The kind of the value.',
        canonicalValues.length === 0 ? {} : { canonicalValues },
      ),
      attribute('primary', 'True for the preferred value. At most one value is primary.', {
        type: 'boolean',
      }),
    ],
  })
}

const uri = { type: 'reference', referenceTypes: ['external'], caseExact: true } as const
const readOnly = { mutability: 'readOnly' } as const

/** The attributes that all resources share (RFC 7643 section 3.1). They belong to no schema. */
const COMMON: readonly Attribute[] = [
  attribute('schemas', 'The schemas of the resource.', {
    multiValued: true,
    returned: 'always',
    caseExact: true,
    ...readOnly,
  }),
  attribute('id', 'The identifier of the resource, which the server assigns.', {
    returned: 'always',
    caseExact: true,
    uniqueness: 'server',
    ...readOnly,
  }),
  attribute('externalId', 'The identifier of the resource at the client.', { caseExact: true }),
  attribute('meta', 'Data about the resource.', {
    type: 'complex',
    ...readOnly,
    subAttributes: ['resourceType', 'created', 'lastModified', 'location', 'version'].map((name) =>
      attribute(name, 'See RFC 7643 section 3.1.', { caseExact: true, ...readOnly }),
    ),
  }),
]

const USER: readonly Attribute[] = [
  attribute('userName', 'The name of the user, unique in the tenant without regard to case.', {
    required: true,
    uniqueness: 'server',
  }),
  attribute('name', 'The parts of the name.', {
    type: 'complex',
    subAttributes: [
      attribute('formatted', 'The full name, for display.'),
      attribute('familyName', 'The family name. Also the claim family_name.'),
      attribute('givenName', 'The given name. Also the claim given_name.'),
      attribute('middleName', 'The middle names.'),
      attribute('honorificPrefix', 'A title in front of the name.'),
      attribute('honorificSuffix', 'A suffix of the name.'),
    ],
  }),
  attribute('displayName', 'The name of the user in this tenant. Also the claim name.'),
  attribute('nickName', 'The casual name.'),
  attribute('profileUrl', 'A page about the user.', uri),
  attribute('title', 'The job title.'),
  attribute('userType', 'The relation to the organization, such as Employee.'),
  attribute('preferredLanguage', 'The preferred languages, as in Accept-Language.'),
  attribute('locale', 'The language tag for formats (RFC 5646). Also the claim locale.'),
  attribute('timezone', 'A name of the IANA time zone database. Also the claim zoneinfo.'),
  attribute('active', 'False while the user is suspended in the tenant.', { type: 'boolean' }),
  plural('emails', 'Mail addresses.', attribute('value', 'The address.'), [
    'work',
    'home',
    'other',
  ]),
  plural('phoneNumbers', 'Telephone numbers.', attribute('value', 'The number.'), [
    'work',
    'home',
    'mobile',
    'fax',
    'pager',
    'other',
  ]),
  plural('ims', 'Addresses for instant messages.', attribute('value', 'The address.')),
  plural('photos', 'Pictures of the user.', attribute('value', 'The URL of the picture.', uri), [
    'photo',
    'thumbnail',
  ]),
  attribute(
    'addresses',
    'Postal addresses. The primary one, else the first, is the claim address.',
    {
      type: 'complex',
      multiValued: true,
      subAttributes: [
        attribute('formatted', 'The full address, for display.'),
        attribute('streetAddress', 'Street and number.'),
        attribute('locality', 'The city.'),
        attribute('region', 'The state or region.'),
        attribute('postalCode', 'The postal code.'),
        attribute('country', 'The country, ISO 3166-1 alpha-2.'),
        attribute('type', 'The kind of the address.', {
          canonicalValues: ['work', 'home', 'other'],
        }),
        attribute('primary', 'True for the preferred address.', { type: 'boolean' }),
      ],
    },
  ),
  attribute('groups', 'The groups of the user. Changed through the groups.', {
    type: 'complex',
    multiValued: true,
    ...readOnly,
    subAttributes: [
      attribute('value', 'The id of the group.', { caseExact: true, ...readOnly }),
      attribute('$ref', 'The URL of the group.', {
        type: 'reference',
        referenceTypes: ['Group'],
        caseExact: true,
        ...readOnly,
      }),
      attribute('display', 'The name of the group.', readOnly),
      attribute('type', 'The kind of membership.', { canonicalValues: ['direct'], ...readOnly }),
    ],
  }),
  plural('entitlements', 'Entitlements of the user.', attribute('value', 'The entitlement.')),
  plural(
    'roles',
    'The roles of the user in the tenant.',
    attribute('value', 'The name of the role.', { caseExact: true }),
  ),
  plural(
    'x509Certificates',
    'Certificates of the user.',
    attribute('value', 'DER in base64.', { type: 'binary', caseExact: true }),
  ),
]

const ENTERPRISE: readonly Attribute[] = [
  attribute('employeeNumber', 'The number of the employee.'),
  attribute('costCenter', 'The cost center.'),
  attribute('organization', 'The organization.'),
  attribute('division', 'The division.'),
  attribute('department', 'The department.'),
  attribute('manager', 'The manager of the user.', {
    type: 'complex',
    subAttributes: [
      attribute('value', 'The id of the manager.', { caseExact: true }),
      attribute('$ref', 'The URL of the manager.', {
        type: 'reference',
        referenceTypes: ['User'],
        caseExact: true,
      }),
      attribute('displayName', 'The name of the manager.'),
    ],
  }),
]

const GROUP: readonly Attribute[] = [
  attribute('displayName', 'The name of the group, unique in the tenant without regard to case.', {
    required: true,
    uniqueness: 'server',
  }),
  attribute('members', 'The users who have the role of the group.', {
    type: 'complex',
    multiValued: true,
    subAttributes: [
      attribute('value', 'The id of the user.', { caseExact: true, mutability: 'immutable' }),
      attribute('$ref', 'The URL of the user.', {
        type: 'reference',
        referenceTypes: ['User'],
        caseExact: true,
        mutability: 'immutable',
      }),
      attribute('display', 'The name of the user.', readOnly),
      attribute('type', 'The kind of member.', {
        canonicalValues: ['User'],
        mutability: 'immutable',
      }),
    ],
  }),
]

type SchemaDefinition = {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly attributes: readonly Attribute[]
}

export const SCHEMAS: readonly SchemaDefinition[] = [
  { id: USER_SCHEMA, name: 'User', description: 'User account', attributes: USER },
  {
    id: ENTERPRISE_SCHEMA,
    name: 'EnterpriseUser',
    description: 'Enterprise user',
    attributes: ENTERPRISE,
  },
  { id: GROUP_SCHEMA, name: 'Group', description: 'Group', attributes: GROUP },
]

/** A kind of resource: its core schema with the common attributes, and its extensions. */
export type ResourceSchema = {
  readonly core: string
  readonly extensions: readonly string[]
  /** By the schema and the attribute name in lower case: attribute names have no case (RFC 7643 section 2.1). */
  readonly attributes: ReadonlyMap<string, ReadonlyMap<string, Attribute>>
}

function byName(attributes: readonly Attribute[]): ReadonlyMap<string, Attribute> {
  return new Map(attributes.map((each) => [each.name.toLowerCase(), each]))
}

export const USER_RESOURCE: ResourceSchema = {
  core: USER_SCHEMA,
  extensions: [ENTERPRISE_SCHEMA],
  attributes: new Map([
    [USER_SCHEMA.toLowerCase(), byName([...COMMON, ...USER])],
    [ENTERPRISE_SCHEMA.toLowerCase(), byName(ENTERPRISE)],
  ]),
}

export const GROUP_RESOURCE: ResourceSchema = {
  core: GROUP_SCHEMA,
  extensions: [],
  attributes: new Map([[GROUP_SCHEMA.toLowerCase(), byName([...COMMON, ...GROUP])]]),
}

/** The sub-attribute with this name, without regard to case. */
export function subAttribute({ subAttributes }: Attribute, name: string): Attribute | undefined {
  const wanted = name.toLowerCase()
  return subAttributes?.find((each) => each.name.toLowerCase() === wanted)
}

/** The attribute with this name in a schema of the resource. */
export function attributeOf(
  { attributes }: ResourceSchema,
  schema: string,
  name: string,
): Attribute | undefined {
  return attributes.get(schema.toLowerCase())?.get(name.toLowerCase())
}
