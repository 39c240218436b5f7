/** SCIM groups as a directory reads them. */
import {
  findScimGroup,
  listScimGroupRows,
  membersWithRoles,
  type ScimGroupRow,
} from '../../../../storage/identity/scim-groups.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { isUuid } from '../../../domain/ids.js'
import { invalid, refusing, ScimFault } from '../faults.js'
import { type Filter, parseFilter } from '../filter.js'
import { pageOf } from '../paging.js'
import { isMatch } from '../precondition.js'
import { projection } from '../projection.js'
import type { AskedAttributes, JsonObject } from '../protocol.js'
import { names, predicateOf } from '../resource-filter.js'
import { GROUP_RESOURCE } from '../schema.js'
import { presentedGroup } from './group.js'
import type { Handling, ScimGroupsNeeds } from './needs.js'
import type { OneGroup } from './protocol.js'
import { inTenant } from '../../../platform/in-tenant.js'

/** Members that are read to answer a filter on members. */
const SEARCHED_MEMBERS_MAX = 20_000

const baseOf = ({ issuer }: ScimGroupsNeeds) => `${issuer}/scim/v2`

/**
 * The group with its members. With If-Match it is locked until the transaction ends.
 * @throws {ScimFault} 404, and 412 by If-Match.
 */
export async function foundGroup(
  tx: Transaction,
  needs: ScimGroupsNeeds,
  { caller, groupId }: OneGroup,
  ifMatch: string | null | undefined,
) {
  const { tenantId } = caller.principal
  const isLocked = ifMatch !== undefined
  const row = isUuid(groupId) ? await findScimGroup(tx, tenantId, groupId, isLocked) : undefined
  if (row === undefined) throw new ScimFault(404, null, 'The group does not exist.')
  const members = await membersWithRoles(tx, tenantId, [row.role])
  const presented = presentedGroup(row, members, baseOf(needs))
  if (isLocked && !isMatch(ifMatch, presented.version))
    throw new ScimFault(412, null, 'The group has another version now. Read it again.')
  return { row, memberIds: new Set(members.map(({ id }) => id)), ...presented }
}

export async function shownGroup(
  tx: Transaction,
  needs: ScimGroupsNeeds,
  message: OneGroup & AskedAttributes,
) {
  const { resource, version } = await foundGroup(tx, needs, message, undefined)
  const project = projection(message, GROUP_RESOURCE)
  return { tag: 'found' as const, id: message.groupId, resource: project(resource), version }
}

export const readScimGroup: Handling<'readScimGroup'> = (needs, message, context) =>
  refusing(() => needs.database.system((tx) => shownGroup(tx, needs, message), context))

export const listScimGroups: Handling<'listScimGroups'> = (needs, message, context) =>
  refusing(async () => {
    const { filter: text, caller } = message
    const { tenantId } = caller.principal
    const project = projection(message, GROUP_RESOURCE)
    const { offset, limit } = pageOf(message, needs.maxResults)
    const filter = text === null || text.trim() === '' ? null : parseFilter(text)
    return inTenant(needs.database, tenantId, context, async (tx) => {
      const all = await listScimGroupRows(tx, tenantId)
      const shownOf = (rows: readonly ScimGroupRow[], most?: number) =>
        shownRows(tx, needs, tenantId, rows, most)
      const hits = filter === null ? all : await filtered(all, filter, shownOf)
      const shown = await shownOf(hits.slice(offset, offset + limit))
      const resources = shown.map(project)
      return { tag: 'listed', total: hits.length, startIndex: offset + 1, resources } as const
    })
  })

/** @throws {ScimFault} `tooMany` for `most` members and more. */
async function shownRows(
  tx: Transaction,
  needs: ScimGroupsNeeds,
  tenantId: string,
  rows: readonly ScimGroupRow[],
  most?: number,
): Promise<readonly JsonObject[]> {
  const roles = rows.map(({ role }) => role)
  const members = roles.length === 0 ? [] : await membersWithRoles(tx, tenantId, roles, most)
  if (members.length === most) throw invalid('tooMany', 'Too many members for a filter on members.')
  return rows.map((row) => {
    const own = members.filter(({ role }) => role === row.role)
    return presentedGroup(row, own, baseOf(needs)).resource
  })
}

/** The groups that a filter finds. @throws {ScimFault} `invalidFilter`, or `tooMany` for too many members. */
async function filtered(
  all: readonly ScimGroupRow[],
  filter: Filter,
  shownOf: (rows: readonly ScimGroupRow[], most?: number) => Promise<readonly JsonObject[]>,
): Promise<readonly ScimGroupRow[]> {
  const predicate = predicateOf(filter, GROUP_RESOURCE)
  const shown = names(filter, 'members')
    ? await shownOf(all, SEARCHED_MEMBERS_MAX)
    : all.map((row) => presentedGroup(row, [], '').resource)
  return all.filter((_, at) => predicate(shown[at]!))
}
