/**
 * What ends with a password: everything that was given out while it held, in every tenant of the
 * account, whoever holds it now. Browsers, tokens with their refresh families, and what agents were
 * lent. Passkeys, the authenticator app and the recovery codes stay: they are no part of the password,
 * and a letter to a mailbox must not take them away (NIST SP 800-63B, account recovery).
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { endAccountSessions } from '../../../storage/identity/browser-sessions.js'
import { endDelegations } from '../../../storage/agents/delegations.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { byBrowser, delegationsRevoked } from '../../domain/revocation.js'

export type GivenOut = {
  readonly accountId: string
  /** The browser session that stays; null: none. */
  readonly exceptId: string | null
  readonly reason: 'password_reset' | 'password_changed'
  /** Of the browser that asked for it. */
  readonly address: string
}

export async function endGivenOut(
  tx: Transaction,
  { random }: { readonly random: Random },
  { accountId, exceptId, reason, address }: GivenOut,
  { requestId }: MessageContext,
  now: Date,
): Promise<void> {
  await endAccountSessions(tx, accountId, exceptId, reason, now)
  const lent = await endDelegations(tx, { tenantId: null, accountId }, reason, now)
  // Each in the words of its own tenant: a person has another subject in every one.
  const by = ({ subject }: { subject: string }) => byBrowser(subject, address, requestId)
  appendEvents(tx, delegationsRevoked(random, lent, by))
}
