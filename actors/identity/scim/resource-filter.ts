/** Filters of lists, evaluated on whole resources: every attribute that a schema returns (RFC 7644 section 3.4.2.2). */
import { invalid } from './faults.js'
import type { AttributePath, Filter, Operator, Value } from './filter.js'
import { compare, isPresent } from './filter-match.js'
import { isObject, type Json, type JsonObject } from './resource.js'
import { type Attribute, attributeOf, type ResourceSchema, subAttribute } from './schema.js'

export type Predicate = (resource: JsonObject) => boolean

/** The values of an attribute in a resource or in one value of it, with what the schema says of them. */
type Reader = {
  readonly attribute: Attribute
  readonly read: (from: JsonObject) => readonly Json[]
}
type Resolve = (path: AttributePath) => Reader

const TIMES = new Set(['created', 'lastModified'])
const DATE_TIME =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/

/** @throws {ScimFault} `invalidFilter` for an attribute that the schema lacks, or a value of the wrong kind. */
export function predicateOf(filter: Filter, schema: ResourceSchema): Predicate {
  return compiled(filter, (path) => readerOf(path, schema))
}

/** True if the filter names the attribute. */
export function names(filter: Filter, name: string): boolean {
  switch (filter.tag) {
    case 'and':
    case 'or':
      return filter.parts.some((part) => names(part, name))
    case 'not':
      return names(filter.part, name)
    case 'present':
    case 'compare':
    case 'value':
      return filter.path.name.toLowerCase() === name.toLowerCase()
  }
}

function compiled(filter: Filter, resolve: Resolve): Predicate {
  switch (filter.tag) {
    case 'and':
    case 'or': {
      const parts = filter.parts.map((part) => compiled(part, resolve))
      return filter.tag === 'and'
        ? (resource) => parts.every((part) => part(resource))
        : (resource) => parts.some((part) => part(resource))
    }
    case 'not': {
      const part = compiled(filter.part, resolve)
      return (resource) => !part(resource)
    }
    case 'present': {
      const { read } = resolve(filter.path)
      return (resource) => read(resource).some(isPresent)
    }
    case 'compare': {
      const { attribute, read } = valueOf(resolve(filter.path))
      const is = comparison(attribute, filter.operator, filter.value)
      return (resource) => {
        const values = read(resource)
        return values.length === 0 ? is(undefined) : values.some(is)
      }
    }
    case 'value': {
      const { attribute, read } = resolve(filter.path)
      if (attribute.subAttributes === undefined) throw unknown(filter.path)
      const part = compiled(filter.filter, (path) => subReader(path, attribute))
      return (resource) => read(resource).some((value) => isObject(value) && part(value))
    }
  }
}

/** A multi-valued or complex attribute is compared by its `value` (RFC 7643 section 2.4). */
function valueOf({ attribute, read }: Reader): Reader {
  if (attribute.subAttributes === undefined) return { attribute, read }
  const value = subAttribute(attribute, 'value')
  if (value === undefined)
    throw invalid('invalidFilter', `${attribute.name} is compared by a sub-attribute.`)
  return below({ attribute, read }, value)
}

function below({ read }: Reader, sub: Attribute): Reader {
  return {
    attribute: sub,
    read: (from) => read(from).flatMap((value) => (isObject(value) ? listed(value[sub.name]) : [])),
  }
}

function readerOf(path: AttributePath, schema: ResourceSchema): Reader {
  // Directories name attributes of the extension without its URN too.
  const schemas = path.schema === null ? [schema.core, ...schema.extensions] : [path.schema]
  for (const each of schemas) {
    const attribute = attributeOf(schema, each, path.name)
    if (attribute === undefined) continue
    const extension = schema.extensions.find((one) => one.toLowerCase() === each.toLowerCase())
    const whole: Reader = {
      attribute,
      read(from) {
        const members = extension === undefined ? from : from[extension]
        return isObject(members) ? listed(members[attribute.name]) : []
      },
    }
    if (path.sub === null) return whole
    const sub = subAttribute(attribute, path.sub)
    if (sub !== undefined) return below(whole, sub)
  }
  throw unknown(path)
}

function subReader(path: AttributePath, attribute: Attribute): Reader {
  const { schema, name, sub } = path
  const known = schema === null && sub === null ? subAttribute(attribute, name) : undefined
  if (known === undefined)
    throw invalid('invalidFilter', `${attribute.name} has no sub-attribute ${name}.`)
  return { attribute: known, read: (from) => listed(from[known.name]) }
}

function listed(value: Json): readonly Json[] {
  if (value === undefined || value === null) return []
  return Array.isArray(value) ? value : [value]
}

function comparison(
  { name, type, caseExact }: Attribute,
  operator: Operator,
  value: Value,
): (found: Json) => boolean {
  const isEquality = operator === 'eq' || operator === 'ne'
  if (value === null && !isEquality) throw unsupported(name, operator)
  if (value !== null && type === 'boolean') {
    const word = typeof value === 'string' ? value.toLowerCase() : value
    if (![true, false, 'true', 'false'].includes(word as boolean))
      throw invalid('invalidFilter', `${name} is compared with true or false.`)
    if (!isEquality) throw unsupported(name, operator)
  } else if (value !== null && typeof value !== 'string') {
    throw invalid('invalidFilter', `${name} is compared with a string in quotes.`)
  }
  if (TIMES.has(name) && value !== null) {
    if (['co', 'sw', 'ew'].includes(operator)) throw unsupported(name, operator)
    const wanted = new Date(timeIn(name, value)).toISOString()
    return (found) => compare(found, operator, wanted, true)
  }
  return (found) => compare(found, operator, value, caseExact)
}

function timeIn(name: string, value: Value): string {
  const isTime =
    typeof value === 'string' && DATE_TIME.test(value) && !Number.isNaN(Date.parse(value))
  if (!isTime)
    throw invalid('invalidFilter', `${name} is compared with a time, such as 2026-01-31T08:00:00Z.`)
  return value
}

function unknown({ name, sub }: AttributePath) {
  const shown = sub === null ? name : `${name}.${sub}`
  return invalid('invalidFilter', `There is no attribute ${shown} to filter by.`)
}

function unsupported(name: string, operator: Operator) {
  return invalid('invalidFilter', `The operator ${operator} does not apply to ${name}.`)
}
