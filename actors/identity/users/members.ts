/**
 * Tenant users: invited or pre_provisioned -> active -> suspended -> the state before, removed from any state. The row
 * of a removed user stays. A user who returns keeps the subject.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { voidTickets } from '../../../storage/identity/ways/mail-tickets.js'
import { idempotently, kept } from '../../../storage/platform/idempotency.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  findTenantUser,
  insertTenantUser,
  keepsOwner,
  listTenantUserRows,
  reactivateTenantUserRow,
  removeTenantUserRow,
  reviveTenantUser,
  sortTenantUsers,
  suspendTenantUserRow,
  type TenantUserRow,
  updateTenantUserRow,
} from '../../../storage/identity/tenant-users.js'
import { eventContext } from '../../domain/events.js'
import { isStrong } from '../../domain/people/password-rules.js'
import { listed, page } from '../../platform/paging.js'
import { recordAudit } from '../../platform/record-audit.js'
import type { Handling, UsersNeeds } from './needs.js'
import { isFixtureLimit } from '../../platform/people/provisioning.js'
import type { CreateUser, ExportedUser, UserRecord, UsersProtocol } from './protocol.js'
import { endUser, userEvent } from '../../platform/people/ending.js'
import { MEMBER_CONSTRAINT, provideAccount } from '../../platform/people/provisioning.js'
import {
  invitationMessages,
  mailThrottled,
  type PreparedInvitation,
} from '../../platform/people/invitations.js'
import { findUser, holdUser, isAbove } from './finding.js'
import { holdsLess, rolesBeyond } from '../../domain/people/role-powers.js'

const SUBJECT_BYTES = 24
/** Users of one read, and of an export. */
const EXPORT_PAGE = 1_000
const EXPORT_MAX = 100_000
const UNKNOWN_USER = { tag: 'unknown_user' } as const
const ABOVE = { tag: 'owner_above_caller' } as const
const LAST_OWNER = { tag: 'last_owner' } as const
const EXISTS = { tag: 'user_exists' } as const

async function present(tx: Transaction, { tenantId, id }: TenantUserRow) {
  const user = await findTenantUser(tx, tenantId, id)
  if (user === undefined) throw new Error('a tenant user that was found is missing')
  return { tag: 'found' as const, user: recordOf(user) }
}

type Prepared = {
  readonly passwordHash: string | null
  readonly withoutPassword: boolean
  readonly invitation: PreparedInvitation | null
}

/** Adds a user, and queues the invitation if the person must accept. */
export async function insertUser(
  tx: Transaction,
  needs: UsersNeeds,
  { caller, email, displayName, profile }: Omit<CreateUser, 'password' | 'idempotency'>,
  { passwordHash, withoutPassword, invitation }: Prepared,
  context: MessageContext,
) {
  const by = eventContext(needs, caller, context)
  const { random, now } = by
  const { tenantId } = caller.principal
  const { accountId, status, known } = await provideAccount(
    tx,
    needs,
    {
      tenantId,
      email,
      displayName: displayName ?? '',
      passwordHash,
      withoutPassword,
      address: caller.address,
    },
    now,
    context,
  )
  if (known !== undefined && known.status !== 'removed') return EXISTS
  const id = known?.id ?? random.uuid()
  if (known === undefined) {
    await insertTenantUser(tx, {
      tenantId,
      id,
      accountId,
      sub: random.token(SUBJECT_BYTES),
      status,
      roles: [],
      fixture: false,
      createdAt: now,
      displayName: displayName ?? null,
      invitedAs: email,
      profile,
    })
  } else {
    const shown = { displayName: displayName ?? null, invitedAs: email, profile }
    const back = { tenantId, id, status, ...shown } as const
    if (!(await reviveTenantUser(tx, back, now))) return EXISTS
  }
  const user = await findTenantUser(tx, tenantId, id)
  if (user === undefined) throw new Error('a tenant user that was inserted is missing')
  if (status === 'invited' && invitation !== null)
    await invitationMessages(needs).send(tx, invitation, user)
  const fields = { email: user.email, status, fixture: false }
  appendEvents(tx, [
    userEvent('admin.user.created', user, by, fields),
    ...(status === 'invited' ? [userEvent('tenant_user.invited', user, by, fields)] : []),
  ])
  return { tag: 'created' as const, user: recordOf(user), replayed: false }
}

export const listTenantUsers: Handling<'listTenantUsers'> = async (needs, message, context) => {
  const { tenantId, order, limit, after, ...filter } = message
  if (order === null) {
    const rows = await needs.database.system(
      (tx) => listTenantUserRows(tx, tenantId, filter, limit + 1, after),
      context,
    )
    return listed(rows.map(recordOf), limit)
  }
  const from = after?.key === undefined ? null : { ...after, key: after.key }
  const rows = await needs.database.system(
    (tx) => sortTenantUsers(tx, tenantId, filter, { ...order, limit: limit + 1, after: from }),
    context,
  )
  const { items, next } = page(rows, limit)
  const key = items.at(-1)?.sortKey
  const users = items.map(({ sortKey: _key, ...user }) => recordOf(user))
  return { tag: 'listed', rows: users, next: next && { ...next, key } }
}

export const exportTenantUsers: Handling<'exportTenantUsers'> = async (
  needs,
  { tenantId, ...filter },
  context,
) => {
  const users: ExportedUser[] = []
  let after: TenantUserRow | null = null
  do {
    const from: TenantUserRow | null = after
    const rows: TenantUserRow[] = await needs.database.system(
      (tx) => listTenantUserRows(tx, tenantId, filter, EXPORT_PAGE, from),
      context,
    )
    // Whole rows of a large tenant would fill the memory of the process.
    for (const { email, displayName, status, roles, createdAt } of rows)
      users.push({ email, displayName, status, roles, createdAt })
    after = rows.length < EXPORT_PAGE ? null : rows.at(-1)!
  } while (after !== null && users.length < EXPORT_MAX)
  return { tag: 'exported', users }
}

export const readTenantUser: Handling<'readTenantUser'> = async (needs, message, context) => {
  const user = await needs.database.system((tx) => findUser(tx, message), context)
  return user === undefined ? UNKNOWN_USER : { tag: 'found', user: recordOf(user) }
}

export const createTenantUser: Handling<'createTenantUser'> = async (needs, message, context) => {
  let passwordHash: string | null = null
  if (message.password !== undefined) {
    if (!isStrong(message.password, message.email)) return { tag: 'password_unacceptable' }
    const hashed = await needs.passwords.choose({ password: message.password }, context)
    if (hashed.tag === 'busy') return hashed
    if (hashed.tag === 'unchecked') return { tag: 'password_unchecked' }
    if (hashed.tag === 'common') return { tag: 'password_common' }
    if (hashed.tag === 'breached') return { tag: 'password_breached' }
    if (hashed.tag === 'unacceptable') return { tag: 'password_unacceptable' }
    passwordHash = hashed.phc
  }
  const { tenantId } = message.caller.principal
  const { locale } = message.profile
  const invited = { email: message.email, locale }
  const way = { passwordHash, withoutPassword: false }
  const invitation = await invitationMessages(needs).prepare(tenantId, invited, context)
  try {
    // The account is global, the membership belongs to the tenant: both or neither.
    return await needs.database.system(
      (tx) =>
        idempotently(
          tx,
          message.idempotency,
          () => insertUser(tx, needs, message, { ...way, invitation }, context),
          kept('created'),
        ),
      context,
    )
  } catch (error) {
    // A concurrent request invited the same user between the query and the insert.
    if ((error as { constraint?: unknown }).constraint === MEMBER_CONSTRAINT) return EXISTS
    return mailThrottled(error)
  }
}

export const sendTenantUserInvitation: Handling<'sendTenantUserInvitation'> = async (
  needs,
  message,
  context,
) => {
  const known = await needs.database.system((tx) => findUser(tx, message), context)
  if (known === undefined) return UNKNOWN_USER
  if (known.status !== 'invited') return { tag: 'not_invited' }
  const { email, profile } = known
  const invited = { email, locale: profile.locale }
  const invitation = await invitationMessages(needs).prepare(known.tenantId, invited, context)
  if (invitation === null) return { tag: 'absent' }
  if (invitation.sealedMail.refusal === 'sandbox_address') return { tag: 'address_refused' }
  const sent = needs.database.system(
    async (tx): Promise<UsersProtocol['sendTenantUserInvitation']['reply']> => {
      const user = await findUser(tx, message)
      if (user === undefined) return UNKNOWN_USER
      if (user.status !== 'invited') return { tag: 'not_invited' }
      // The previous link becomes invalid.
      await voidTickets(tx, user.accountId, user.tenantId, 'invitation', needs.clock.now())
      await invitationMessages(needs).send(tx, invitation, user)
      const fields = { email: user.email, status: user.status, fixture: user.fixture }
      const by = eventContext(needs, message.caller, context)
      appendEvents(tx, [userEvent('tenant_user.invited', user, by, fields)])
      return { tag: 'found', user: recordOf(user) }
    },
    context,
  )
  return sent.catch(mailThrottled)
}

export const updateTenantUser: Handling<'updateTenantUser'> = async (needs, message, context) => {
  const { caller, roles, displayName, metadata, profile } = message
  return needs.database.system(async (tx) => {
    // Check the roles being replaced as locked now, not as read before.
    const user = await holdUser(tx, message)
    if (user === undefined) return UNKNOWN_USER
    if (roles !== undefined && !roles.includes('owner') && isAbove(user, caller)) return ABOVE
    const beyond = rolesBeyond(roles ?? [], user.roles, caller.principal.scopes)
    if (beyond.length > 0) return { tag: 'roles_beyond_caller', roles: beyond }
    const isDemoted = roles !== undefined && !roles.includes('owner')
    if (isDemoted && !(await keepsOwner(tx, user.tenantId, [user]))) return LAST_OWNER
    const by = eventContext(needs, caller, context)
    const change = { displayName, roles: roles && [...new Set(roles)], metadata, profile }
    if (!(await updateTenantUserRow(tx, user.tenantId, user.id, change, by.now)))
      return UNKNOWN_USER
    // Existing tokens carry the old roles' scopes and would be refreshed with them.
    if (roles !== undefined && holdsLess(roles, user.roles)) {
      appendEvents(tx, await endUser(tx, user, 'roles_narrowed', by))
    }
    const changed = { display_name: displayName, roles, metadata, ...profile }
    recordAudit(tx, needs, caller, context, {
      type: 'admin.user.updated',
      resource: { type: 'tenant_user', id: user.id },
      data: {
        changed: Object.entries(changed)
          .filter(([, value]) => value !== undefined)
          .map(([name]) => name),
        ...(roles === undefined ? {} : { roles, roles_before: user.roles }),
      },
    })
    return present(tx, user)
  }, context)
}

// Not cancelled with the request: a suspension must not depend on the caller's connection.
export const suspendTenantUser: Handling<'suspendTenantUser'> = (needs, message, context) =>
  needs.database.system(async (tx) => {
    const user = await holdUser(tx, message)
    if (user === undefined) return UNKNOWN_USER
    if (isAbove(user, message.caller)) return ABOVE
    // The operator of the deployment may suspend every user.
    const isOperator = message.caller.principal.scopes.includes('deployment:manage')
    if (!isOperator && !(await keepsOwner(tx, user.tenantId, [user]))) return LAST_OWNER
    const by = eventContext(needs, message.caller, context)
    const events = await endUser(tx, user, 'user_suspended', by)
    if (await suspendTenantUserRow(tx, user.tenantId, user.id, by.now)) {
      const fields = { status: 'suspended', fixture: user.fixture }
      appendEvents(tx, [...events, userEvent('tenant_user.suspended', user, by, fields)])
    }
    return present(tx, user)
  })

export const reactivateTenantUser: Handling<'reactivateTenantUser'> = async (
  needs,
  message,
  context,
) => {
  try {
    return await needs.database.system(async (tx) => {
      const user = await holdUser(tx, message)
      if (user === undefined) return UNKNOWN_USER
      if (isAbove(user, message.caller)) return ABOVE
      if (!user.accountActive) return { tag: 'account_suspended' as const }
      const by = eventContext(needs, message.caller, context)
      const changed = await reactivateTenantUserRow(tx, user.tenantId, user.id, by.now)
      const presented = await present(tx, user)
      if (changed) {
        const fields = { status: presented.user.status, fixture: user.fixture }
        appendEvents(tx, [userEvent('tenant_user.activated', user, by, fields)])
      }
      return presented
    }, context)
  } catch (error) {
    if (isFixtureLimit(error)) return { tag: 'fixture_user_limit' }
    throw error
  }
}

export const removeTenantUser: Handling<'removeTenantUser'> = (needs, message, context) =>
  needs.database.system(async (tx) => {
    const user = await holdUser(tx, message)
    if (user === undefined) return UNKNOWN_USER
    if (isAbove(user, message.caller)) return ABOVE
    if (!(await keepsOwner(tx, user.tenantId, [user]))) return LAST_OWNER
    const by = eventContext(needs, message.caller, context)
    const { now } = by
    const events = await endUser(tx, user, 'user_removed', by)
    if (!(await removeTenantUserRow(tx, user.tenantId, user.id, now))) return UNKNOWN_USER
    // A later invitation sends a new message.
    await voidTickets(tx, user.accountId, user.tenantId, 'invitation', now)
    const fields = { status: 'removed', fixture: user.fixture }
    appendEvents(tx, [...events, userEvent('tenant_user.removed', user, by, fields)])
    return { tag: 'removed' }
  })

function recordOf({
  accountId: _account,
  accountActive: _active,
  ...user
}: TenantUserRow): UserRecord {
  return user
}
