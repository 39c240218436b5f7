/**
 * Translates filters of lists into conditions of the storage. What has no column is evaluated on the resources
 * (resource-filter.ts).
 */
import type { EmailCondition, ScimCondition } from '../../../storage/identity/scim-filter.js'
import { isUuid } from '../../domain/ids.js'
import { storedName } from '../../domain/email.js'
import { invalid, ScimFault } from './faults.js'
import type { AttributePath, Filter, Operator, Value } from './filter.js'
import { type Predicate, predicateOf } from './resource-filter.js'
import { USER_RESOURCE, USER_SCHEMA } from './schema.js'

type FilterPlan = {
  /** What the database decides. */
  readonly condition: ScimCondition | null
  /** What is evaluated on each user that fulfils the condition. Null: nothing. */
  readonly rest: Predicate | null
}

/** @throws {ScimFault} `invalidFilter`. */
export function planOf(filter: Filter): FilterPlan {
  const whole = columnsOf(filter)
  if (whole !== null) return { condition: whole, rest: null }
  const parts = filter.tag === 'and' ? filter.parts : [filter]
  const split = parts.map((part) => ({ part, columns: columnsOf(part) }))
  const conditions = split.flatMap(({ columns }) => (columns === null ? [] : [columns]))
  const rest = split.filter(({ columns }) => columns === null).map(({ part }) => part)
  return {
    condition: conditions.length === 0 ? null : { tag: 'and', parts: conditions },
    rest: predicateOf({ tag: 'and', parts: rest }, USER_RESOURCE),
  }
}

/** Null: no columns decide the filter. */
function columnsOf(filter: Filter): ScimCondition | null {
  try {
    return conditionOf(filter)
  } catch (error) {
    if (error instanceof ScimFault) return null
    throw error
  }
}

/** @throws {ScimFault} `invalidFilter` for another attribute, operator or kind of value. */
function conditionOf(filter: Filter): ScimCondition {
  switch (filter.tag) {
    case 'and':
    case 'or':
      return { tag: filter.tag, parts: filter.parts.map(conditionOf) }
    case 'not':
      return { tag: 'not', part: conditionOf(filter.part) }
    case 'present':
      return present(filter.path)
    case 'compare':
      return compared(filter.path, filter.operator, filter.value)
    case 'value':
      if (nameOf(filter.path) !== 'emails') throw unknown(filter.path)
      return { tag: 'email', part: emailCondition(filter.filter) }
  }
}

/** The name in lower case. Null with another schema than the user's. */
function nameOf({ schema, name, sub }: AttributePath): string | null {
  if (schema !== null && schema.toLowerCase() !== USER_SCHEMA.toLowerCase()) return null
  return (sub === null ? name : `${name}.${sub}`).toLowerCase()
}

function present(path: AttributePath): ScimCondition {
  switch (nameOf(path)) {
    case 'username':
    case 'id':
    case 'active':
    case 'meta.lastmodified':
      return { tag: 'always', is: true }
    case 'externalid':
      return { tag: 'has_external_id' }
    case 'emails':
    case 'emails.value':
      return { tag: 'email', part: { tag: 'has', field: 'value' } }
    default:
      throw unknown(path)
  }
}

function compared(path: AttributePath, operator: Operator, value: Value): ScimCondition {
  const name = nameOf(path)
  if (value === null) {
    if (operator !== 'eq' && operator !== 'ne') throw unsupported(path, operator)
    const has = present(path)
    return operator === 'ne' ? has : { tag: 'not', part: has }
  }
  switch (name) {
    case 'username':
      return { tag: 'text', field: 'userName', ...address(path, operator, value) }
    case 'externalid':
      return { tag: 'text', field: 'externalId', ...text(path, operator, value) }
    case 'id': {
      const asked = text(path, operator, value)
      // Only the canonical form of an id is an id.
      const isId = isUuid(asked.value) && asked.value === asked.value.toLowerCase()
      if (asked.operator === 'eq' && !isId) return { tag: 'always', is: false }
      return { tag: 'text', field: 'id', ...asked }
    }
    case 'active': {
      const is = truth(path, value)
      if (operator !== 'eq' && operator !== 'ne') throw unsupported(path, operator)
      return { tag: 'active', is: operator === 'eq' ? is : !is }
    }
    case 'meta.lastmodified': {
      if (operator === 'co' || operator === 'sw' || operator === 'ew')
        throw unsupported(path, operator)
      return { tag: 'modified', operator, value: time(path, value) }
    }
    case 'emails':
    case 'emails.value':
      return {
        tag: 'email',
        part: { tag: 'text', field: 'value', ...address(path, operator, value) },
      }
    default:
      throw unknown(path)
  }
}

function emailCondition(filter: Filter): EmailCondition {
  switch (filter.tag) {
    case 'and':
    case 'or':
      return { tag: filter.tag, parts: filter.parts.map(emailCondition) }
    case 'not':
      return { tag: 'not', part: emailCondition(filter.part) }
    case 'present':
      return { tag: 'has', field: emailField(filter.path) }
    case 'compare': {
      const { path, operator, value } = filter
      const field = emailField(path)
      if (value === null) throw unsupported(path, operator)
      if (field === 'value') return { tag: 'text', field, ...address(path, operator, value) }
      if (field === 'type') return { tag: 'text', field, ...text(path, operator, value) }
      if (operator !== 'eq' && operator !== 'ne') throw unsupported(path, operator)
      const is = truth(path, value)
      return { tag: 'primary', is: operator === 'eq' ? is : !is }
    }
    case 'value':
      throw unknown(filter.path)
  }
}

function emailField(path: AttributePath): 'value' | 'type' | 'primary' {
  const name = path.schema === null ? nameOf(path) : null
  if (name === 'value' || name === 'type' || name === 'primary') return name
  throw unknown(path)
}

function text(path: AttributePath, operator: Operator, value: Value) {
  if (operator !== 'eq' && operator !== 'ne' && operator !== 'co' && operator !== 'sw')
    throw unsupported(path, operator)
  if (typeof value !== 'string')
    throw invalid('invalidFilter', `${shown(path)} is compared with a string in quotes.`)
  return { operator, value }
}

/** Addresses are stored and compared in A-labels. */
function address(path: AttributePath, operator: Operator, value: Value) {
  const compared = text(path, operator, value)
  return { ...compared, value: storedName(compared.value) }
}

function truth(path: AttributePath, value: Value): boolean {
  const word = typeof value === 'string' ? value.toLowerCase() : value
  if (word === true || word === 'true') return true
  if (word === false || word === 'false') return false
  throw invalid('invalidFilter', `${shown(path)} is compared with true or false.`)
}

const DATE_TIME =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/

function time(path: AttributePath, value: Value): Date {
  const date = typeof value === 'string' && DATE_TIME.test(value) ? new Date(value) : null
  if (date === null || Number.isNaN(date.getTime()))
    throw invalid(
      'invalidFilter',
      `${shown(path)} is compared with a time, such as 2026-01-31T08:00:00Z.`,
    )
  return date
}

function shown({ name, sub }: AttributePath): string {
  return sub === null ? name : `${name}.${sub}`
}

function unknown(path: AttributePath) {
  return invalid('invalidFilter', `The attribute ${shown(path)} cannot be used in a filter.`)
}

function unsupported(path: AttributePath, operator: Operator) {
  return invalid('invalidFilter', `The operator ${operator} does not apply to ${shown(path)}.`)
}
