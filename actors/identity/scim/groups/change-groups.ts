/** Changes of SCIM groups. A change of members gives or takes the role of the group, in one transaction. */
import { type EventContext, eventContext } from '../../../domain/events.js'
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import {
  countTenantUsers,
  deleteScimGroupRow,
  giveRole,
  insertScimGroup,
  membersWithRoles,
  type ScimGroupRow,
  takeRole,
  updateScimGroup,
} from '../../../../storage/identity/scim-groups.js'
import { keepsOwner } from '../../../../storage/identity/tenant-users.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { isUuid } from '../../../domain/ids.js'
import { recordAudit } from '../../../platform/record-audit.js'
import { invalid, refusing, ScimFault } from '../faults.js'
import type { AskedAttributes, Conditional } from '../protocol.js'
import { endUser } from '../../../platform/people/ending.js'
import { holdsLess, isProtectedOwner, rolesBeyond } from '../../../domain/people/role-powers.js'
import { type GroupState, mayBeNamed, patchedGroup, readGroup, roleOf } from './group.js'
import type { Handling, ScimGroupsNeeds } from './needs.js'
import type { OneGroup, WriteGroup } from './protocol.js'
import { foundGroup, shownGroup } from './read-groups.js'

const GROUPS_MAX = 1_000
/** More ids than that are counted, not listed, in audit records. */
const AUDITED_IDS_MAX = 100

type Moved = { readonly added: readonly string[]; readonly removed: readonly string[] }

export const createScimGroup: Handling<'createScimGroup'> = (needs, message, context) =>
  changing(needs, async (tx) => {
    const { caller, body } = message
    const { displayName, externalId, members } = readGroup(body)
    const now = needs.clock.now()
    const row: ScimGroupRow = {
      id: needs.random.uuid(),
      tenantId: caller.principal.tenantId,
      displayName,
      role: roleOf(displayName),
      externalId,
      createdAt: now,
      updatedAt: now,
    }
    if (!(await insertScimGroup(tx, row, GROUPS_MAX)))
      throw invalid('tooMany', `The tenant has ${GROUPS_MAX} groups.`)
    // Users may have the role already: then they are members.
    const held = await membersWithRoles(tx, row.tenantId, [row.role])
    const memberIds = new Set(held.map(({ id }) => id))
    const after = new Set([...memberIds, ...(members ?? [])])
    const by = eventContext(needs, caller, context)
    const moved = await setMembers(tx, { ...row, memberIds }, after, by)
    recordAudit(tx, needs, caller, context, groupChange('created', row, moved))
    const shown = await shownGroup(tx, needs, { ...message, groupId: row.id })
    return { ...shown, tag: 'created' as const }
  })

export const replaceScimGroup: Handling<'replaceScimGroup'> = (needs, message, context) =>
  write(needs, message, () => readGroup(message.body), context)

export const patchScimGroup: Handling<'patchScimGroup'> = (needs, message, context) =>
  write(needs, message, (before) => patchedGroup(before, message.body), context)

export const deleteScimGroup: Handling<'deleteScimGroup'> = (needs, message, context) =>
  changing(needs, async (tx) => {
    const { caller, ifMatch } = message
    const { row, memberIds } = await foundGroup(tx, needs, message, ifMatch)
    const by = eventContext(needs, caller, context)
    const moved = await setMembers(tx, { ...row, memberIds }, new Set(), by)
    await deleteScimGroupRow(tx, row.tenantId, row.id)
    recordAudit(tx, needs, caller, context, groupChange('deleted', row, moved))
    return { tag: 'deleted' as const }
  })

const write = (
  needs: ScimGroupsNeeds,
  message: OneGroup & WriteGroup & Conditional & AskedAttributes,
  afterOf: (before: GroupState & { id: string }) => GroupState,
  context: MessageContext,
) =>
  changing(needs, async (tx) => {
    const { caller, ifMatch } = message
    const { row, memberIds } = await foundGroup(tx, needs, message, ifMatch)
    const { id, displayName, externalId } = row
    const after = afterOf({ id, displayName, externalId, members: memberIds })
    if (!mayBeNamed(after.displayName, row))
      throw invalid('invalidValue', 'displayName is the name of another role.')
    const isRenamed = after.displayName !== displayName || after.externalId !== externalId
    const named = { ...row, displayName: after.displayName, externalId: after.externalId }
    const members = after.members ?? memberIds
    const by = eventContext(needs, caller, context)
    const moved = await setMembers(tx, { ...row, memberIds }, members, by)
    if (isRenamed || moved.added.length + moved.removed.length > 0) {
      await updateScimGroup(tx, named, needs.clock.now())
      recordAudit(tx, needs, caller, context, groupChange('updated', named, moved))
    }
    return shownGroup(tx, needs, message)
  })

/** Sessions of several tenants can end with an account's role, so the transaction crosses tenants. */
const changing = <T>({ database }: ScimGroupsNeeds, work: (tx: Transaction) => Promise<T>) =>
  refusing(async () => {
    try {
      return await database.system(work)
    } catch (error) {
      const { constraint } = error as { constraint?: unknown }
      if (constraint === 'scim_groups_display_name' || constraint === 'scim_groups_role')
        throw new ScimFault(409, 'uniqueness', 'Another group has the name or its role.')
      throw error
    }
  })

/** Gives and takes the role. @throws {ScimFault} 400 for an unknown user, 403 beyond the token. */
async function setMembers(
  tx: Transaction,
  { tenantId, role, memberIds: before }: ScimGroupRow & { readonly memberIds: ReadonlySet<string> },
  after: ReadonlySet<string>,
  by: EventContext,
): Promise<Moved> {
  const { scopes } = by.caller.principal
  const { now } = by
  const added = [...after].filter((id) => !before.has(id))
  const removed = [...before].filter((id) => !after.has(id))
  const isBeyond =
    (added.length > 0 && rolesBeyond([role], [], scopes).length > 0) ||
    (removed.length > 0 && isProtectedOwner([role], scopes))
  if (isBeyond) throw new ScimFault(403, null, 'The SCIM token may not give or take this role.')
  const isKnown =
    added.length === 0 ||
    (added.every(isUuid) && (await countTenantUsers(tx, tenantId, added)) === added.length)
  if (!isKnown) throw invalid('invalidValue', 'A member is not a user of the tenant.')
  if (added.length > 0) await giveRole(tx, tenantId, role, added, now)
  if (removed.length === 0) return { added, removed }
  const leaving = removed.map((id) => ({ id, roles: [role] }))
  if (!(await keepsOwner(tx, tenantId, leaving)))
    throw new ScimFault(409, null, 'The tenant needs an owner.')
  for (const user of await takeRole(tx, tenantId, role, removed, now)) {
    // Tokens carry the scopes of the role.
    if (!holdsLess(user.roles, [...user.roles, role])) continue
    appendEvents(tx, await endUser(tx, user, 'roles_narrowed', by))
  }
  return { added, removed }
}

const groupChange = (
  verb: 'created' | 'updated' | 'deleted',
  { id, displayName, role }: ScimGroupRow,
  { added, removed }: Moved,
) => ({
  type: `admin.scim_group.${verb}` as const,
  resource: { type: 'scim_group', id },
  data: {
    display_name: displayName,
    role,
    added: added.slice(0, AUDITED_IDS_MAX),
    added_count: added.length,
    removed: removed.slice(0, AUDITED_IDS_MAX),
    removed_count: removed.length,
  },
})
