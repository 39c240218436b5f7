/**
 * PATCH (RFC 7644 section 3.5.2), on resources in canonical form. Targets are found in the schema, so a path cannot
 * reach anything but attributes. It also accepts what Okta and Microsoft Entra ID send beyond the RFC: operators in
 * upper case, booleans as strings, and paths as the members of a value without a path.
 */
import { invalid } from './faults.js'
import { attributePath, parsePath, type Filter, type PatchPath } from './filter.js'
import { demanded, matches } from './filter-match.js'
import {
  demandRequired,
  demandSchema,
  extensionOf,
  isObject,
  type Json,
  type JsonObject,
  membersOf,
  readExtension,
  readOne,
  readValue,
  type Resource,
} from './resource.js'
import {
  type Attribute,
  attributeOf,
  type ResourceSchema,
  subAttribute,
  USER_RESOURCE,
} from './schema.js'

const PATCH_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'
const OPERATIONS_MAX = 100

export type PatchOperation = {
  readonly op: 'add' | 'remove' | 'replace'
  /** Null: the value names the attributes. */
  readonly path: string | null
  readonly value: Json
}

type Target = {
  /** Null: the core schema. */
  readonly extension: string | null
  readonly attribute: Attribute
  readonly sub: Attribute | null
  readonly filter: Filter | null
}

/** Reads a PATCH body. @throws {ScimFault} `invalidSyntax` or `invalidValue`. */
export function readOperations(
  body: JsonObject,
  mostOperations = OPERATIONS_MAX,
): readonly PatchOperation[] {
  demandSchema(body, PATCH_SCHEMA)
  const operations = membersOf(body).get('operations')
  if (!Array.isArray(operations) || operations.length === 0)
    throw invalid('invalidSyntax', 'Operations must be a list of one operation or more.')
  if (operations.length > mostOperations)
    throw invalid('invalidValue', `Operations has more than ${mostOperations} operations.`)
  return operations.map(readOperation)
}

function readOperation(given: Json): PatchOperation {
  if (!isObject(given)) throw invalid('invalidSyntax', 'An operation must be an object.')
  const members = membersOf(given)
  const [name, path] = [members.get('op'), members.get('path')]
  const op = typeof name === 'string' ? name.toLowerCase() : ''
  if (op !== 'add' && op !== 'remove' && op !== 'replace')
    throw invalid('invalidSyntax', 'The op of an operation must be add, remove or replace.')
  if (path !== undefined && path !== null && typeof path !== 'string')
    throw invalid('invalidPath', 'The path of an operation must be a string.')
  const value = members.get('value')
  if (op !== 'remove' && value === undefined)
    throw invalid('invalidValue', `The operation ${op} needs a value.`)
  return { op, path: path === undefined || path === '' ? null : path, value }
}

/**
 * The resource after the operations. The given one is unchanged.
 * @throws {ScimFault} `invalidPath`, `invalidFilter`, `invalidValue`, `invalidSyntax`, `noTarget` or `mutability`.
 */
export function patched(
  before: Resource,
  body: JsonObject,
  schema: ResourceSchema = USER_RESOURCE,
): Resource {
  const after = structuredClone(before)
  for (const operation of readOperations(body)) apply(after, operation, schema)
  demandRequired(after, schema)
  return after
}

function apply(resource: Resource, { op, path, value }: PatchOperation, schema: ResourceSchema) {
  if (path === null) {
    if (op === 'remove') throw invalid('noTarget', 'The operation remove needs a path.')
    if (!isObject(value))
      throw invalid('invalidValue', 'The value of an operation without a path must be an object.')
    for (const [name, each] of membersOf(value)) applyMember(resource, op, name, each, schema)
    return
  }
  const extension = extensionOf(schema, path)
  if (extension !== null) {
    if (op === 'remove') delete resource[extension]
    else mergeExtension(resource, extension, value, schema)
    return
  }
  applyTo(resource, op, targetOf(parsePath(path), schema), value)
}

/** One member of a value without a path: an attribute, an extension, or a path. Unknown ones are ignored. */
function applyMember(
  resource: Resource,
  op: 'add' | 'replace',
  name: string,
  value: Json,
  schema: ResourceSchema,
): void {
  const extension = extensionOf(schema, name)
  if (extension !== null) return mergeExtension(resource, extension, value, schema)
  const path = name.includes('[') ? parsePath(name) : attributePath(name)
  if (path === null) return
  const known = attributeOf(schema, path.schema ?? schema.core, path.name)
  if (known === undefined || (path.sub !== null && subAttribute(known, path.sub) === undefined))
    return
  if (known.mutability === 'readOnly') {
    // Clients send back what they have read. Only another id is an attempt to change something.
    if (known.name !== 'id' || value === resource['id']) return
  }
  applyTo(resource, op, targetOf({ filter: null, ...path }, schema), value)
}

function mergeExtension(
  resource: Resource,
  extension: string,
  value: Json,
  schema: ResourceSchema,
): void {
  if (!isObject(value)) throw invalid('invalidValue', `${extension} must be an object.`)
  readExtension(schema, extension, value)
  for (const [name, each] of membersOf(value)) {
    const attribute = attributeOf(schema, extension, name)
    if (attribute === undefined) continue
    applyTo(resource, 'replace', { extension, attribute, sub: null, filter: null }, each)
  }
}

function targetOf({ schema: uri, name, sub: subName, filter }: PatchPath, schema: ResourceSchema) {
  const attribute = attributeOf(schema, uri ?? schema.core, name)
  if (attribute === undefined) throw invalid('invalidPath', `There is no attribute ${name}.`)
  const sub = subName === null ? null : subAttribute(attribute, subName)
  if (sub === undefined)
    throw invalid('invalidPath', `The attribute ${name} has no sub-attribute ${subName}.`)
  if (attribute.mutability === 'readOnly' || sub?.mutability === 'readOnly')
    throw invalid('mutability', `The attribute ${name} is read-only.`)
  if (filter !== null && !attribute.multiValued)
    throw invalid('invalidPath', `The attribute ${name} has one value, not several.`)
  return { extension: extensionOf(schema, uri), attribute, sub, filter } satisfies Target
}

function applyTo(resource: Resource, op: PatchOperation['op'], target: Target, value: Json): void {
  const { extension, attribute } = target
  // The attribute in its container, which is created for it and removed when nothing is left in it.
  const container = extension === null ? resource : { ...(resource[extension] as JsonObject) }
  const before = container[attribute.name]
  const after = attribute.multiValued
    ? changedValues(asList(before), op, target, value)
    : changedValue(before, op, target, value)
  const isGone = after === undefined || (Array.isArray(after) && after.length === 0)
  if (isGone && attribute.required)
    throw invalid('mutability', `The attribute ${attribute.name} is required.`)
  if (isGone) delete container[attribute.name]
  else container[attribute.name] = after
  if (extension === null) return
  if (Object.keys(container).length === 0) delete resource[extension]
  else resource[extension] = container
}

/** A single-valued attribute. A complex one is merged, not replaced as a whole (RFC 7644 section 3.5.2.3). */
function changedValue(before: Json, op: PatchOperation['op'], target: Target, value: Json): Json {
  const { attribute, sub } = target
  if (sub !== null) {
    const read = op === 'remove' ? undefined : readValue(sub, value)
    return withMember(before, sub.name, read)
  }
  if (op === 'remove') return undefined
  const read = readValue(attribute, value)
  if (attribute.type !== 'complex' || !isObject(read) || !isObject(before)) return read
  return { ...before, ...read }
}

/** A multi-valued attribute. */
function changedValues(
  before: readonly Json[],
  op: PatchOperation['op'],
  { attribute, sub, filter }: Target,
  value: Json,
): readonly Json[] {
  if (filter === null && sub === null) {
    if (op === 'remove') return value === undefined ? [] : without(before, value, attribute)
    const read = asList(readValue(attribute, value))
    return op === 'replace' ? read : bounded(attribute, appended(before, read))
  }
  const isMatch = before.map((each) => filter === null || matches(filter, each, attribute))
  if (!isMatch.includes(true)) {
    if (op === 'add') return bounded(attribute, withNew(before, { attribute, sub, filter }, value))
    if (filter === null && op === 'remove') return before
    throw invalid('noTarget', `No value of ${attribute.name} matches the path.`)
  }
  const read =
    op === 'remove' ? undefined : readValue(sub ?? { ...attribute, multiValued: false }, value)
  const changed = before.map((each, index) => {
    if (!isMatch[index]) return each
    if (sub !== null) return withMember(each, sub.name, read)
    return op === 'add' && isObject(each) && isObject(read) ? { ...each, ...read } : read
  })
  const isPrimary = changed.map((each, index) => isMatch[index]! && hasPrimary(each))
  return withOnePrimary(changed, isPrimary).filter((each) => each !== undefined)
}

/** A new value that fulfils the filter of the path, for an add without a match. */
function withNew(
  before: readonly Json[],
  { attribute, sub, filter }: Pick<Target, 'attribute' | 'sub' | 'filter'>,
  value: Json,
): readonly Json[] {
  const base = filter === null ? {} : demanded(filter, attribute)
  if (base === null) throw invalid('noTarget', `No value of ${attribute.name} matches the path.`)
  const read = sub === null ? readOne(attribute, value) : { [sub.name]: readValue(sub, value) }
  return appended(before, [{ ...base, ...(read as JsonObject) }])
}

/** Adds the values that are not there yet. If a new value is primary, the others are no longer. */
function appended(before: readonly Json[], added: readonly Json[]): readonly Json[] {
  const known = new Set(before.map(keyOf))
  const fresh = added.filter((each) => !known.has(keyOf(each)))
  const all = [...before, ...fresh]
  return withOnePrimary(
    all,
    all.map((each, index) => index >= before.length && hasPrimary(each)),
  )
}

function withOnePrimary(
  values: readonly Json[],
  isNewPrimary: readonly boolean[],
): readonly Json[] {
  const last = isNewPrimary.lastIndexOf(true)
  if (last < 0) return values
  return values.map((each, index) =>
    index !== last && hasPrimary(each) ? { ...(each as JsonObject), primary: false } : each,
  )
}

/** Entra names the values to remove in the value. Those with all members of one of them are removed. */
function without(before: readonly Json[], value: Json, attribute: Attribute): readonly Json[] {
  const named = asList(readValue(attribute, value))
  return before.filter(
    (each) =>
      !named.some(
        (wanted) =>
          isObject(wanted) &&
          isObject(each) &&
          Object.entries(wanted).every(([name, member]) => each[name] === member),
      ),
  )
}

function withMember(value: Json, name: string, member: Json): Json {
  const changed: Record<string, Json> = { ...(isObject(value) ? value : {}) }
  if (member === undefined) delete changed[name]
  else changed[name] = member
  return Object.keys(changed).length === 0 ? undefined : changed
}

function bounded(attribute: Attribute, values: readonly Json[]): readonly Json[] {
  readValue(attribute, values)
  return values
}

/** Members in the order of their names, so that equal values have equal keys. */
function keyOf(value: Json): string {
  return isObject(value)
    ? JSON.stringify(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    : JSON.stringify(value)
}

function hasPrimary(value: Json): boolean {
  return isObject(value) && value['primary'] === true
}

function asList(value: Json): readonly Json[] {
  return Array.isArray(value) ? value : value === undefined ? [] : [value]
}
