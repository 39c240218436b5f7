/** Guests: accounts without a mailbox, until the person proves one. Every transaction here crosses tenants. */
import type { Email } from '../../../actors/domain/email.js'
import { endHumanSessions } from '../tenant-users.js'
import { ending } from '../../platform/ends/ending.js'
import { execute, type Transaction } from '../../platform/sql.js'

/** Marks a new account as a guest. */
export const markGuest = (tx: Transaction, accountId: string, now: Date) =>
  execute(tx, {
    name: 'guest.mark',
    text: 'update accounts set guest_since = $2 where id = $1',
    values: [accountId, now],
  })

/**
 * Gives a guest an address, which the caller then marks as verified. `taken`: another account has the address.
 * `not_guest`: the account has an address already.
 * @throws when a concurrent transaction takes the address (`isAddressTaken`).
 */
export async function claimAddress(
  tx: Transaction,
  accountId: string,
  email: Email,
  now: Date,
): Promise<'claimed' | 'taken' | 'not_guest'> {
  const { rows: others } = await tx.query({
    name: 'guest.address_taken',
    text: 'select from accounts where email_key = lower($1)',
    values: [email],
  })
  if (others.length > 0) return 'taken'
  const { rowCount } = await tx.query({
    name: 'guest.claim_address',
    text: `update accounts set email = $2, email_key = lower($2), guest_since = null, updated_at = $3
           where id = $1 and guest_since is not null`,
    values: [accountId, email, now],
  })
  return rowCount === 1 ? 'claimed' : 'not_guest'
}

/** True for the error of two transactions that give one address to two accounts. */
export function isAddressTaken(error: unknown): boolean {
  const { code, constraint } = error as { readonly code?: unknown; readonly constraint?: unknown }
  return code === '23505' && constraint === 'accounts_email_key_key'
}

type EndedGuest = {
  readonly accountId: string
  readonly tenantId: string
  readonly tenantUserId: string
  readonly sub: string
}

/**
 * Deletes up to `limit` guests who were last seen before `before`, with their sessions and tokens.
 * @returns the tenant users that ended.
 */
export async function removeOldGuests(
  tx: Transaction,
  before: Date,
  limit: number,
  now: Date,
): Promise<readonly EndedGuest[]> {
  const { rows } = await tx.query<EndedGuest>({
    name: 'guest.old',
    text: `with old as (
             select a.id from accounts a where a.guest_since < $1
               and not exists (select from browser_sessions s
                 where s.account_id = a.id and s.last_seen_at >= $1)
             order by a.guest_since limit $2 for update skip locked)
           select u.account_id as "accountId", u.tenant_id as "tenantId", u.id as "tenantUserId", u.sub
           from old join tenant_users u on u.account_id = old.id`,
    values: [before, limit],
  })
  for (const guest of rows) await endHumanSessions(tx, guest, 'guest_expired', now)
  if (rows.length > 0) {
    const keys = rows.map(({ tenantId, sub }) => ({ tenantId, id: sub }))
    await ending(tx, 'user.deleted', keys).query({
      name: 'guest.remove',
      text: 'delete from accounts where id = any ($1) and guest_since is not null',
      values: [rows.map(({ accountId }) => accountId)],
    })
  }
  return rows
}
