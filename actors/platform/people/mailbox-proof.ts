/**
 * The first proof of a mailbox. Anybody can create an account for an address, so everything an account has before its
 * address is verified may belong to an attacker (pre-hijacking). Every path that verifies an address calls
 * `proveMailbox`. A test forbids the SQL statement elsewhere.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  emptyUnprovedAccount,
  lockMailbox,
  markMailboxProved,
} from '../../../storage/identity/accounts.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { voidTickets } from '../../../storage/identity/ways/mail-tickets.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { IdentityKey } from '../../../storage/identity/upstream-identities.js'
import { isUserOfDomainOwner } from '../../../storage/identity/verified-domains.js'
import { revokeForPassword } from './password-revocation.js'
import { personAuditRecord } from './person-events.js'

type MailboxProof = {
  readonly accountId: string
  /** What verified the address, for the audit record. */
  readonly how: 'verification' | 'reset' | 'code' | 'link' | 'invitation' | 'sign_up' | 'provider'
  /**
   * True if the proof was requested and given in an open session of this account: the account keeps everything.
   * Otherwise its password, passkeys, factors, recovery codes, identities and sessions are dropped, with the tokens and
   * delegations issued in those sessions.
   */
  readonly inOwnSession: boolean
  /** The federated identity that proves the address. It is kept. */
  readonly provedBy?: IdentityKey | undefined
  /** The tenant where the proof was given, and the user's subject there. Null: not yet a user of the tenant. */
  readonly tenantId: string
  readonly sub: string | null
  /** Network address of the browser. */
  readonly address: string
}

/** `known`: the address was verified before, so nothing changed. `dropped`: see `inOwnSession`. */
export type MailboxProved = 'known' | 'kept' | 'dropped'

/** Marks the address of an account as verified. The transaction crosses tenants. */
export async function proveMailbox(
  tx: Transaction,
  tools: { readonly random: Random },
  proof: MailboxProof,
  now: Date,
  context: MessageContext,
): Promise<MailboxProved> {
  const { accountId, how, inOwnSession: keep, provedBy, tenantId, sub, address } = proof
  const account = await lockMailbox(tx, accountId)
  if (account === undefined) throw new Error('the account to verify was not found')
  if (account.isProved) return 'known'
  const isDropped = !keep && account.hasWayIn
  if (!keep) await drop(tx, tools, { accountId, address, but: provedBy }, now, context)
  await markMailboxProved(tx, accountId, now)
  // A password reset writes its own audit record.
  const type =
    how === 'verification'
      ? 'account.email.verified'
      : isDropped && how !== 'reset'
        ? 'account.password.reset'
        : null
  if (sub !== null && type !== null) {
    const { requestId } = context
    const done = { tenantId, type, sub, address, requestId, data: { proof: how } } as const
    appendAudit(tx, [personAuditRecord(tools.random, done, now)])
  }
  return isDropped ? 'dropped' : 'kept'
}

/**
 * Lets the owner of a domain take over an account of that domain whose address is unverified. The account's sign-in
 * methods are dropped, and its address stays unverified. The transaction crosses tenants.
 * @returns `proved`: nothing, the address is verified. `owned`: nothing, a tenant with this domain has the account as a
 * user.
 */
export async function reclaimUnproved(
  tx: Transaction,
  tools: { readonly random: Random },
  { accountId, domain, address }: { accountId: string; domain: string; address: string },
  now: Date,
  context: MessageContext,
): Promise<'reclaimed' | 'proved' | 'owned'> {
  const account = await lockMailbox(tx, accountId)
  if (account === undefined) throw new Error('the account to reclaim was not found')
  if (account.isProved) return 'proved'
  if (await isUserOfDomainOwner(tx, accountId, domain)) return 'owned'
  await drop(tx, tools, { accountId, address, but: undefined }, now, context)
  return 'reclaimed'
}

/**
 * Drops the sign-in methods of an account whose address is unverified, before an operator gives it to a person. The
 * address stays unverified. The transaction crosses tenants.
 */
export async function dropUnproved(
  tx: Transaction,
  tools: { readonly random: Random },
  { accountId, address }: { readonly accountId: string; readonly address: string },
  now: Date,
  context: MessageContext,
): Promise<void> {
  const account = await lockMailbox(tx, accountId)
  if (account === undefined || account.isProved) return
  await drop(tx, tools, { accountId, address, but: undefined }, now, context)
}

async function drop(
  tx: Transaction,
  tools: { readonly random: Random },
  { accountId, address, but }: { accountId: string; address: string; but: IdentityKey | undefined },
  now: Date,
  context: MessageContext,
): Promise<void> {
  // End sessions first: this waits for transactions that add a key in one of them, and then that key is dropped too.
  const ended = { accountId, exceptId: null, reason: 'password_reset', address } as const
  await revokeForPassword(tx, tools, ended, now, context)
  for (const purpose of ['sign_in', 'email_verification', 'password_reset'] as const)
    await voidTickets(tx, accountId, null, purpose, now)
  await emptyUnprovedAccount(tx, accountId, but, now)
}
