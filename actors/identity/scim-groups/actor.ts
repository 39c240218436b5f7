/** SCIM groups. A change of members gives or takes the role of the group, in one transaction. */
import { defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import {
  countTenantUsers,
  deleteScimGroup,
  findScimGroup,
  giveRole,
  insertScimGroup,
  listScimGroups,
  membersWithRoles,
  type ScimGroupRow,
  takeRole,
  updateScimGroup,
} from '../../../storage/identity/scim-groups.js'
import { keepsOwner } from '../../../storage/identity/tenant-users.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { type AuditOnlyType, audited, type Caller } from '../../domain/audit.js'
import { isUuid } from '../../domain/ids.js'
import { invalid, refusing, ScimFault } from '../scim/faults.js'
import { type Filter, parseFilter } from '../scim/filter.js'
import { names, predicateOf } from '../scim/resource-filter.js'
import { projection } from '../scim/projection.js'
import { pageOf } from '../scim/paging.js'
import { tokens } from '../../oauth/tokens/protocol.js'
import type { AskedAttributes, Conditional, JsonObject } from '../scim/protocol.js'
import { isMatch } from '../scim/precondition.js'
import { GROUP_RESOURCE } from '../scim/schema.js'
import { endUser, type EndingNeeds } from '../users/ending.js'
import { holdsLess, isProtectedOwner, rolesBeyond } from '../users/rules.js'
import {
  type GroupState,
  mayBeNamed,
  patchedGroup,
  presentedGroup,
  readGroup,
  roleOf,
} from './group.js'
import { type OneGroup, scimGroups, type ScimGroupsProtocol, type WriteGroup } from './protocol.js'

const GROUPS_MAX = 1_000
/** More ids than that are counted, not listed, in audit records. */
const AUDITED_IDS_MAX = 100

export type ScimGroupsNeeds = EndingNeeds & {
  readonly database: Database
  readonly clock: Clock
  /** `oidc.issuer_url`. */
  readonly issuer: string
  /** `scim.max_results`. */
  readonly maxResults: number
}

export const scimGroupsActor = defineActor<ScimGroupsProtocol, ScimGroupsNeeds>({
  address: scimGroups,
  asks: { tokens },
  mailbox: { capacity: 1024, inflightMax: 32 },
  lane: {
    replaceScimGroup: ({ groupId }) => groupId,
    patchScimGroup: ({ groupId }) => groupId,
    deleteScimGroup: ({ groupId }) => groupId,
  },
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { database, clock, random, issuer, maxResults } = needs
    const base = `${issuer}/scim/v2`

    async function changing<T>(work: (tx: Transaction) => Promise<T>) {
      return refusing(async () => {
        try {
          // Sessions of several tenants can end with an account's role, so the transaction crosses tenants.
          return await database.system(work)
        } catch (error) {
          const { constraint } = error as { constraint?: unknown }
          if (constraint === 'scim_groups_display_name' || constraint === 'scim_groups_role')
            throw new ScimFault(409, 'uniqueness', 'Another group has the name or its role.')
          throw error
        }
      })
    }

    async function found(
      tx: Transaction,
      { caller, groupId }: OneGroup,
      ifMatch: string | null | undefined,
    ) {
      const { tenantId } = caller.principal
      const isLocked = ifMatch !== undefined
      const row = isUuid(groupId) ? await findScimGroup(tx, tenantId, groupId, isLocked) : undefined
      if (row === undefined) throw new ScimFault(404, null, 'The group does not exist.')
      const members = await membersWithRoles(tx, tenantId, [row.role])
      const presented = presentedGroup(row, members, base)
      if (isLocked && !isMatch(ifMatch, presented.version))
        throw new ScimFault(412, null, 'The group has another version now. Read it again.')
      return { row, members, ...presented }
    }

    async function shown(tx: Transaction, message: OneGroup & AskedAttributes) {
      const { resource, version } = await found(tx, message, undefined)
      const project = projection(message, GROUP_RESOURCE)
      return { tag: 'found' as const, id: message.groupId, resource: project(resource), version }
    }

    function record(
      caller: Caller,
      type: AuditOnlyType,
      row: ScimGroupRow,
      { added, removed }: { added: readonly string[]; removed: readonly string[] },
      { requestId }: MessageContext,
    ) {
      const names = (ids: readonly string[]) => ids.slice(0, AUDITED_IDS_MAX)
      return audited(caller, {
        id: random.uuid(),
        tenantId: row.tenantId,
        type,
        occurredAt: clock.now(),
        resource: { type: 'scim_group', id: row.id },
        requestId,
        data: {
          display_name: row.displayName,
          role: row.role,
          added: names(added),
          added_count: added.length,
          removed: names(removed),
          removed_count: removed.length,
        },
      })
    }

    /** Gives and takes the role. @throws {ScimFault} 400 for an unknown user, 403 beyond the token. */
    async function setMembers(
      tx: Transaction,
      caller: Caller,
      row: ScimGroupRow,
      before: ReadonlySet<string>,
      after: ReadonlySet<string>,
      context: MessageContext,
    ) {
      const { tenantId, role } = row
      const { scopes } = caller.principal
      const now = clock.now()
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
      if (removed.length > 0) {
        const leaving = removed.map((id) => ({ id, roles: [role] }))
        if (!(await keepsOwner(tx, tenantId, leaving)))
          throw new ScimFault(409, null, 'The tenant needs an owner.')
        const lost = await takeRole(tx, tenantId, role, removed, now)
        for (const user of lost) {
          // Tokens carry the scopes of the role.
          if (!holdsLess(user.roles, [...user.roles, role])) continue
          const { requestId } = context
          const ended = await endUser(tx, needs, caller, user, 'roles_narrowed', now, requestId)
          appendEvents(tx, ended)
        }
      }
      return { added, removed }
    }

    const write = (
      message: OneGroup & WriteGroup & Conditional & AskedAttributes,
      afterOf: (before: GroupState & { id: string }) => GroupState,
      context: MessageContext,
    ) =>
      changing(async (tx) => {
        const { caller } = message
        const { row, members } = await found(tx, message, message.ifMatch)
        const before = new Set(members.map(({ id }) => id))
        const { id, displayName, externalId } = row
        const after = afterOf({ id, displayName, externalId, members: before })
        if (!mayBeNamed(after.displayName, row))
          throw invalid('invalidValue', 'displayName is the name of another role.')
        const isRenamed = after.displayName !== displayName || after.externalId !== externalId
        const named = { ...row, displayName: after.displayName, externalId: after.externalId }
        const changed = await setMembers(tx, caller, row, before, after.members ?? before, context)
        if (isRenamed || changed.added.length + changed.removed.length > 0) {
          await updateScimGroup(tx, named, clock.now())
          appendAudit(tx, [record(caller, 'admin.scim_group.updated', named, changed, context)])
        }
        return shown(tx, message)
      })

    return {
      createScimGroup: (message, context) =>
        changing(async (tx) => {
          const { caller, body } = message
          const { displayName, externalId, members } = readGroup(body)
          const now = clock.now()
          const row: ScimGroupRow = {
            id: random.uuid(),
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
          const before = new Set(held.map(({ id }) => id))
          const after = new Set([...before, ...(members ?? [])])
          const changed = await setMembers(tx, caller, row, before, after, context)
          appendAudit(tx, [record(caller, 'admin.scim_group.created', row, changed, context)])
          return { ...(await shown(tx, { ...message, groupId: row.id })), tag: 'created' as const }
        }),

      readScimGroup: (message, { signal }) =>
        refusing(() => database.system((tx) => shown(tx, message), { signal })),

      listScimGroups: (message, { signal }) =>
        refusing(async () => {
          const { filter: text, caller } = message
          const { tenantId } = caller.principal
          const project = projection(message, GROUP_RESOURCE)
          const { offset, limit } = pageOf(message, maxResults)
          const filter = text === null || text.trim() === '' ? null : parseFilter(text)
          return database.tenant(
            tenantId,
            async (tx) => {
              const all = await listScimGroups(tx, tenantId)
              const shownOf = async (rows: readonly ScimGroupRow[], most?: number) => {
                const roles = rows.map(({ role }) => role)
                const members =
                  roles.length === 0 ? [] : await membersWithRoles(tx, tenantId, roles, most)
                if (members.length === most)
                  throw invalid('tooMany', 'Too many members for a filter on members.')
                return rows.map((row) => {
                  const own = members.filter(({ role }) => role === row.role)
                  return presentedGroup(row, own, base).resource
                })
              }
              const hits = filter === null ? all : await filtered(all, filter, shownOf)
              const shown = await shownOf(hits.slice(offset, offset + limit))
              const resources = shown.map(project)
              const [total, startIndex] = [hits.length, offset + 1]
              return { tag: 'listed' as const, total, startIndex, resources }
            },
            { signal },
          )
        }),

      replaceScimGroup: (message, context) =>
        write(message, () => readGroup(message.body), context),

      patchScimGroup: (message, context) =>
        write(message, (before) => patchedGroup(before, message.body), context),

      deleteScimGroup: (message, context) =>
        changing(async (tx) => {
          const { caller } = message
          const { row, members } = await found(tx, message, message.ifMatch)
          const before = new Set(members.map(({ id }) => id))
          const changed = await setMembers(tx, caller, row, before, new Set(), context)
          await deleteScimGroup(tx, row.tenantId, row.id)
          appendAudit(tx, [record(caller, 'admin.scim_group.deleted', row, changed, context)])
          return { tag: 'deleted' as const }
        }),
    }
  },
})

/** Members that are read to answer a filter on members. */
const SEARCHED_MEMBERS_MAX = 20_000

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
