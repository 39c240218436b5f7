/**
 * Sends a message with a one-time link or code. Its ticket is stored in the transaction that queues the message, so
 * both exist or neither.
 */
import type { Random } from '../../../runtime/kernel/random.js'
import { insertTicket, type NewTicket } from '../../../storage/identity/ways/mail-tickets.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { MailQueue, SealedMail } from './mail-queue.js'

/** Stored as hashes. Absent members are not offered; `attempts` defaults to 1, as a link needs. */
type MessageTicket = Pick<
  NewTicket,
  'tenantId' | 'purpose' | 'accountId' | 'email' | 'linkSha256' | 'createdAt' | 'expiresAt'
> &
  Partial<Pick<NewTicket, 'codeSha256' | 'flowSha256' | 'browserSha256' | 'attempts'>>

export async function sendWithTicket(
  tx: Transaction,
  { random, mail }: { readonly random: Random; readonly mail: Pick<MailQueue, 'queue'> },
  ticket: MessageTicket,
  message: SealedMail,
): Promise<void> {
  await insertTicket(tx, {
    codeSha256: null,
    flowSha256: null,
    browserSha256: null,
    attempts: 1,
    ...ticket,
    id: random.uuid(),
  })
  await mail.queue(tx, message)
}
