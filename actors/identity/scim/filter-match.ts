/** Evaluates a value filter on one value of a multi-valued attribute, for PATCH (RFC 7644 section 3.5.2). */
import { storedName } from '../../domain/email.js'
import { invalid } from './faults.js'
import type { AttributePath, Filter, Operator, Value } from './filter.js'
import { isObject, type Json } from './resource.js'
import { type Attribute, subAttribute } from './schema.js'

/** @throws {ScimFault} `invalidFilter` if the filter names another attribute than a sub-attribute. */
export function matches(filter: Filter, value: Json, attribute: Attribute): boolean {
  switch (filter.tag) {
    case 'and':
      return filter.parts.every((part) => matches(part, value, attribute))
    case 'or':
      return filter.parts.some((part) => matches(part, value, attribute))
    case 'not':
      return !matches(filter.part, value, attribute)
    case 'present':
      return isPresent(memberOf(value, filter.path, attribute).found)
    case 'compare': {
      const { found, sub } = memberOf(value, filter.path, attribute)
      return compare(found, filter.operator, filter.value, sub.caseExact)
    }
    case 'value':
      throw invalid('invalidFilter', 'The filter of a value has no filter inside.')
  }
}

/** The members that a value needs for a filter of `eq` and `and`: a new value gets them. Null for other filters. */
export function demanded(filter: Filter, attribute: Attribute): Record<string, Json> | null {
  if (filter.tag === 'and') {
    const all = filter.parts.map((part) => demanded(part, attribute))
    return all.includes(null) ? null : Object.assign({}, ...all)
  }
  if (filter.tag !== 'compare' || filter.operator !== 'eq' || filter.value === null) return null
  const { sub } = memberOf({}, filter.path, attribute)
  const value = sub.type === 'boolean' ? asBoolean(filter.value) : filter.value
  return typeof value === 'number' ? null : { [sub.name]: value }
}

function memberOf(value: Json, { schema, name, sub }: AttributePath, attribute: Attribute) {
  const known = schema === null && sub === null ? subAttribute(attribute, name) : undefined
  if (known === undefined)
    throw invalid('invalidFilter', `${attribute.name} has no sub-attribute ${name}.`)
  return { sub: known, found: isObject(value) ? value[known.name] : undefined }
}

export function isPresent(value: Json): boolean {
  return value !== undefined && value !== null && value !== ''
}

function asBoolean(value: Value): Value {
  const word = typeof value === 'string' ? value.toLowerCase() : value
  return word === 'true' ? true : word === 'false' ? false : value
}

/** @param found undefined: the attribute has no value. */
export function compare(
  found: Json,
  operator: Operator,
  wanted: Value,
  caseExact: boolean,
): boolean {
  if (wanted === null) return (operator === 'eq') !== isPresent(found)
  if (typeof found === 'boolean') {
    const equal = found === asBoolean(wanted)
    if (operator === 'eq') return equal
    return operator === 'ne' && !equal
  }
  if (typeof found !== 'string' || typeof wanted !== 'string') return operator === 'ne'
  // Two spellings of an address are equal.
  const folded = (text: string) => (caseExact ? text : storedName(text).toLowerCase())
  const [a, b] = [folded(found), folded(wanted)]
  switch (operator) {
    case 'eq':
      return a === b
    case 'ne':
      return a !== b
    case 'co':
      return a.includes(b)
    case 'sw':
      return a.startsWith(b)
    case 'ew':
      return a.endsWith(b)
    case 'gt':
      return a > b
    case 'ge':
      return a >= b
    case 'lt':
      return a < b
    case 'le':
      return a <= b
  }
}
