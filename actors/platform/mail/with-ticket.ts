/**
 * A letter with something in it that can be used once, a link or a code: what it offers is written
 * down in the transaction that queues it, so that neither is there without the other.
 */
import type { Random } from '../../../runtime/kernel/random.js'
import { insertTicket, type NewTicket } from '../../../storage/operations/mail-tickets.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { MailQueue, SealedMail } from './mail-queue.js'

/** By hash. What is left out is not on offer; `attempts` is 1, as a link needs. */
export type Ticketed = Pick<
  NewTicket,
  'tenantId' | 'purpose' | 'accountId' | 'email' | 'linkSha256' | 'createdAt' | 'expiresAt'
> &
  Partial<Pick<NewTicket, 'codeSha256' | 'flowSha256' | 'browserSha256' | 'attempts'>>

export async function sendTicketed(
  tx: Transaction,
  { random, mail }: { readonly random: Random; readonly mail: Pick<MailQueue, 'queue'> },
  ticket: Ticketed,
  letter: SealedMail,
): Promise<void> {
  await insertTicket(tx, {
    codeSha256: null,
    flowSha256: null,
    browserSha256: null,
    attempts: 1,
    ...ticket,
    id: random.uuid(),
  })
  await mail.queue(tx, letter)
}
