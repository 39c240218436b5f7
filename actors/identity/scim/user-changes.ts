/** The statements and events of a change of a user. Everything here runs in the transaction of its request. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { type Email, parseEmail, placeholderAddress } from '../../domain/email.js'
import {
  findScimUser,
  moveTenantUser,
  type ScimUserRow,
  writeScimUser,
} from '../../../storage/identity/scim-users.js'
import {
  insertTenantUser,
  keepsOwner,
  holdTenantUser,
  reactivateTenantUserRow,
  reviveTenantUser,
  suspendTenantUserRow,
  updateTenantUserRow,
} from '../../../storage/identity/tenant-users.js'
import { voidTickets } from '../../../storage/identity/ways/mail-tickets.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { Caller } from '../../domain/audit.js'
import type { EventFields, EventType, NewEvent } from '../../domain/events.js'
import { isUuid } from '../../domain/ids.js'
import { recordAudit } from '../../platform/record-audit.js'
import { endUser, userEvent } from '../../platform/people/ending.js'
import { isFixtureLimit } from '../../platform/people/provisioning.js'
import type { PreparedInvitation } from '../../platform/people/invitations.js'
import { MEMBER_CONSTRAINT, provideAccount } from '../../platform/people/provisioning.js'
import { holdsLess, isProtectedOwner, rolesBeyond } from '../../domain/people/role-powers.js'
import { refusing, ScimFault } from './faults.js'
import type { ScimTools } from './needs.js'
import { noAddress, type Person, personOf, presentedUser, resourceOf } from './person.js'
import { isMatch } from './precondition.js'
import type { Conditional, OneScimUser } from './protocol.js'
import type { Resource } from './resource.js'

const SUBJECT_BYTES = 24
const USER_NAME_CONSTRAINT = 'scim_users_user_name'

/** A request of a directory in its transaction. */
type Change = {
  readonly needs: ScimTools
  readonly tx: Transaction
  readonly caller: Caller
  readonly context: MessageContext
  readonly now: Date
}

export const unknownUser = () => new ScimFault(404, null, 'The user does not exist.')
const notUnique = (what: string) =>
  new ScimFault(409, 'uniqueness', `Another user has the ${what}.`)
const protectedOwner = () =>
  new ScimFault(403, null, 'The user is an owner, whom this SCIM token may not change.')

/**
 * Runs a change in one transaction. Faults and violated constraints become refusals.
 * @param signal undefined: a suspension must not depend on the caller's connection.
 */
export const changing = <T>(
  needs: ScimTools,
  caller: Caller,
  context: MessageContext,
  work: (change: Change) => Promise<T>,
  signal?: AbortSignal,
) =>
  refusing(async () => {
    try {
      return await needs.database.system(
        (tx) => work({ needs, tx, caller, context, now: needs.clock.now() }),
        { signal },
      )
    } catch (error) {
      const { constraint } = error as { constraint?: unknown }
      if (constraint === USER_NAME_CONSTRAINT) throw notUnique('userName')
      if (constraint === MEMBER_CONSTRAINT) throw notUnique('mail address')
      if (isFixtureLimit(error))
        throw new ScimFault(409, null, 'Five fixture users are active, which is the limit.')
      throw error
    }
  })

/** @throws {ScimFault} 404. */
export async function foundUser(tx: Transaction, { caller, userId }: OneScimUser) {
  const { tenantId } = caller.principal
  const row = isUuid(userId) ? await findScimUser(tx, tenantId, userId) : undefined
  if (row === undefined) throw unknownUser()
  return row
}

/** The user, locked until the transaction ends. @throws {ScimFault} 404, and 412 by If-Match. */
export async function lockedUser(
  { needs: { base, groups }, tx }: Change,
  message: OneScimUser & Conditional,
): Promise<ScimUserRow> {
  const { caller, userId, ifMatch } = message
  if (isUuid(userId)) await holdTenantUser(tx, caller.principal.tenantId, userId)
  const row = await foundUser(tx, message)
  if (!isMatch(ifMatch, presentedUser(row, base, groups).version))
    throw new ScimFault(412, null, 'The user has another version now. Read it again.')
  return row
}

export const eventOf = <T extends EventType>(
  { needs: { random }, caller, now, context: { requestId } }: Omit<Change, 'tx'>,
  id: string,
  type: T,
  fields: EventFields<T>,
): NewEvent => {
  const user = { tenantId: caller.principal.tenantId, id }
  return userEvent(type, user, { caller, random, now, requestId }, fields)
}

export const provisionedEvent = (
  change: Omit<Change, 'tx'>,
  id: string,
  person: Person,
  status: string,
) =>
  eventOf(change, id, 'sso.user.provisioned', { provider: 'scim', ...eventFields(person, status) })

export const endedUser = (
  { tx, needs, caller, now, context: { requestId } }: Change,
  user: ScimUserRow,
  reason: string,
) => endUser(tx, user, reason, { caller, random: needs.random, now, requestId })

/** @throws {ScimFault} 403 */
function demandRoles({ principal }: Caller, roles: readonly string[], before: readonly string[]) {
  const { scopes } = principal
  const beyond = rolesBeyond(roles, before, scopes)
  const taken = before.includes('owner') && !roles.includes('owner')
  if (beyond.length > 0 || (taken && isProtectedOwner(before, scopes)))
    throw new ScimFault(403, null, 'The SCIM token may not give or take these roles.')
}

/** @throws {ScimFault} 403 for an owner whom the token may not change, 409 for the last owner. */
export async function demandOwnerStays({ tx, caller }: Change, user: ScimUserRow): Promise<void> {
  if (!user.roles.includes('owner')) return
  if (isProtectedOwner(user.roles, caller.principal.scopes)) throw protectedOwner()
  if (!(await keepsOwner(tx, user.tenantId, [user])))
    throw new ScimFault(409, null, 'The user is the last owner of the tenant.')
}

const accountFor = ({ needs, tx, caller, context, now }: Change, email: Email) => {
  // An old user keeps an address with letters outside of ASCII in its local part. A new one cannot have it.
  if (parseEmail(email) === undefined) throw noAddress()
  const { tenantId } = caller.principal
  const { address } = caller
  const asked = { tenantId, email, displayName: '', passwordHash: null, address }
  return provideAccount(tx, needs, { ...asked, withoutPassword: true }, now, context)
}

/**
 * Inserts the user with its events.
 * @throws {InvitationNeeded} if the user is invited and the message is not prepared.
 */
export async function insertUser(
  change: Change,
  person: Person,
  invitation: PreparedInvitation | 'unprepared' | null,
): Promise<ScimUserRow> {
  const { needs, tx, caller, now } = change
  const { random } = needs
  const { tenantId } = caller.principal
  const { roles, displayName, profile } = person
  demandRoles(caller, roles, [])
  const freshId = random.uuid()
  const email = person.email ?? placeholderAddress(freshId)
  const { accountId, known, status } = await accountFor(change, email)
  if (known !== undefined && known.status !== 'removed') throw notUnique('mail address')
  const id = known?.id ?? freshId
  // No owner of a mailbox can accept for a user without an address.
  const initial = person.email === null ? 'pre_provisioned' : status
  if (initial === 'invited' && invitation === 'unprepared') throw new InvitationNeeded()
  const user = { tenantId, id, status: initial, displayName, invitedAs: email, profile } as const
  let inserted: Promise<void> | undefined
  if (known === undefined) {
    const sub = random.token(SUBJECT_BYTES)
    const row = { ...user, accountId, sub, roles, fixture: false, createdAt: now }
    // Together with the statements below in one round trip. A failure of it is theirs as well.
    inserted = insertTenantUser(tx, row)
  } else {
    if (!(await reviveTenantUser(tx, user, now))) throw notUnique('mail address')
    const changes = { displayName: undefined, metadata: undefined, roles }
    await updateTenantUserRow(tx, tenantId, id, changes, now)
  }
  const off = person.active === false
  const [, isWritten, , row] = await Promise.all([
    inserted,
    writeScimUser(tx, tenantId, id, person, now),
    off ? suspendTenantUserRow(tx, tenantId, id, now) : false,
    findScimUser(tx, tenantId, id),
  ])
  if (!isWritten) throw notUnique('userName')
  if (row === undefined) throw new Error('a user that was inserted is missing')
  const events = [provisionedEvent(change, id, person, initial)]
  if (initial === 'invited') {
    events.push(eventOf(change, id, 'tenant_user.invited', eventFields(person, initial)))
    if (invitation !== null && invitation !== 'unprepared')
      await needs.messages.send(tx, invitation, { tenantId, accountId, email })
  }
  const suspended = { status: 'suspended', fixture: false }
  if (off) events.push(eventOf(change, id, 'tenant_user.suspended', suspended))
  appendEvents(tx, events)
  return row
}

/** Writes what a request changed, and nothing if it changed nothing. */
export async function storeUser(change: Change, row: ScimUserRow, after: Resource): Promise<void> {
  const { needs, tx, caller, context, now } = change
  const person = personOf(after)
  const { tenantId, id } = row
  const events: NewEvent[] = []
  const changed = changedMembers(personOf(resourceOf(row)), person)
  const has = (name: string) => changed.includes(name)
  if (has('roles')) {
    demandRoles(caller, person.roles, row.roles)
    if (row.roles.includes('owner') && !person.roles.includes('owner'))
      await demandOwnerStays(change, row)
  }
  if (changed.length > 0 || row.attributes === null) {
    const { displayName, roles, profile } = person
    const changes = {
      displayName: has('displayName') ? displayName : undefined,
      roles: has('roles') ? roles : undefined,
      metadata: undefined,
      profile: has('profile') ? profile : undefined,
    }
    if (['displayName', 'roles', 'profile'].some(has))
      await updateTenantUserRow(tx, tenantId, id, changes, now)
    if (!(await writeScimUser(tx, tenantId, id, person, now))) throw notUnique('userName')
  }
  if (person.email !== null && person.email.toLowerCase() !== row.accountEmailKey)
    events.push(...(await moveUser(change, row, person.email)))
  if (has('roles') && holdsLess(person.roles, row.roles))
    events.push(...(await endedUser(change, row, 'roles_narrowed')))
  events.push(...(await setActive(change, row, person.active)))
  if (changed.length > 0) {
    const roles = { roles: person.roles, roles_before: row.roles }
    recordAudit(tx, needs, caller, context, {
      type: 'admin.user.updated',
      resource: { type: 'tenant_user', id },
      data: { changed, ...(has('roles') ? roles : {}) },
    })
  }
  if (events.length > 0) appendEvents(tx, events)
}

/**
 * Moves a user who has not signed in yet to the account of a new address. Later the address of the account belongs to
 * its owner: a directory cannot change it, and only the attribute changes.
 */
async function moveUser(
  change: Change,
  row: ScimUserRow,
  email: Email,
): Promise<readonly NewEvent[]> {
  const { tx, now } = change
  const waiting = row.storedStatus === 'suspended' ? row.suspendedFrom : row.storedStatus
  if (waiting !== 'invited' && waiting !== 'pre_provisioned') return []
  // The person of the new address may have to accept first.
  await demandOwnerStays(change, row)
  const { accountId, status, known } = await accountFor(change, email)
  if (known !== undefined) throw notUnique('mail address')
  if (!(await moveTenantUser(tx, row, { accountId, status, invitedAs: email }, now))) return []
  await voidTickets(tx, row.accountId, row.tenantId, 'invitation', now)
  if (status !== 'invited' || row.storedStatus === 'suspended') return []
  return [eventOf(change, row.id, 'tenant_user.invited', { email, status, fixture: false })]
}

async function setActive(
  change: Change,
  row: ScimUserRow,
  active: boolean | undefined,
): Promise<readonly NewEvent[]> {
  const { tx, caller, now } = change
  const { tenantId, id, fixture } = row
  if (active === false && row.storedStatus !== 'suspended') {
    await demandOwnerStays(change, row)
    const ended = await endedUser(change, row, 'user_suspended')
    if (!(await suspendTenantUserRow(tx, tenantId, id, now))) return ended
    const fields = { status: 'suspended', fixture }
    return [...ended, eventOf(change, id, 'tenant_user.suspended', fields)]
  }
  if (active !== true || row.storedStatus !== 'suspended') return []
  if (isProtectedOwner(row.roles, caller.principal.scopes)) throw protectedOwner()
  if (!(await reactivateTenantUserRow(tx, tenantId, id, now))) return []
  const fields = { status: row.suspendedFrom ?? 'active', fixture }
  return [eventOf(change, id, 'tenant_user.activated', fields)]
}

/** Rolls the transaction back: the user is invited, and the message is not prepared yet. */
export class InvitationNeeded extends Error {}

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
