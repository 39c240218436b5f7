/**
 * What a password reset or change revokes: all sessions, tokens with their refresh families, and delegations of the
 * account, in every tenant. Passkeys, the authenticator app and the recovery codes stay: control of a mailbox must not
 * remove them (NIST SP 800-63B, account recovery).
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { setAccountPassword } from '../../../storage/identity/accounts.js'
import { voidTickets } from '../../../storage/identity/ways/mail-tickets.js'
import type { MailQueue, SealedMail } from '../mail/mail-queue.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { endAccountSessions } from '../../../storage/identity/browser-sessions.js'
import { endDelegations } from '../../../storage/agents/delegations.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { byBrowser, delegationsRevoked } from '../../domain/revocation.js'

type GivenOut = {
  readonly accountId: string
  /** The browser session that stays; null: none. */
  readonly exceptId: string | null
  readonly reason: 'password_reset' | 'password_changed'
  /** Network address of the browser. */
  readonly address: string
}

export async function revokeForPassword(
  tx: Transaction,
  { random }: { readonly random: Random },
  { accountId, exceptId, reason, address }: GivenOut,
  now: Date,
  { requestId }: MessageContext,
): Promise<void> {
  await endAccountSessions(tx, accountId, exceptId, reason, now)
  const delegations = await endDelegations(tx, { tenantId: null, accountId }, reason, now)
  // Each event names the user by the subject in its tenant.
  const by = ({ subject }: { subject: string }) => byBrowser(subject, address, requestId)
  appendEvents(tx, delegationsRevoked(random, delegations, by))
}

/** Sets the new password, revokes what the old one gave, and queues the notice. The transaction crosses tenants. */
export async function replacePassword(
  tx: Transaction,
  tools: { readonly random: Random; readonly mail: Pick<MailQueue, 'queue'> },
  { phc, notice, ...givenOut }: GivenOut & { readonly phc: string; readonly notice: SealedMail },
  now: Date,
  context: MessageContext,
): Promise<void> {
  const { accountId } = givenOut
  await setAccountPassword(tx, accountId, phc, now)
  await revokeForPassword(tx, tools, givenOut, now, context)
  await voidTickets(tx, accountId, null, 'password_reset', now)
  await voidTickets(tx, accountId, null, 'sign_in', now)
  await tools.mail.queue(tx, notice)
}
