/**
 * The first proof of a mailbox. Strangers can make an account for an address, so what an account has before its
 * address is proved may belong to a stranger. Every place that turns an address from unproved to proved calls
 * `proveMailbox`; a test forbids the statement elsewhere.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  emptyUnproved,
  holdMailbox,
  markMailboxProved,
} from '../../../storage/identity/accounts.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { voidTickets } from '../../../storage/operations/mail-tickets.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { IdentityKey } from '../../../storage/identity/upstream-identities.js'
import { isUserOfDomainOwner } from '../../../storage/identity/verified-domains.js'
import { endGivenOut } from '../password-recovery/ending.js'
import { personDid } from '../password-recovery/records.js'

export type MailboxProof = {
  readonly accountId: string
  /** What proved it; the audit record names it. */
  readonly how: 'verification' | 'reset' | 'code' | 'link' | 'invitation' | 'provider'
  /**
   * The proof was asked for and given in an open session of this very account: everything stays. Otherwise
   * the password, passkeys, factors, recovery codes, identities and sessions of the account are dropped, with
   * the tokens and delegations that the sessions gave out.
   */
  readonly inOwnSession: boolean
  /** The identity that gives the proof; it stays. */
  readonly provedBy?: IdentityKey | undefined
  /** Where the proof was given, and by which subject of that tenant. Null: not a user there yet. */
  readonly tenantId: string
  readonly sub: string | null
  /** Network address of the browser. */
  readonly address: string
}

/** `known`: the address was proved before, so nothing changed. `dropped`: see `inOwnSession`. */
export type MailboxProved = 'known' | 'kept' | 'dropped'

/** Marks the address of an account as proved. The transaction crosses tenants. */
export async function proveMailbox(
  tx: Transaction,
  tools: { readonly random: Random },
  proof: MailboxProof,
  context: MessageContext,
  now: Date,
): Promise<MailboxProved> {
  const { accountId, how, inOwnSession: keep, provedBy, tenantId, sub, address } = proof
  const held = await holdMailbox(tx, accountId)
  if (held === undefined) throw new Error('the account of a proof is gone')
  if (held.isProved) return 'known'
  const isDropped = !keep && held.hasWayIn
  if (!keep) await drop(tx, tools, { accountId, address, but: provedBy }, context, now)
  await markMailboxProved(tx, accountId, now)
  // A reset has a record of its own.
  const type =
    how === 'verification'
      ? 'account.email.verified'
      : isDropped && how !== 'reset'
        ? 'account.password.reset'
        : null
  if (sub !== null && type !== null) {
    const { requestId } = context
    const done = { tenantId, type, sub, address, requestId, data: { proof: how } } as const
    appendAudit(tx, [personDid(tools.random, done, now)])
  }
  return isDropped ? 'dropped' : 'kept'
}

/**
 * The owner of a domain takes over an account of that domain whose address is not proved: what it had is
 * dropped, and the address stays unproved. False when the address is proved, or when a tenant that owns the
 * domain knows the account, whose user it then is. The transaction crosses tenants.
 */
export async function reclaimUnproved(
  tx: Transaction,
  tools: { readonly random: Random },
  { accountId, domain, address }: { accountId: string; domain: string; address: string },
  context: MessageContext,
  now: Date,
): Promise<boolean> {
  const held = await holdMailbox(tx, accountId)
  if (held === undefined || held.isProved) return false
  if (await isUserOfDomainOwner(tx, accountId, domain)) return false
  await drop(tx, tools, { accountId, address, but: undefined }, context, now)
  return true
}

async function drop(
  tx: Transaction,
  tools: { readonly random: Random },
  { accountId, address, but }: { accountId: string; address: string; but: IdentityKey | undefined },
  context: MessageContext,
  now: Date,
): Promise<void> {
  // Sessions first: a transaction that is adding a key in one of them is waited for, then its key goes too.
  const ended = { accountId, exceptId: null, reason: 'password_reset', address } as const
  await endGivenOut(tx, tools, ended, context, now)
  for (const purpose of ['sign_in', 'email_verification', 'password_reset'] as const)
    await voidTickets(tx, accountId, null, purpose, now)
  await emptyUnproved(tx, accountId, but, now)
}
