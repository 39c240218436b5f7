/**
 * The users of a tenant, as a directory provisions them. Each change is one transaction: account, tenant user, attributes
 * and events. docs/reference/identity.md, SCIM.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import {
  countAndListScimUsers,
  type ScimUserRow,
  listScimUserRows,
} from '../../../storage/identity/scim-users.js'
import { removeTenantUserRow } from '../../../storage/identity/tenant-users.js'
import { voidTickets } from '../../../storage/identity/ways/mail-tickets.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { MailShareUsed } from '../../platform/mail/mail-queue.js'
import type { PreparedInvitation } from '../../platform/people/invitations.js'
import { planOf } from './condition.js'
import { refusing } from './faults.js'
import { parseFilter } from './filter.js'
import { patched } from './patch.js'
import { pageOf } from './paging.js'
import type { Handling, ScimTools } from './needs.js'
import { personOf, presentedUser, resourceOf } from './person.js'
import { projection } from './projection.js'
import type { AskedAttributes, Conditional, OneScimUser, WriteUser } from './protocol.js'
import { membersOf, readResource, type Resource } from './resource.js'
import { USER_RESOURCE } from './schema.js'
import { searched } from './search.js'
import {
  changing,
  demandOwnerStays,
  endedUser,
  eventOf,
  foundUser,
  insertUser,
  InvitationNeeded,
  lockedUser,
  provisionedEvent,
  storeUser,
  unknownUser,
} from './user-changes.js'

type ChangeUser = OneScimUser & WriteUser & Conditional & AskedAttributes

async function shown(
  tx: Transaction,
  { base, groups }: ScimTools,
  message: OneScimUser & AskedAttributes,
) {
  const { resource, version } = presentedUser(await foundUser(tx, message), base, groups)
  const project = projection(message, USER_RESOURCE)
  return { tag: 'found' as const, id: message.userId, resource: project(resource), version }
}

export const createScimUser: Handling<'createScimUser'> = (needs, message, context) =>
  refusing(async () => {
    const { caller } = message
    const person = personOf(readResource(message.body))
    const { tenantId } = caller.principal
    const project = projection(message, USER_RESOURCE)
    const createdOf = (row: ScimUserRow) => {
      const { resource, version } = presentedUser(row, needs.base, needs.groups)
      return { tag: 'created' as const, id: row.id, resource: project(resource), version }
    }
    const provisioned = await needs.provisioning.create(tenantId, person, (id) => {
      const now = needs.clock.now()
      return [provisionedEvent({ needs, caller, context, now }, id, person, 'pre_provisioned')]
    })
    if (provisioned !== undefined) return createdOf(provisioned)
    const insertWith = (invitation: PreparedInvitation | 'unprepared' | null) =>
      changing(
        needs,
        caller,
        context,
        async (change) => createdOf(await insertUser(change, person, invitation)),
        context.signal,
      )
    try {
      // Most users need no invitation, and a message is sealed before the transaction that sends it.
      return await insertWith(needs.invitations.enabled ? 'unprepared' : null)
    } catch (error) {
      if (!(error instanceof InvitationNeeded)) throw error
    }
    try {
      const invited = { email: person.email!, locale: person.profile.locale }
      return await insertWith(await needs.messages.prepare(tenantId, invited, context))
    } catch (error) {
      // The directory goes on. An operator sends the invitation again when the limit allows it.
      if (!(error instanceof MailShareUsed)) throw error
      return await insertWith(null)
    }
  })

export const readScimUser: Handling<'readScimUser'> = (needs, message, context) =>
  refusing(() => needs.database.system((tx) => shown(tx, needs, message), context))

// Also the operation `searchScimUsers`.
export const listScimUsers: Handling<'listScimUsers'> = (
  { base, groups, clock, database, maxResults },
  message,
  context,
) =>
  refusing(async () => {
    const { filter, caller } = message
    const project = projection(message, USER_RESOURCE)
    const { condition, rest } =
      filter === null || filter.trim() === ''
        ? { condition: null, rest: null }
        : planOf(parseFilter(filter))
    const page = pageOf(message, maxResults)
    const { tenantId } = caller.principal
    const shownOf = (row: ScimUserRow) => presentedUser(row, base, groups).resource
    const { found, total } = await database.system(async (tx) => {
      if (rest !== null)
        return searched(page, clock, rest, shownOf, (batch) =>
          listScimUserRows(tx, tenantId, condition, batch),
        )
      const { rows, total } = await countAndListScimUsers(tx, tenantId, condition, page)
      return { found: rows.map(shownOf), total }
    }, context)
    const resources = found.map(project)
    return { tag: 'listed' as const, total, startIndex: page.offset + 1, resources }
  })

const changedTo = (
  needs: ScimTools,
  message: ChangeUser,
  context: MessageContext,
  afterOf: (row: ScimUserRow) => Resource,
) =>
  changing(needs, message.caller, context, async (change) => {
    const row = await lockedUser(change, message)
    await storeUser(change, row, afterOf(row))
    return shown(change.tx, needs, message)
  })

export const replaceScimUser: Handling<'replaceScimUser'> = (needs, message, context) =>
  changedTo(needs, message, context, (row) => {
    const given = readResource(message.body)
    const members = membersOf(message.body)
    const before = resourceOf(row)
    // Absent is no statement about these (RFC 7644 section 3.5.1): directories seldom send roles.
    for (const name of ['roles', 'active'])
      if (!members.has(name) && before[name] !== undefined) given[name] = before[name]
    return given
  })

export const patchScimUser: Handling<'patchScimUser'> = (needs, message, context) =>
  changedTo(needs, message, context, (row) => {
    const { id: _id, ...after } = patched({ ...resourceOf(row), id: row.id }, message.body)
    return after
  })

export const deleteScimUser: Handling<'deleteScimUser'> = (needs, message, context) =>
  changing(needs, message.caller, context, async (change) => {
    const { tx, now } = change
    const user = await lockedUser(change, message)
    await demandOwnerStays(change, user)
    const events = await endedUser(change, user, 'user_removed')
    if (!(await removeTenantUserRow(tx, user.tenantId, user.id, now))) throw unknownUser()
    await voidTickets(tx, user.accountId, user.tenantId, 'invitation', now)
    const fields = { status: 'removed', fixture: user.fixture }
    appendEvents(tx, [...events, eventOf(change, user.id, 'tenant_user.removed', fields)])
    return { tag: 'deleted' as const }
  })
