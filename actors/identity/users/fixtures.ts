/** Fixture users of a sandbox: minted, at most five of them active, and given new passwords. */
import { type EventContext, eventContext } from '../../domain/events.js'
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { invariant } from '../../../runtime/kernel/assert.js'
import { insertAccount, setAccountPassword } from '../../../storage/identity/accounts.js'
import { insertOrganizationMember } from '../../../storage/identity/organizations.js'
import {
  countFixtures,
  findOldestFixture,
  findTenantUser,
  insertTenantUser,
  holdTenantUser,
} from '../../../storage/identity/tenant-users.js'
import { holdTenant, type TenantRow } from '../../../storage/identity/tenants.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { isUuid } from '../../domain/ids.js'
import { recordAudit } from '../../platform/record-audit.js'
import { endUser, userEvent } from '../../platform/people/ending.js'
import type { Handling, UsersNeeds } from './needs.js'
import {
  type Busy,
  type FixtureMinted,
  type FixturePrepared,
  fixtureEmail,
  type RotateFixture,
} from './protocol.js'
import { isFixtureLimit } from '../../platform/people/provisioning.js'
import { rolesBeyond } from '../../domain/people/role-powers.js'
import { inTenant } from '../../platform/in-tenant.js'

/** The database enforces the limit. Here it only saves the work. */
const FIXTURES_MAX = 5
/** Raised by the trigger in 0007_control.sql. */
/** 144 random bits: tests read it from the response, no user types it. */
const PASSWORD_BYTES = 18
const MAILBOX_BYTES = 5
const SUBJECT_BYTES = 24
const FIXTURE_LIMIT = { tag: 'fixture_user_limit' } as const
const UNKNOWN_USER = { tag: 'unknown_user' } as const
const BUSY = { tag: 'busy' } as const

async function newPassword(
  { random, passwords }: UsersNeeds,
  context: MessageContext,
): Promise<{ password: string; passwordHash: string } | Busy> {
  const password = random.token(PASSWORD_BYTES)
  const hashed = await passwords.hash({ password }, context)
  if (hashed.tag === 'unacceptable') throw new Error('a generated password was refused')
  return hashed.tag === 'busy' ? BUSY : { password, passwordHash: hashed.phc }
}

export const prepareFixture: Handling<'prepareFixture'> = async (needs, _message, context) => {
  const password = await newPassword(needs, context)
  if ('tag' in password) return password
  const mailbox = `fixture-${Buffer.from(needs.random.bytes(MAILBOX_BYTES)).toString('hex')}`
  return { tag: 'prepared', mailbox, displayName: 'Fixture User', ...password }
}

export const mintFixtureUser: Handling<'mintFixtureUser'> = async (needs, message, context) => {
  const { caller, idempotency } = message
  const { tenantId } = caller.principal
  // A replay creates nothing, so only a request without an idempotency key is refused before the work.
  const full = await inTenant(
    needs.database,
    tenantId,
    context,
    async (tx) => idempotency === null && (await countFixtures(tx, tenantId)) >= FIXTURES_MAX,
  )
  if (full) return FIXTURE_LIMIT
  const fixture = await prepareFixture(needs, {}, context)
  if (fixture.tag === 'busy') return fixture
  try {
    // The account is global, the membership belongs to the tenant: both or neither.
    return await needs.database.system(
      (tx) =>
        idempotently(
          tx,
          idempotency,
          async () => {
            // Locked, so that no fixture user is created while the tenant is activated.
            const tenant = await holdTenant(tx, tenantId)
            if (tenant?.environment !== 'sandbox') return { tag: 'not_sandbox' as const }
            return insert(tx, tenant, fixture, eventContext(needs, caller, context))
          },
          (outcome) => (outcome.tag === 'minted' ? { ...outcome, password: null } : undefined),
        ),
      context,
    )
  } catch (error) {
    if (isFixtureLimit(error)) return FIXTURE_LIMIT
    throw error
  }
}

async function insert(
  tx: Transaction,
  tenant: TenantRow,
  { mailbox, displayName, password, passwordHash }: FixturePrepared,
  by: EventContext,
): Promise<FixtureMinted> {
  const { random, now: createdAt } = by
  const [accountId, id] = [random.uuid(), random.uuid()]
  const email = fixtureEmail(mailbox, tenant.slug)
  const account = {
    id: accountId,
    email,
    emailVerified: true,
    displayName,
    passwordHash,
    createdAt,
  }
  const inserted = await insertAccount(tx, account)
  invariant(inserted, 'a mailbox of 40 random bits in a tenant of five is free')
  const user = { tenantId: tenant.id, id, status: 'active', fixture: true } as const
  const sub = random.token(SUBJECT_BYTES)
  await insertTenantUser(tx, { ...user, accountId, sub, roles: [], createdAt })
  if (tenant.organizationId !== null) {
    await insertOrganizationMember(tx, {
      organizationId: tenant.organizationId,
      memberType: 'account',
      memberId: accountId,
      role: 'member',
      createdAt,
    })
  }
  const fields = { email, status: 'active', fixture: true }
  appendEvents(tx, [userEvent('admin.user.created', user, by, fields)])
  return { tag: 'minted', id, email, password, status: 'active', createdAt, replayed: false }
}

// Also the operation `recoverFixtureUserPassword`.
export const rotateFixtureUserPassword: Handling<'rotateFixtureUserPassword'> = async (
  needs,
  message,
  context,
) => {
  const { database, clock } = needs
  const { caller, userId } = message
  const { tenantId } = caller.principal
  if (userId !== null && !isUuid(userId)) return UNKNOWN_USER
  const known = await database.system((tx) => findFixture(tx, message), context)
  if (known === undefined) return UNKNOWN_USER
  const made = await newPassword(needs, context)
  if ('tag' in made) return made
  const now = clock.now()
  return database.system(async (tx) => {
    const found = await findFixture(tx, message)
    if (found !== undefined) await holdTenantUser(tx, tenantId, found.id)
    const user = found && (await findTenantUser(tx, tenantId, found.id))
    if (user === undefined || user.status === 'removed') return UNKNOWN_USER
    // A caller who knows the password can sign in as the user.
    const beyond = rolesBeyond(user.roles, [], caller.principal.scopes)
    if (beyond.length > 0) return { tag: 'roles_beyond_caller', roles: beyond }
    await setAccountPassword(tx, user.accountId, made.passwordHash, now)
    const by = eventContext(needs, caller, context)
    appendEvents(tx, await endUser(tx, user, 'password_rotated', by))
    recordAudit(tx, needs, caller, context, {
      type: 'admin.user.password_rotated',
      resource: { type: 'tenant_user', id: user.id },
      data: { fixture: true },
    })
    const { id, email } = user
    return { tag: 'rotated', id, email, password: made.password, rotatedAt: now }
  }, context)
}

/** The fixture user that is named, or the oldest active one. */
async function findFixture(tx: Transaction, { caller, userId }: RotateFixture) {
  const { tenantId } = caller.principal
  const id = userId ?? (await findOldestFixture(tx, tenantId))
  const user = id === undefined ? undefined : await findTenantUser(tx, tenantId, id)
  return user?.fixture === true && user.status !== 'removed' ? user : undefined
}
