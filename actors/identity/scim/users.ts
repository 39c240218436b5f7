/**
 * The users of a tenant, as a directory provisions them. Each change is one transaction: account, tenant user, attributes
 * and events. docs/reference/identity.md, SCIM.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import {
  findScimUser,
  listScimUsers,
  scimUserPage,
  moveTenantUser,
  type ScimUserRow,
  writeScimUser,
} from '../../../storage/identity/scim-users.js'
import {
  insertTenantUser,
  keepsOwner,
  lockTenantUser,
  reactivateTenantUser,
  removeTenantUser,
  reviveTenantUser,
  suspendTenantUser,
  updateTenantUser,
} from '../../../storage/identity/tenant-users.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { voidTickets } from '../../../storage/operations/mail-tickets.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { audited, type Caller } from '../../domain/audit.js'
import type { EventType, NewEvent } from '../../domain/events.js'
import { isUuid } from '../../domain/ids.js'
import type { MailQueue } from '../../platform/mail/mail-queue.js'
import { MailShareUsed } from '../../platform/mail/mail-queue.js'
import type { InvitationsSettings } from '../sign-in/settings.js'
import { endUser, type EndingNeeds, userEvent } from '../users/ending.js'
import { isFixtureLimit } from '../users/fixtures.js'
import { invitationMessages, type PreparedInvitation } from '../users/invitations.js'
import { MEMBER_CONSTRAINT, provideAccount } from '../users/provisioning.js'
import { holdsLess, isProtectedOwner, rolesBeyond } from '../users/rules.js'
import { planOf } from './condition.js'
import { invalid, refusing, ScimFault } from './faults.js'
import { parseFilter } from './filter.js'
import { patched } from './patch.js'
import { type Person, personOf, presentedUser, resourceOf } from './person.js'
import { pageOf } from './paging.js'
import { isMatch } from './precondition.js'
import { scimProvisioning } from './provisioning.js'
import { projection } from './projection.js'
import { searched } from './search.js'
import { membersOf, readResource, type Resource } from './resource.js'
import { USER_RESOURCE } from './schema.js'
import type {
  Conditional,
  AskedAttributes,
  ListScimUsers,
  OneScimUser,
  ScimProtocol,
  ScimUserFound,
  WriteUser,
} from './protocol.js'

const SUBJECT_BYTES = 24
/** Users without an address have an account that no mail reaches (RFC 6761 section 6.4). */
const NO_MAILBOX = 'scim.invalid'
const USER_NAME_CONSTRAINT = 'scim_users_user_name'

export type ScimUsersNeeds = EndingNeeds & {
  readonly database: Database
  readonly clock: Clock
  readonly mail: MailQueue
  readonly invitations: InvitationsSettings
  /** `oidc.issuer_url`. */
  readonly issuer: string
  /** `scim.max_results`. */
  readonly maxResults: number
  /** `scim.groups_enabled`. */
  readonly groups: boolean
}

type Outcome<K extends keyof ScimProtocol> = Promise<ScimProtocol[K]['reply']>

const unknownUser = () => new ScimFault(404, null, 'The user does not exist.')
const notUnique = (what: string) =>
  new ScimFault(409, 'uniqueness', `Another user has the ${what}.`)

export function scimUsers(needs: ScimUsersNeeds) {
  const { database, clock, random, groups } = needs
  const base = `${needs.issuer}/scim/v2`
  const messages = invitationMessages(needs)
  const provisioning = scimProvisioning(needs)

  /** Runs a change in one transaction. Faults and violated constraints become refusals. */
  async function changing<T>(
    work: (tx: Transaction) => Promise<T>,
    context: MessageContext | null,
  ) {
    return refusing(async () => {
      try {
        return await database.system(work, context === null ? {} : { signal: context.signal })
      } catch (error) {
        const { constraint } = error as { constraint?: unknown }
        if (constraint === USER_NAME_CONSTRAINT) throw notUnique('userName')
        if (constraint === MEMBER_CONSTRAINT) throw notUnique('mail address')
        if (isFixtureLimit(error))
          throw new ScimFault(409, null, 'Five fixture users are active, which is the limit.')
        throw error
      }
    })
  }

  async function found(tx: Transaction, { caller, userId }: OneScimUser): Promise<ScimUserRow> {
    const { tenantId } = caller.principal
    const row = isUuid(userId) ? await findScimUser(tx, tenantId, userId) : undefined
    if (row === undefined) throw unknownUser()
    return row
  }

  /** The user, locked until the transaction ends. @throws {ScimFault} 404, and 412 by If-Match. */
  async function held(tx: Transaction, message: OneScimUser & Conditional): Promise<ScimUserRow> {
    const { caller, userId, ifMatch } = message
    if (isUuid(userId)) await lockTenantUser(tx, caller.principal.tenantId, userId)
    const row = await found(tx, message)
    if (!isMatch(ifMatch, presentedUser(row, base, groups).version))
      throw new ScimFault(412, null, 'The user has another version now. Read it again.')
    return row
  }

  async function shown(tx: Transaction, message: OneScimUser & AskedAttributes) {
    const { resource, version } = presentedUser(await found(tx, message), base, groups)
    const project = projection(message, USER_RESOURCE)
    return { tag: 'found' as const, id: message.userId, resource: project(resource), version }
  }

  const event = (
    caller: Caller,
    id: string,
    type: EventType,
    fields: Readonly<Record<string, unknown>>,
    { requestId }: MessageContext,
  ): NewEvent =>
    userEvent(
      random,
      caller,
      { tenantId: caller.principal.tenantId, id },
      type,
      fields,
      clock.now(),
      requestId,
    )

  const provisionedEvent = (
    caller: Caller,
    id: string,
    person: Person,
    status: string,
    context: MessageContext,
  ) =>
    event(
      caller,
      id,
      'sso.user.provisioned',
      { provider: 'scim', ...eventFields(person, status) },
      context,
    )

  /** @throws {ScimFault} 403 */
  function demandRoles(caller: Caller, roles: readonly string[], before: readonly string[]): void {
    const { scopes } = caller.principal
    const beyond = rolesBeyond(roles, before, scopes)
    const taken = before.includes('owner') && !roles.includes('owner')
    if (beyond.length > 0 || (taken && isProtectedOwner(before, scopes)))
      throw new ScimFault(403, null, 'The SCIM token may not give or take these roles.')
  }

  /** @throws {ScimFault} 403 for an owner whom the token may not change, 409 for the last owner. */
  async function demandOwnerStays(tx: Transaction, caller: Caller, user: ScimUserRow) {
    if (!user.roles.includes('owner')) return
    if (isProtectedOwner(user.roles, caller.principal.scopes))
      throw new ScimFault(403, null, 'The user is an owner, whom this SCIM token may not change.')
    if (!(await keepsOwner(tx, user.tenantId, [user])))
      throw new ScimFault(409, null, 'The user is the last owner of the tenant.')
  }

  /**
   * Inserts the user with its events.
   * @throws {InvitationNeeded} if the user is invited and the message is not prepared.
   */
  async function insert(
    tx: Transaction,
    { caller }: WriteUser,
    person: Person,
    invitation: PreparedInvitation | 'unprepared' | null,
    context: MessageContext,
  ): Promise<ScimUserRow> {
    const now = clock.now()
    const { tenantId } = caller.principal
    demandRoles(caller, person.roles, [])
    const freshId = random.uuid()
    const email = person.email ?? `${freshId}@${NO_MAILBOX}`
    const { address } = caller
    const asked = { tenantId, email, displayName: '', passwordHash: null, address }
    const { accountId, known, status } = await provideAccount(
      tx,
      { random },
      { ...asked, withoutPassword: true },
      context,
      now,
    )
    if (known !== undefined && known.status !== 'removed') throw notUnique('mail address')
    const id = known?.id ?? freshId
    let inserted: Promise<void> | undefined
    const named = { displayName: person.displayName, invitedAs: email, profile: person.profile }
    // No owner of a mailbox can accept for a user without an address.
    const initial = person.email === null ? 'pre_provisioned' : status
    if (initial === 'invited' && invitation === 'unprepared') throw new InvitationNeeded()
    const user = { tenantId, id, status: initial, ...named } as const
    if (known === undefined) {
      const sub = random.token(SUBJECT_BYTES)
      const { roles } = person
      const row = { ...user, accountId, sub, roles, fixture: false, createdAt: now }
      // Together with the statements below in one round trip. A failure of it is theirs as well.
      inserted = insertTenantUser(tx, row)
    } else {
      if (!(await reviveTenantUser(tx, user, now))) throw notUnique('mail address')
      const { roles } = person
      const change = { displayName: undefined, metadata: undefined, roles }
      await updateTenantUser(tx, tenantId, id, change, now)
    }
    const off = person.active === false
    const [, isWritten, , row] = await Promise.all([
      inserted,
      writeScimUser(tx, tenantId, id, person, now),
      off ? suspendTenantUser(tx, tenantId, id, now) : false,
      findScimUser(tx, tenantId, id),
    ])
    if (!isWritten) throw notUnique('userName')
    if (row === undefined) throw new Error('a user that was inserted is missing')
    const fields = eventFields(person, initial)
    const events = [provisionedEvent(caller, id, person, initial, context)]
    if (initial === 'invited') {
      events.push(event(caller, id, 'tenant_user.invited', fields, context))
      if (invitation !== null && invitation !== 'unprepared')
        await messages.send(tx, invitation, { tenantId, accountId, email })
    }
    if (off) {
      const suspended = { status: 'suspended', fixture: false }
      events.push(event(caller, id, 'tenant_user.suspended', suspended, context))
    }
    appendEvents(tx, events)
    return row
  }

  /** Writes what a request changed, and nothing if it changed nothing. */
  async function store(
    tx: Transaction,
    caller: Caller,
    row: ScimUserRow,
    after: Resource,
    context: MessageContext,
  ): Promise<void> {
    const before = personOf(resourceOf(row))
    const person = personOf(after)
    const now = clock.now()
    const { tenantId, id } = row
    const events: NewEvent[] = []
    const changed = changedMembers(before, person)
    if (changed.includes('roles')) {
      demandRoles(caller, person.roles, row.roles)
      if (row.roles.includes('owner') && !person.roles.includes('owner'))
        await demandOwnerStays(tx, caller, row)
    }
    if (changed.length > 0 || row.attributes === null) {
      const { displayName, roles, profile } = person
      const change = {
        displayName: changed.includes('displayName') ? displayName : undefined,
        roles: changed.includes('roles') ? roles : undefined,
        metadata: undefined,
        profile: changed.includes('profile') ? profile : undefined,
      }
      if (changed.some((name) => ['displayName', 'roles', 'profile'].includes(name)))
        await updateTenantUser(tx, tenantId, id, change, now)
      if (!(await writeScimUser(tx, tenantId, id, person, now))) throw notUnique('userName')
    }
    if (person.email !== null && person.email.toLowerCase() !== row.accountEmailKey)
      events.push(...(await move(tx, caller, row, person.email, context, now)))
    if (changed.includes('roles') && holdsLess(person.roles, row.roles))
      events.push(...(await end(tx, caller, row, 'roles_narrowed', now, context)))
    events.push(...(await setActive(tx, caller, row, person.active, context, now)))
    if (changed.length > 0) {
      const roles = { roles: person.roles, roles_before: row.roles }
      appendAudit(tx, [
        audited(caller, {
          id: random.uuid(),
          tenantId,
          type: 'admin.user.updated',
          occurredAt: now,
          resource: { type: 'tenant_user', id },
          requestId: context.requestId,
          data: { changed, ...(changed.includes('roles') ? roles : {}) },
        }),
      ])
    }
    if (events.length > 0) appendEvents(tx, events)
  }

  const end = (
    tx: Transaction,
    caller: Caller,
    user: ScimUserRow,
    reason: string,
    now: Date,
    { requestId }: MessageContext,
  ) => endUser(tx, needs, caller, user, reason, now, requestId)

  /**
   * Moves a user who has not signed in yet to the account of a new address. Later the address of the account belongs to
   * its owner: a directory cannot change it, and only the attribute changes.
   */
  async function move(
    tx: Transaction,
    caller: Caller,
    row: ScimUserRow,
    email: string,
    context: MessageContext,
    now: Date,
  ): Promise<readonly NewEvent[]> {
    const waiting = row.storedStatus === 'suspended' ? row.suspendedFrom : row.storedStatus
    if (waiting !== 'invited' && waiting !== 'pre_provisioned') return []
    // The person of the new address may have to accept first.
    await demandOwnerStays(tx, caller, row)
    const { tenantId, id } = row
    const asked = { tenantId, email, displayName: '', passwordHash: null, address: caller.address }
    const provided = await provideAccount(
      tx,
      { random },
      { ...asked, withoutPassword: true },
      context,
      now,
    )
    if (provided.known !== undefined) throw notUnique('mail address')
    const { accountId, status } = provided
    if (!(await moveTenantUser(tx, row, { accountId, status, invitedAs: email }, now))) return []
    await voidTickets(tx, row.accountId, tenantId, 'invitation', now)
    if (status !== 'invited' || row.storedStatus === 'suspended') return []
    return [event(caller, id, 'tenant_user.invited', { email, status, fixture: false }, context)]
  }

  async function setActive(
    tx: Transaction,
    caller: Caller,
    row: ScimUserRow,
    active: boolean | undefined,
    context: MessageContext,
    now: Date,
  ): Promise<readonly NewEvent[]> {
    const { tenantId, id, fixture } = row
    if (active === false && row.storedStatus !== 'suspended') {
      await demandOwnerStays(tx, caller, row)
      const ended = await end(tx, caller, row, 'user_suspended', now, context)
      if (!(await suspendTenantUser(tx, tenantId, id, now))) return ended
      const fields = { status: 'suspended', fixture }
      return [...ended, event(caller, id, 'tenant_user.suspended', fields, context)]
    }
    if (active !== true || row.storedStatus !== 'suspended') return []
    if (isProtectedOwner(row.roles, caller.principal.scopes))
      throw new ScimFault(403, null, 'The user is an owner, whom this SCIM token may not change.')
    if (!(await reactivateTenantUser(tx, tenantId, id, now))) return []
    const fields = { status: row.suspendedFrom ?? 'active', fixture }
    return [event(caller, id, 'tenant_user.activated', fields, context)]
  }

  async function write(
    message: OneScimUser & WriteUser & Conditional & AskedAttributes,
    afterOf: (row: ScimUserRow) => Resource,
    context: MessageContext,
  ): Promise<ScimUserFound | ReturnType<typeof invalid>['refusal']> {
    // Not cancelled with the request: a suspension must not depend on the caller's connection.
    return changing(async (tx) => {
      const row = await held(tx, message)
      await store(tx, message.caller, row, afterOf(row), context)
      return shown(tx, message)
    }, null)
  }

  return {
    async createUser(
      message: WriteUser & AskedAttributes,
      context: MessageContext,
    ): Outcome<'createUser'> {
      return refusing(async () => {
        const person = personOf(readResource(message.body))
        const { tenantId } = message.caller.principal
        const project = projection(message, USER_RESOURCE)
        const createdOf = (row: ScimUserRow) => {
          const { resource, version } = presentedUser(row, base, groups)
          return { tag: 'created' as const, id: row.id, resource: project(resource), version }
        }
        const provisioned = await provisioning.create(tenantId, person, (id) => [
          provisionedEvent(message.caller, id, person, 'pre_provisioned', context),
        ])
        if (provisioned !== undefined) return createdOf(provisioned)
        const insertWith = (sent: PreparedInvitation | 'unprepared' | null) =>
          changing(
            async (tx) => createdOf(await insert(tx, message, person, sent, context)),
            context,
          )
        try {
          // Most users need no invitation, and a message is sealed before the transaction that sends it.
          return await insertWith(needs.invitations.enabled ? 'unprepared' : null)
        } catch (error) {
          if (!(error instanceof InvitationNeeded)) throw error
        }
        try {
          const invited = { email: person.email!, locale: person.profile.locale }
          return await insertWith(await messages.prepare(tenantId, invited, context))
        } catch (error) {
          // The directory goes on. An operator sends the invitation again when the limit allows it.
          if (!(error instanceof MailShareUsed)) throw error
          return await insertWith(null)
        }
      })
    },

    readUser: (message: OneScimUser & AskedAttributes, { signal }: MessageContext) =>
      refusing(() => database.system((tx) => shown(tx, message), { signal })),

    listUsers: (message: ListScimUsers & AskedAttributes, { signal }: MessageContext) =>
      refusing(async () => {
        const { filter, caller } = message
        const project = projection(message, USER_RESOURCE)
        const { condition, rest } =
          filter === null || filter.trim() === ''
            ? { condition: null, rest: null }
            : planOf(parseFilter(filter))
        const page = pageOf(message, needs.maxResults)
        const { tenantId } = caller.principal
        const shownOf = (row: ScimUserRow) => presentedUser(row, base, groups).resource
        const { found, total } = await database.system(
          async (tx) => {
            if (rest !== null)
              return searched(page, clock, rest, shownOf, (batch) =>
                scimUserPage(tx, tenantId, condition, batch),
              )
            const { rows, total } = await listScimUsers(tx, tenantId, condition, page)
            return { found: rows.map(shownOf), total }
          },
          { signal },
        )
        const resources = found.map(project)
        return { tag: 'listed' as const, total, startIndex: page.offset + 1, resources }
      }),

    replaceUser: (
      message: OneScimUser & WriteUser & Conditional & AskedAttributes,
      context: MessageContext,
    ): Outcome<'replaceUser'> =>
      write(
        message,
        (row) => {
          const given = readResource(message.body)
          const members = membersOf(message.body)
          const before = resourceOf(row)
          // Absent is no statement about these (RFC 7644 section 3.5.1): directories seldom send roles.
          for (const name of ['roles', 'active'])
            if (!members.has(name) && before[name] !== undefined) given[name] = before[name]
          return given
        },
        context,
      ),

    patchUser: (
      message: OneScimUser & WriteUser & Conditional & AskedAttributes,
      context: MessageContext,
    ): Outcome<'patchUser'> =>
      write(
        message,
        (row) => {
          const { id: _id, ...after } = patched({ ...resourceOf(row), id: row.id }, message.body)
          return after
        },
        context,
      ),

    deleteUser: (
      message: OneScimUser & Conditional,
      context: MessageContext,
    ): Outcome<'deleteUser'> =>
      changing(async (tx) => {
        const { caller } = message
        const user = await held(tx, message)
        await demandOwnerStays(tx, caller, user)
        const now = clock.now()
        const events = await end(tx, caller, user, 'user_removed', now, context)
        if (!(await removeTenantUser(tx, user.tenantId, user.id, now))) throw unknownUser()
        await voidTickets(tx, user.accountId, user.tenantId, 'invitation', now)
        const fields = { status: 'removed', fixture: user.fixture }
        appendEvents(tx, [
          ...events,
          event(caller, user.id, 'tenant_user.removed', fields, context),
        ])
        return { tag: 'deleted' as const }
      }, null),
  }
}

/** Rolls the transaction back: the user is invited, and the message is not prepared yet. */
class InvitationNeeded extends Error {}

function eventFields({ email, userName }: Person, status: string) {
  return { email: email ?? userName, status, fixture: false }
}

/** The names of the different parts, for the audit record. */
function changedMembers(before: Person, after: Person): readonly string[] {
  const parts = ['userName', 'externalId', 'displayName', 'profile', 'roles', 'attributes'] as const
  return parts.filter(
    (name) => JSON.stringify(sorted(before[name])) !== JSON.stringify(sorted(after[name])),
  )
}

/** Members in the order of their names. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return entries.map(([name, each]) => [name, sorted(each)])
}
