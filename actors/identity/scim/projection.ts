/** Parts of resources: `attributes` and `excludedAttributes` (RFC 7644 section 3.9). */
import { invalid } from './faults.js'
import { type AttributePath, attributePath } from './filter.js'
import { isObject, type Json, type JsonObject } from './resource.js'
import { attributeOf, type ResourceSchema, subAttribute } from './schema.js'

const NAMES_MAX = 100

type Projection = (resource: JsonObject) => JsonObject

/** @throws {ScimFault} `invalidValue` if both lists are given, or a list is too long. */
export function projection(
  asked: { readonly attributes: string | null; readonly excludedAttributes: string | null },
  schema: ResourceSchema,
): Projection {
  const [wanted, unwanted] = [asked.attributes, asked.excludedAttributes].map(namesIn)
  if (wanted !== null && unwanted !== null)
    throw invalid('invalidValue', 'A request has either attributes or excludedAttributes.')
  if (wanted !== null) return (resource) => kept(resource, schema, keysOf(wanted!, schema))
  if (unwanted !== null) return (resource) => dropped(resource, schema, keysOf(unwanted!, schema))
  return (resource) => resource
}

function namesIn(text: string | null): readonly string[] | null {
  if (text === null) return null
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  if (names.length > NAMES_MAX)
    throw invalid('invalidValue', `A list has more than ${NAMES_MAX} attributes.`)
  return names.length === 0 ? null : names
}

/** Canonical names: `name`, `name.givenName`, the URI of an extension, or the URI, a colon and a name. */
function keysOf(names: readonly string[], schema: ResourceSchema): ReadonlySet<string> {
  const keys = names.map((name) => {
    const extension = schema.extensions.find((each) => each.toLowerCase() === name.toLowerCase())
    if (extension !== undefined) return extension
    const path = attributePath(name)
    return path === null ? null : keyOf(path, schema)
  })
  return new Set(keys.filter((key) => key !== null))
}

function keyOf({ schema: uri, name, sub }: AttributePath, schema: ResourceSchema): string | null {
  const attribute = attributeOf(schema, uri ?? schema.core, name)
  if (attribute === undefined) return null
  const member = sub === null ? undefined : subAttribute(attribute, sub)
  if (sub !== null && member === undefined) return null
  const own = schema.extensions.find((each) => each.toLowerCase() === uri?.toLowerCase())
  const base = own === undefined ? attribute.name : `${own}:${attribute.name}`
  return member === undefined ? base : `${base}.${member.name}`
}

function kept(resource: JsonObject, schema: ResourceSchema, keys: ReadonlySet<string>): JsonObject {
  const rest: Record<string, Json> = {}
  for (const [name, value] of Object.entries(resource)) {
    if (isAlways(name) || keys.has(name)) rest[name] = value
    else if (schema.extensions.includes(name)) {
      const members = Object.entries(value as JsonObject).map(
        ([member, each]) => [member, part(each, `${name}:${member}`, keys)] as const,
      )
      const present = members.filter(([, each]) => each !== undefined)
      if (present.length > 0) rest[name] = Object.fromEntries(present)
    } else {
      const value_ = part(value, name, keys)
      if (value_ !== undefined) rest[name] = value_
    }
  }
  return rest
}

/** The named sub-attributes of a value, all of it if it is named itself, or undefined. */
function part(value: Json, key: string, keys: ReadonlySet<string>): Json {
  if (keys.has(key)) return value
  if (Array.isArray(value)) {
    const parts = value.map((each: Json) => part(each, key, keys)).filter((p) => p !== undefined)
    return parts.length === 0 ? undefined : parts
  }
  if (!isObject(value)) return undefined
  const members = Object.entries(value).filter(([name]) => keys.has(`${key}.${name}`))
  return members.length === 0 ? undefined : Object.fromEntries(members)
}

function dropped(
  resource: JsonObject,
  schema: ResourceSchema,
  keys: ReadonlySet<string>,
): JsonObject {
  const rest: Record<string, Json> = {}
  for (const [name, value] of Object.entries(resource)) {
    if (isAlways(name)) rest[name] = value
    else if (keys.has(name)) continue
    else if (schema.extensions.includes(name)) {
      const members = Object.entries(value as JsonObject)
        .filter(([member]) => !keys.has(`${name}:${member}`))
        .map(([member, each]) => [member, without(each, `${name}:${member}`, keys)] as const)
      if (members.length > 0) rest[name] = Object.fromEntries(members)
    } else rest[name] = without(value, name, keys)
  }
  return rest
}

function without(value: Json, key: string, keys: ReadonlySet<string>): Json {
  if (Array.isArray(value)) return value.map((each: Json) => without(each, key, keys))
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).filter(([name]) => !keys.has(`${key}.${name}`)))
}

/** Attributes with `returned: always`. */
function isAlways(name: string): boolean {
  return name === 'id' || name === 'schemas'
}
