/**
 * An administrator resets the password or the second factors of a user. An account is not the tenant's: both work only
 * where no other tenant is concerned, or where tenant and organization vouch for the address and every other place.
 * docs/guides/identity/organizations-tenants-users.md.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { clearAccountPassword, lockAccount } from '../../../storage/identity/accounts.js'
import { removeFactors } from '../../../storage/identity/second-factors.js'
import type { TenantUserRow } from '../../../storage/identity/tenant-users.js'
import { hasVerifiedDomain } from '../../../storage/identity/verified-domains.js'
import { findAccountReach } from '../../../storage/identity/ways/account-reach.js'
import { listWaysIn } from '../../../storage/identity/ways/ways-in.js'
import { voidTickets } from '../../../storage/identity/ways/mail-tickets.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { FRESH_FACTORS_SECS, hasFreshFactors } from '../../domain/assurance.js'
import type { Caller } from '../../domain/audit.js'
import { type EventContext, eventContext } from '../../domain/events.js'
import { sendWithTicket } from '../../platform/mail/with-ticket.js'
import { recordAudit } from '../../platform/record-audit.js'
import { domainOf } from '../../platform/mail/public-domains.js'
import { endUser, userEvent } from '../../platform/people/ending.js'
import { findUser, holdUser, isAbove } from './finding.js'
import { mailThrottled } from '../../platform/people/invitations.js'
import type { Handling, UsersNeeds } from './needs.js'
import { type Letters, sealLetters, type What } from './reset-letters.js'
import type { OneUser, ResetRefused, UnknownUser, UserReset } from './protocol.js'

const UNKNOWN_USER = { tag: 'unknown_user' } as const

type Outcome = UserReset | UnknownUser | ResetRefused

export const resetTenantUserPassword: Handling<'resetTenantUserPassword'> = (...asked) =>
  reset('password', ...asked)
export const resetTenantUserFactors: Handling<'resetTenantUserFactors'> = (...asked) =>
  reset('factors', ...asked)

async function reset(
  what: What,
  needs: UsersNeeds,
  message: OneUser,
  context: MessageContext,
): Promise<Outcome> {
  const { database, clock } = needs
  const { caller } = message
  const known = await database.system((tx) => findUser(tx, message), context)
  if (known === undefined) return UNKNOWN_USER
  if (!hasFreshFactors(caller.principal, clock.nowSecs()))
    return { tag: 'step_up', maxAgeSecs: FRESH_FACTORS_SECS }
  const letters = { what, ...(await sealLetters(needs, what, known, context)) }
  // Not cancelled with the request: a reset must not depend on the caller's connection.
  const done = database.system(async (tx): Promise<Outcome> => {
    // The account first, as a sign-in does: a concurrent one opens its session before this ends it, or fails.
    await lockAccount(tx, known.accountId)
    const user = await holdUser(tx, message)
    // SCIM or a guest's first address may give the user another account or address.
    if (user?.accountId !== known.accountId || user.email !== known.email) return UNKNOWN_USER
    const refusal = await judge(tx, caller, user)
    if (refusal?.tag === 'account_shared') {
      // The person and the auditors of the tenant see the attempt.
      await needs.mail.queue(tx, letters.refused)
      recordAudit(tx, needs, caller, context, {
        type: 'admin.user.reset_refused',
        resource: { type: 'tenant_user', id: user.id },
        outcome: 'denied',
        data: { reset: what, reason: 'account_shared' },
      })
    }
    return refusal ?? apply(tx, needs, user, letters, eventContext(needs, caller, context))
  })
  return done.catch((error: unknown) => {
    if (error instanceof AddressRefused) return { tag: 'address_refused' }
    return mailThrottled(error)
  })
}

/** Undefined: the caller may reset the user. */
async function judge(
  tx: Transaction,
  caller: Caller,
  user: TenantUserRow,
): Promise<ResetRefused | undefined> {
  if (isAbove(user, caller)) return { tag: 'owner_above_caller' }
  // Before the account is looked at: the tenant sees nothing of an invited person's account.
  if (user.status !== 'active' && user.status !== 'pre_provisioned')
    return { tag: 'user_not_active', status: user.status }
  const { tenantId, accountId, email } = user
  const reach = await findAccountReach(tx, tenantId, accountId, caller.principal.subject)
  const domain = domainOf(email)
  const isShared =
    reach.isForeign ||
    (reach.isElsewhere &&
      (domain === undefined || !(await hasVerifiedDomain(tx, tenantId, domain))))
  if (isShared) return { tag: 'account_shared' }
  return reach.ownsMore ? { tag: 'owner_above_caller' } : undefined
}

async function apply(
  tx: Transaction,
  needs: UsersNeeds,
  user: TenantUserRow,
  letters: Letters & { readonly what: What },
  by: EventContext,
): Promise<Outcome> {
  const { tenantId, accountId, email } = user
  const { what } = letters
  const { now } = by
  const removed =
    what === 'factors' ? await removeFactors(tx, accountId, { phones: false }) : undefined
  if (what === 'password') await clearAccountPassword(tx, accountId, now)
  if (what === 'password' || !(await hasKey(tx, user))) {
    // Without the message the person cannot sign in: the transaction is undone.
    if (!letters.linked.sendable) throw new AddressRefused()
    for (const purpose of ['password_reset', 'sign_in'] as const)
      await voidTickets(tx, accountId, tenantId, purpose, now)
    const { linkSha256, expiresAt } = letters
    const link = { tenantId, accountId, email, linkSha256, createdAt: now, expiresAt }
    await sendWithTicket(tx, needs, { ...link, purpose: 'password_reset' }, letters.linked)
  } else {
    await needs.mail.queue(tx, letters.notice)
  }
  const ended = await endUser(tx, user, `${what}_reset`, by)
  const fields =
    removed === undefined
      ? { email }
      : { email, passkeys: removed.passkeys, authenticators: removed.authenticators }
  const type = `admin.user.${what}_reset` as const
  appendEvents(tx, [...ended, userEvent(type, user, by, fields)])
  return { tag: 'reset' }
}

/** True if the person can sign in to the tenant without the mailbox. */
async function hasKey(tx: Transaction, { tenantId, accountId }: TenantUserRow): Promise<boolean> {
  const ways = await listWaysIn(tx, accountId)
  return ways.some(
    (way) =>
      way.kind !== 'mailbox' &&
      way.kind !== 'guest' &&
      (way.tenantId === null || way.tenantId === tenantId),
  )
}

/** The message with the link cannot be sent to the address. */
class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
}
