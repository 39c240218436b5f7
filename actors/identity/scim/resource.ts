/**
 * Reads resources of requests into their canonical form: names as in the schema, values of the right type, no
 * attribute without a value, and none that the server assigns. Only names of the schema become members, so a request
 * cannot name a member of `Object.prototype`.
 */
import { invalid } from './faults.js'
import {
  type Attribute,
  attributeOf,
  type ResourceSchema,
  subAttribute,
  USER_RESOURCE,
} from './schema.js'
import { attributePath } from './filter.js'
import type { JsonObject } from './protocol.js'

export type Json = unknown
export type { JsonObject }
/** A resource in canonical form. Members of extensions lie below the name of their schema. */
export type Resource = Record<string, Json>

const TEXT_CHARS_MAX = 8_192
const VALUES_MAX = 200
/** Members of a group are many. */
const MEMBERS_MAX = 10_000

export function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Members of a request body by their name in lower case. @throws {ScimFault} if two names differ only in case. */
export function membersOf(body: JsonObject): ReadonlyMap<string, Json> {
  const members = new Map<string, Json>()
  for (const [name, value] of Object.entries(body)) {
    const key = name.toLowerCase()
    if (members.has(key)) throw invalid('invalidSyntax', `The member ${name} is given twice.`)
    members.set(key, value)
  }
  return members
}

/** @throws {ScimFault} `invalidSyntax` if the message does not name the schema (RFC 7643 section 3). */
export function demandSchema(body: JsonObject, schema: string): void {
  const schemas = membersOf(body).get('schemas')
  const wanted = schema.toLowerCase()
  const isNamed =
    Array.isArray(schemas) &&
    schemas.some((each) => typeof each === 'string' && each.toLowerCase() === wanted)
  if (!isNamed) throw invalid('invalidSyntax', `The member schemas must contain ${schema}.`)
}

/**
 * Reads a whole resource, for POST and PUT. Unknown members, and members that the server assigns, are ignored.
 * @throws {ScimFault} `invalidSyntax` or `invalidValue`.
 */
export function readResource(body: JsonObject, schema: ResourceSchema = USER_RESOURCE): Resource {
  demandSchema(body, schema.core)
  const resource: Resource = {}
  for (const [name, value] of membersOf(body)) {
    const extension = schema.extensions.find((each) => each.toLowerCase() === name)
    if (extension !== undefined) {
      const read = readExtension(schema, extension, value)
      if (read !== undefined) resource[extension] = read
      continue
    }
    const path = attributePath(name)
    if (path === null || path.sub !== null) continue
    const attribute = attributeOf(schema, path.schema ?? schema.core, path.name)
    if (attribute === undefined || attribute.mutability === 'readOnly') continue
    const read = readValue(attribute, value)
    if (read === undefined) continue
    const own = extensionOf(schema, path.schema)
    if (own === null) resource[attribute.name] = read
    else resource[own] = { ...(resource[own] as JsonObject | undefined), [attribute.name]: read }
  }
  demandRequired(resource, schema)
  return resource
}

/** The extension that a schema URI names, or null for the core schema. */
export function extensionOf(schema: ResourceSchema, uri: string | null): string | null {
  if (uri === null) return null
  return schema.extensions.find((each) => each.toLowerCase() === uri.toLowerCase()) ?? null
}

/** @throws {ScimFault} `invalidValue` if a required attribute has no value. */
export function demandRequired(resource: Resource, schema: ResourceSchema): void {
  for (const { name, required } of schema.attributes.get(schema.core.toLowerCase())!.values()) {
    if (required && resource[name] === undefined)
      throw invalid('invalidValue', `The attribute ${name} is required.`)
  }
}

export function readExtension(
  schema: ResourceSchema,
  extension: string,
  value: Json,
): JsonObject | undefined {
  if (value === null) return undefined
  if (!isObject(value)) throw invalid('invalidSyntax', `${extension} must be an object.`)
  const read: Record<string, Json> = {}
  for (const [name, each] of membersOf(value)) {
    const attribute = attributeOf(schema, extension, name)
    if (attribute === undefined) continue
    const one = readValue(attribute, each)
    if (one !== undefined) read[attribute.name] = one
  }
  return Object.keys(read).length === 0 ? undefined : read
}

/** Reads the value of an attribute. Undefined: it has none, as null and an empty list do (RFC 7643 section 2.5). */
export function readValue(attribute: Attribute, value: Json): Json {
  if (value === null || value === undefined) return undefined
  if (!attribute.multiValued) return readOne(attribute, value)
  const values = (Array.isArray(value) ? value : [value])
    .map((each) => readOne(attribute, each))
    .filter((each) => each !== undefined)
  const most = attribute.name === 'members' ? MEMBERS_MAX : VALUES_MAX
  if (values.length > most)
    throw invalid('invalidValue', `${attribute.name} has more than ${most} values.`)
  return values.length === 0 ? undefined : onePrimary(attribute, values)
}

/** Reads one value of an attribute, of a multi-valued one as well. */
export function readOne(attribute: Attribute, value: Json): Json {
  if (value === null) return undefined
  if (attribute.type === 'complex') return readComplex(attribute, value)
  if (attribute.type === 'boolean') return readBoolean(attribute, value)
  if (typeof value !== 'string')
    throw invalid('invalidValue', `${attribute.name} must be a string.`)
  if (value.length > TEXT_CHARS_MAX)
    throw invalid('invalidValue', `${attribute.name} is longer than ${TEXT_CHARS_MAX} characters.`)
  return value
}

/** Some clients send booleans as "True" and "False". */
function readBoolean({ name }: Attribute, value: Json): boolean {
  if (typeof value === 'boolean') return value
  const word = typeof value === 'string' ? value.toLowerCase() : ''
  if (word === 'true') return true
  if (word === 'false') return false
  throw invalid('invalidValue', `${name} must be true or false.`)
}

function readComplex(attribute: Attribute, value: Json): JsonObject | undefined {
  // Some clients send the plain value, for example of a manager.
  const given = typeof value === 'string' && hasValue(attribute) ? { value } : value
  if (!isObject(given)) throw invalid('invalidValue', `${attribute.name} must be an object.`)
  const read: Record<string, Json> = {}
  for (const [name, each] of membersOf(given)) {
    const sub = subAttribute(attribute, name)
    if (sub === undefined) continue
    const one = readValue(sub, each)
    if (one !== undefined) read[sub.name] = one
  }
  return Object.keys(read).length === 0 ? undefined : read
}

function hasValue(attribute: Attribute): boolean {
  return subAttribute(attribute, 'value') !== undefined
}

/** @throws {ScimFault} `invalidValue` if two values are primary (RFC 7643 section 2.4). */
function onePrimary({ name }: Attribute, values: readonly Json[]): readonly Json[] {
  const primary = values.filter((each) => isObject(each) && each['primary'] === true)
  if (primary.length > 1) throw invalid('invalidValue', `${name} has more than one primary value.`)
  return values
}
