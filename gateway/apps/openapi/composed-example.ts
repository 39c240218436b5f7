/** Composes an example from a JSON Schema, for operations without a recorded one. */

export type JsonSchema = {
  readonly $ref?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly example?: unknown
  readonly examples?: readonly unknown[]
  readonly default?: unknown
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
  readonly allOf?: readonly JsonSchema[]
  readonly type?: string | readonly string[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly items?: JsonSchema
  readonly minItems?: number
  readonly minimum?: number
  readonly exclusiveMinimum?: number
  readonly format?: string
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
}

type Schemas = Readonly<Record<string, JsonSchema>>
/** A request shows what is required, an answer all members. */
type Side = 'request' | 'answer'

const DEPTH_MAX = 8
/** A signed JWT in its compact form. */
export const EXAMPLE_JWT = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl'

const BY_FORMAT: Readonly<Record<string, string>> = {
  uuid: '0199c5a0-8c1e-7b60-9d35-1f2a3b4c5d6e',
  'date-time': '2026-03-01T12:00:00.000Z',
  date: '2026-03-01',
  email: 'ada@example.com',
  uri: 'https://app.example.com/',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
}

/** Texts for members and parameters by their names, and then for any pattern. */
const BY_NAME: Readonly<Record<string, string>> = {
  name: 'Example',
  title: 'Not found',
  error: 'invalid_request',
  error_description: 'The request is malformed.',
  detail: 'The object does not exist.',
  pointer: '#/name',
  instance: '/api/v1/applications',
  request_id: BY_FORMAT['uuid']!,
  scope: 'openid',
  currency: 'USD',
  email: BY_FORMAT['email']!,
  url: 'https://api.example.com/v1/models',
  'x-svc-url': 'https://api.example.com/v1/models',
  redirect_uri: 'https://app.example.com/callback',
  schema_uri: 'urn:ietf:params:scim:schemas:core:2.0:User',
  credential_type: 'TenantMembership',
  tenant_slug: 'acme',
  issuer_path: 'acme',
  anchor: 'did:key:z6MkqxRHd5nM3LndWXEh2SVeRKTDUS2j2sQqcWS4WT25Dqbq',
  user_code: 'BCDF-GHJK',
  file: `${'0a'.repeat(32)}.webp`,
  id_token_hint: EXAMPLE_JWT,
}
/** Members that hold an id (`user_id`), and those that hold a secret or a handle. */
const IS_ID = /(?:^|[_-])id$/
const IS_TOKEN = /(?:^|_)(?:token|handle|secret|key_id)$/
const TOKEN = 'amKa615E4OQ4CyWBdf3u3mgMHq-mOXWEYWyzkttGxIY'
const TEXTS = [
  'example',
  BY_FORMAT['uri']!,
  'https://app.example.com',
  'app.example.com',
  BY_FORMAT['email']!,
  BY_FORMAT['uuid']!,
  BY_FORMAT['date-time']!,
  BY_FORMAT['date']!,
  '1',
  'AA',
  'en',
  'USD',
  '#336699',
  '+14155550123',
  `0x${'1'.repeat(40)}`,
  `0x${'1'.repeat(64)}`,
  'a'.repeat(43),
]

/** @returns undefined if the schema permits no value that this function can find. */
export function composed(
  schema: JsonSchema | undefined,
  schemas: Schemas,
  side: Side,
  name = '',
): unknown {
  return schema === undefined ? undefined : compose(schema, name, { schemas, side, depth: 0 })
}

type At = { readonly schemas: Schemas; readonly side: Side; readonly depth: number }

function compose(schema: JsonSchema, name: string, at: At): unknown {
  if (at.depth > DEPTH_MAX) return undefined
  const deeper = { ...at, depth: at.depth + 1 }
  if (schema.$ref !== undefined) {
    const target = at.schemas[schema.$ref.split('/').at(-1)!]
    return target === undefined ? undefined : compose(target, name, deeper)
  }
  for (const given of [schema.const, schema.example, schema.examples?.[0], schema.default]) {
    if (given !== undefined) return given
  }
  if (schema.enum !== undefined) return schema.enum[0]
  const choices = schema.anyOf ?? schema.oneOf
  if (choices !== undefined) {
    return choices.map((choice) => compose(choice, name, deeper)).find((one) => one !== undefined)
  }
  if (schema.allOf !== undefined) {
    const parts = schema.allOf.map((part) => compose(part, name, deeper))
    return Object.assign({}, ...parts) as object
  }
  const type = typeof schema.type === 'string' ? schema.type : schema.type?.[0]
  switch (type) {
    case 'object':
      return objectOf(schema, deeper)
    case 'array':
      return arrayOf(schema, name, deeper)
    case 'integer':
    case 'number':
      return Math.max(schema.minimum ?? 1, (schema.exclusiveMinimum ?? 0) + 1, 1)
    case 'boolean':
      return true
    case 'null':
      return null
    case 'string':
      return textOf(schema, name)
    default:
      return schema.properties === undefined ? {} : objectOf(schema, deeper)
  }
}

function objectOf({ properties = {}, required = [] }: JsonSchema, at: At): unknown {
  const names = at.side === 'request' ? required : Object.keys(properties)
  const members: Record<string, unknown> = {}
  for (const name of names) {
    const value = compose(properties[name] ?? {}, name, at)
    if (value !== undefined) members[name] = value
    else if (required.includes(name)) return undefined
  }
  return members
}

function arrayOf({ items, minItems = 0 }: JsonSchema, name: string, at: At): unknown {
  const one = items === undefined ? undefined : compose(items, name.replace(/s$/, ''), at)
  if (one === undefined) return minItems === 0 ? [] : undefined
  return Array.from({ length: Math.max(1, minItems) }, () => one)
}

function textOf(schema: JsonSchema, name: string): string | undefined {
  const { format = '', pattern, minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema
  const rule = pattern === undefined ? null : new RegExp(pattern, 'u')
  const fits = (text: string) =>
    text.length >= minLength && text.length <= maxLength && (rule?.test(text) ?? true)
  const named = IS_TOKEN.test(name) ? TOKEN : IS_ID.test(name) ? BY_FORMAT['uuid'] : undefined
  const candidates = [BY_FORMAT[format], BY_NAME[name], named, ...TEXTS, 'x'.repeat(minLength)]
  return candidates.find((text): text is string => text !== undefined && fits(text))
}
