/** Fixture users of a sandbox: minted, at most five of them active, and given new passwords. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { invariant } from '../../../runtime/kernel/assert.js'
import { insertAccount, setAccountPassword } from '../../../storage/identity/accounts.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { endDelegations } from '../../../storage/agents/delegations.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import { insertOrganizationMember } from '../../../storage/identity/organizations.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  countFixtures,
  endHumanSessions,
  findOldestFixture,
  findTenantUser,
  lockTenantUser,
  insertTenantUser,
} from '../../../storage/identity/tenant-users.js'
import { lockTenant, type TenantRow } from '../../../storage/identity/tenants.js'
import { actorOf, audited, doneBy } from '../../domain/audit.js'
import { eventData } from '../../domain/events.js'
import { byCaller, delegationsRevoked } from '../../domain/revocation.js'
import { isUuid } from '../../domain/ids.js'
import { forgetTokensOf } from './ending.js'
import type { UsersNeeds } from './needs.js'
import {
  type Busy,
  type FixtureLimit,
  type FixtureMinted,
  type FixturePrepared,
  type FixtureRotated,
  fixtureEmail,
  type KeyRefused,
  type MintFixture,
  type NotSandbox,
  type RolesBeyondCaller,
  type RotateFixture,
  type UnknownUser,
} from './protocol.js'
import { rolesBeyond } from './rules.js'

/** The database enforces the limit. Here it only saves the work. */
const FIXTURES_MAX = 5
/** Raised by the trigger in 0007_control.sql. */
const LIMIT_CONSTRAINT = 'fixture_user_limit'
/** 144 random bits: tests read it from the response, no user types it. */
const PASSWORD_BYTES = 18
const MAILBOX_BYTES = 5
const SUBJECT_BYTES = 24
const FIXTURE_LIMIT = { tag: 'fixture_user_limit' } as const
const UNKNOWN_USER = { tag: 'unknown_user' } as const
const BUSY = { tag: 'busy' } as const

export function isFixtureLimit(error: unknown): boolean {
  return (error as { constraint?: unknown }).constraint === LIMIT_CONSTRAINT
}

export function fixtures(needs: UsersNeeds) {
  const { database, clock, random, passwords } = needs
  async function newPassword(
    context: MessageContext,
  ): Promise<{ password: string; passwordHash: string } | Busy> {
    const password = random.token(PASSWORD_BYTES)
    const hashed = await passwords.hash({ password }, context)
    if (hashed.tag === 'unacceptable') throw new Error('a generated password was refused')
    return hashed.tag === 'busy' ? BUSY : { password, passwordHash: hashed.phc }
  }

  async function prepare(context: MessageContext): Promise<FixturePrepared | Busy> {
    const password = await newPassword(context)
    if ('tag' in password) return password
    const mailbox = `fixture-${Buffer.from(random.bytes(MAILBOX_BYTES)).toString('hex')}`
    return { tag: 'prepared', mailbox, displayName: 'Fixture User', ...password }
  }

  async function insert(
    tx: Transaction,
    { caller }: MintFixture,
    tenant: TenantRow,
    fixture: FixturePrepared,
    { requestId }: MessageContext,
  ): Promise<FixtureMinted> {
    const now = clock.now()
    const [accountId, id] = [random.uuid(), random.uuid()]
    const email = fixtureEmail(fixture.mailbox, tenant.slug)
    const inserted = await insertAccount(tx, {
      id: accountId,
      email,
      emailVerified: true,
      displayName: fixture.displayName,
      passwordHash: fixture.passwordHash,
      createdAt: now,
    })
    invariant(inserted, 'a mailbox of 40 random bits in a tenant of five is free')
    await insertTenantUser(tx, {
      tenantId: tenant.id,
      id,
      accountId,
      sub: random.token(SUBJECT_BYTES),
      status: 'active',
      roles: [],
      fixture: true,
      createdAt: now,
    })
    if (tenant.organizationId !== null) {
      await insertOrganizationMember(tx, {
        organizationId: tenant.organizationId,
        memberType: 'account',
        memberId: accountId,
        role: 'member',
        createdAt: now,
      })
    }
    appendEvents(tx, [
      {
        id: random.uuid(),
        tenantId: tenant.id,
        type: 'admin.user.created',
        occurredAt: now,
        audit: doneBy(caller),
        data: eventData(
          { actor: actorOf(caller), resource: { type: 'tenant_user', id }, requestId },
          { email, status: 'active', fixture: true },
        ),
      },
    ])
    const { password } = fixture
    return { tag: 'minted', id, email, password, status: 'active', createdAt: now, replayed: false }
  }

  return {
    prepare,

    async mint(
      message: MintFixture,
      context: MessageContext,
    ): Promise<FixtureMinted | NotSandbox | FixtureLimit | Busy | KeyRefused> {
      const { tenantId } = message.caller.principal
      const { signal } = context
      // A replay creates nothing, so only a request without an idempotency key is refused before the work.
      const full = await database.tenant(
        tenantId,
        async (tx) =>
          message.idempotency === null && (await countFixtures(tx, tenantId)) >= FIXTURES_MAX,
        { signal },
      )
      if (full) return FIXTURE_LIMIT
      const fixture = await prepare(context)
      if (fixture.tag === 'busy') return fixture
      try {
        // The account is global, the membership belongs to the tenant: both or neither.
        return await database.system(
          (tx) =>
            idempotently(
              tx,
              message.idempotency,
              async () => {
                // Locked, so that no fixture user is created while the tenant is activated.
                const tenant = await lockTenant(tx, tenantId)
                if (tenant?.environment !== 'sandbox') return { tag: 'not_sandbox' as const }
                return insert(tx, message, tenant, fixture, context)
              },
              (outcome) => (outcome.tag === 'minted' ? { ...outcome, password: null } : undefined),
            ),
          { signal },
        )
      } catch (error) {
        if (isFixtureLimit(error)) return FIXTURE_LIMIT
        throw error
      }
    },

    async rotate(
      { caller, userId }: RotateFixture,
      context: MessageContext,
    ): Promise<FixtureRotated | UnknownUser | RolesBeyondCaller | Busy> {
      const { tenantId } = caller.principal
      if (userId !== null && !isUuid(userId)) return UNKNOWN_USER
      const find = async (tx: Transaction) => {
        const id = userId ?? (await findOldestFixture(tx, tenantId))
        const user = id === undefined ? undefined : await findTenantUser(tx, tenantId, id)
        return user?.fixture === true && user.status !== 'removed' ? user : undefined
      }
      const known = await database.system(find, { signal: context.signal })
      if (known === undefined) return UNKNOWN_USER
      const password = await newPassword(context)
      if ('tag' in password) return password
      const now = clock.now()
      return database.system(
        async (tx) => {
          const found = await find(tx)
          if (found !== undefined) await lockTenantUser(tx, tenantId, found.id)
          const user = found && (await findTenantUser(tx, tenantId, found.id))
          if (user === undefined || user.status === 'removed') return UNKNOWN_USER
          // A caller who knows the password can sign in as the user.
          const beyond = rolesBeyond(user.roles, [], caller.principal.scopes)
          if (beyond.length > 0) return { tag: 'roles_beyond_caller' as const, roles: beyond }
          await setAccountPassword(tx, user.accountId, password.passwordHash, now)
          await endHumanSessions(tx, user, 'password_rotated', now)
          forgetTokensOf(tx, needs, user.sub)
          const delegations = await endDelegations(
            tx,
            { tenantId, subject: user.sub },
            'password_rotated',
            now,
          )
          const by = byCaller(caller, context.requestId)
          appendEvents(tx, delegationsRevoked(random, delegations, by))
          appendAudit(tx, [
            audited(caller, {
              id: random.uuid(),
              tenantId,
              type: 'admin.user.password_rotated',
              occurredAt: now,
              resource: { type: 'tenant_user', id: user.id },
              requestId: context.requestId,
              data: { fixture: true },
            }),
          ])
          const { id, email } = user
          return { tag: 'rotated' as const, id, email, password: password.password, rotatedAt: now }
        },
        { signal: context.signal },
      )
    },
  }
}
