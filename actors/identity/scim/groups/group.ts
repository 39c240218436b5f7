/** A group as a SCIM resource, its changes by PATCH, and filters of groups. */
import type { ScimGroupRow, ScimMemberRow } from '../../../../storage/identity/scim-groups.js'
import { invalid } from '../faults.js'
import { type Filter, parsePath } from '../filter.js'
import { matches } from '../filter-match.js'
import { type PatchOperation, readOperations } from '../patch.js'
import { externalIdIn, weakTag } from '../person.js'
import type { JsonObject } from '../protocol.js'
import { isObject, membersOf, readResource, readValue } from '../resource.js'
import { type Attribute, attributeOf, GROUP_RESOURCE, GROUP_SCHEMA } from '../schema.js'

const DISPLAY_NAME_CHARS_MAX = 255
const ROLE_CHARS_MAX = 64
const OPERATIONS_MAX = 1_000
const BUILT_IN = ['owner', 'admin', 'member']

/** What a client may write of a group. */
export type GroupState = {
  displayName: string
  externalId: string | null
  /** The ids of the members. Null: the request does not say. */
  members: Set<string> | null
}

const attribute = (name: string): Attribute => attributeOf(GROUP_RESOURCE, GROUP_SCHEMA, name)!
const MEMBERS = attribute('members')

/**
 * The role of a group with this name: owner, admin or member in any case, otherwise the name with hyphens for the
 * characters that roles do not have.
 */
export function roleOf(displayName: string): string {
  const role = displayName
    .replaceAll(/[^A-Za-z0-9._:]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .replace(/-+$/, '')
    .slice(0, ROLE_CHARS_MAX)
  if (role === '')
    throw invalid('invalidValue', 'displayName needs a letter or a digit from A to z.')
  return BUILT_IN.find((each) => each === role.toLowerCase()) ?? role
}

/** False if the group would look like one of another built-in role. A group keeps its role under another name. */
export function mayBeNamed(
  displayName: string,
  { displayName: before, role }: Pick<ScimGroupRow, 'displayName' | 'role'>,
): boolean {
  if (displayName === before) return true
  // Look-alikes of the letters and invisible characters between them count as the name.
  const plain = displayName
    .normalize('NFKC')
    .replaceAll(/[^A-Za-z0-9]+/g, '')
    .toLowerCase()
  return !BUILT_IN.some((name) => name !== role && (name === plain || name === roleOf(displayName)))
}

/** Reads the body of POST or PUT. @throws {ScimFault} */
export function readGroup(body: JsonObject): GroupState {
  const { displayName, externalId, members } = readResource(body, GROUP_RESOURCE)
  const isNamed = membersOf(body).has('members')
  return {
    displayName: nameIn(displayName),
    externalId: externalIdIn(externalId),
    members: isNamed ? new Set(idsIn(members)) : null,
  }
}

/** The state after the operations of a PATCH body. @throws {ScimFault} */
export function patchedGroup(
  before: GroupState & { readonly id: string },
  body: JsonObject,
): GroupState {
  const state: GroupState = {
    displayName: before.displayName,
    externalId: before.externalId,
    members: new Set(before.members),
  }
  for (const operation of readOperations(body, OPERATIONS_MAX)) apply(state, operation, before.id)
  return state
}

function apply(state: GroupState, { op, path, value }: PatchOperation, id: string): void {
  if (path !== null) return applyTo(state, op, path, value)
  if (op === 'remove') throw invalid('noTarget', 'The operation remove needs a path.')
  if (!isObject(value))
    throw invalid('invalidValue', 'The value of an operation without a path must be an object.')
  for (const [name, each] of membersOf(value)) {
    const known = attributeOf(GROUP_RESOURCE, GROUP_SCHEMA, name)
    if (known === undefined) continue
    // Okta sends the id back.
    if (known.mutability === 'readOnly' && (known.name !== 'id' || each === id)) continue
    applyTo(state, op, name, each)
  }
}

function applyTo(state: GroupState, op: PatchOperation['op'], text: string, value: unknown): void {
  const { schema, name, sub, filter } = parsePath(text)
  const known = attributeOf(GROUP_RESOURCE, schema ?? GROUP_SCHEMA, name)
  if (known === undefined || sub !== null)
    throw invalid(
      'invalidPath',
      `There is no attribute ${text.slice(0, 100)} of a group to change.`,
    )
  if (known.mutability === 'readOnly')
    throw invalid('mutability', `The attribute ${known.name} is read-only.`)
  if (known.name === 'members') return applyMembers(state, op, filter, value)
  if (filter !== null) throw invalid('invalidPath', `${known.name} has one value, not several.`)
  const read = op === 'remove' ? undefined : readValue(known, value)
  if (known.name === 'externalId') state.externalId = externalIdIn(read)
  else if (read === undefined) throw invalid('mutability', 'The attribute displayName is required.')
  else state.displayName = nameIn(read)
}

function applyMembers(
  state: GroupState,
  op: PatchOperation['op'],
  filter: Filter | null,
  value: unknown,
): void {
  const members = state.members!
  if (filter !== null) {
    if (op !== 'remove') throw invalid('mutability', 'A member is added or removed, not changed.')
    for (const id of selected(members, filter)) members.delete(id)
    return
  }
  // A member who is absent is removed already: directories repeat such operations.
  const ids = value === undefined ? null : idsIn(readValue(MEMBERS, value))
  if (op === 'remove' && ids === null) members.clear()
  else if (op === 'remove') for (const id of ids!) members.delete(id)
  else {
    if (op === 'replace') members.clear()
    for (const id of ids!) members.add(id)
  }
}

function selected(members: ReadonlySet<string>, filter: Filter): readonly string[] {
  // The usual form needs no search.
  if (filter.tag === 'compare' && filter.operator === 'eq' && typeof filter.value === 'string') {
    const isValue = filter.path.name.toLowerCase() === 'value' && filter.path.sub === null
    if (isValue) return [filter.value.toLowerCase()]
  }
  return [...members].filter((value) => matches(filter, { value, type: 'User' }, MEMBERS))
}

function idsIn(value: unknown): readonly string[] {
  if (!Array.isArray(value)) return []
  return value.map((each: unknown) => {
    const id = isObject(each) ? each['value'] : undefined
    if (typeof id !== 'string')
      throw invalid('invalidValue', 'A member needs the id of a user as its value.')
    return id.toLowerCase()
  })
}

function nameIn(value: unknown): string {
  if (typeof value !== 'string' || value.trim() === '' || value.length > DISPLAY_NAME_CHARS_MAX)
    throw invalid(
      'invalidValue',
      `displayName must have 1 to ${DISPLAY_NAME_CHARS_MAX} characters.`,
    )
  return value
}

/** The group as a client gets it. */
export function presentedGroup(
  row: ScimGroupRow,
  members: readonly ScimMemberRow[],
  base: string,
): { readonly resource: JsonObject; readonly version: string } {
  const list = members.map(({ id, display }) => ({
    value: id,
    $ref: `${base}/Users/${id}`,
    ...(display === null ? {} : { display }),
    type: 'User',
  }))
  const resource = {
    schemas: [GROUP_SCHEMA],
    id: row.id,
    ...(row.externalId === null ? {} : { externalId: row.externalId }),
    displayName: row.displayName,
    ...(list.length === 0 ? {} : { members: list }),
  }
  const [created, lastModified] = [row.createdAt.toISOString(), row.updatedAt.toISOString()]
  const version = weakTag(JSON.stringify([resource, lastModified]))
  const location = `${base}/Groups/${row.id}`
  const meta = { resourceType: 'Group', created, lastModified, location, version }
  return { resource: { ...resource, meta }, version }
}
