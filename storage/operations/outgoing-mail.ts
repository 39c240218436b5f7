/**
 * The mail queue: messages are queued in the transaction of their cause, and leased by the worker
 * that sends them.
 */
import { allRows, execute, isChanged, onlyValue, type Transaction } from '../platform/sql.js'
import { removing } from '../platform/portable/expiry.js'
import {
  claimInTurn,
  type ClaimRoom,
  claimValues,
  dueWithin,
  type FullGroups,
  type TenantKind,
} from '../platform/in-force.js'
import { notifyAfterCommit } from '../platform/transaction.js'

/** Wakes the mail workers. Has no payload. */
export const MAIL_CHANNEL = 'svc_outgoing_mail'

export type NewMail = {
  readonly tenantId: string
  readonly id: string
  readonly kind: string
  /** Encrypted under the tenant's data key, with the context of `mailContext`. */
  readonly letterSealed: Uint8Array
  /** False: stored and never sent. */
  readonly sendable: boolean
  readonly createdAt: Date
  readonly expiresAt: Date
}

/** Encryption context of a message: its row and column. */
export const mailContext = (id: string) => `outgoing_mail:${id}:letter`

/**
 * Queues a message unless the tenant has `queuedMax` queued already. Then it is dropped. A message
 * that must not be sent costs the same statement.
 * @param notSent our reason code when the message must not be sent.
 * @returns true if it was queued.
 */
export async function insertMail(
  tx: Transaction,
  mail: NewMail,
  queuedMax: number,
  notSent = 'not_sendable',
): Promise<boolean> {
  const { rows } = await tx.query<{ status: string }>({
    name: 'outgoing_mail.insert',
    text: `insert into outgoing_mail (tenant_id, id, kind, status, letter_sealed, next_attempt_at,
             error, created_at, expires_at, finished_at)
           select $1, $2, $3, case when go then 'queued' else 'dropped' end,
             case when go then $4::bytea end, case when go then statement_timestamp() end,
             case when go then null when $5 then 'queue_full' else $9 end,
             $6, $7, case when not go then $6::timestamptz end
           from (select $5::boolean and (select count(*) from (
               select from outgoing_mail where tenant_id = $1 and status = 'queued' limit $8) q)
               < $8 as go) room
           returning status`,
    values: [
      mail.tenantId,
      mail.id,
      mail.kind,
      Buffer.from(mail.letterSealed),
      mail.sendable,
      mail.createdAt,
      mail.expiresAt,
      queuedMax,
      notSent,
    ],
  })
  notifyAfterCommit(tx, MAIL_CHANNEL)
  return rows[0]?.status === 'queued'
}

export type ClaimedMail = TenantKind & {
  readonly tenantId: string
  readonly id: string
  readonly kind: string
  readonly letterSealed: Uint8Array
  readonly attempts: number
  readonly expiresAt: Date
  /** It had expired when it was claimed. */
  readonly expired: boolean
}

/** Checked twice: another worker may lease a message between the selection and the lock. */
const FREE = `q.status = 'queued' and q.next_attempt_at <= statement_timestamp()
  and (q.leased_until is null or q.leased_until <= statement_timestamp())`

/** Leases due messages, as many as the worker has room for. Crosses tenants. */
export const claimMail = (tx: Transaction, lease: string, room: ClaimRoom, leaseSecs: number) =>
  allRows<ClaimedMail>(tx, {
    name: 'outgoing_mail.claim',
    text: claimInTurn({
      table: 'outgoing_mail',
      id: 'id',
      due: 'next_attempt_at',
      free: FREE,
      // Reads only the first few messages of each tenant, however many are queued.
      candidates: `select each.* from (select distinct tenant_id from outgoing_mail q where ${FREE}) t
        cross join lateral (select q.tenant_id, q.id, q.next_attempt_at from outgoing_mail q
          where q.tenant_id = t.tenant_id and ${FREE} order by q.next_attempt_at limit $2) each`,
      set: ', attempts = q.attempts + 1',
      returning: `q.id, q.kind, q.letter_sealed as "letterSealed", q.attempts,
        q.expires_at as "expiresAt", q.expires_at <= statement_timestamp() as expired`,
    }),
    values: claimValues(lease, room, leaseSecs),
  })

/** Extends the leases of messages in progress. */
export const renewMail = (tx: Transaction, lease: string, leaseSecs: number) =>
  execute(tx, {
    name: 'outgoing_mail.renew',
    text: `update outgoing_mail
           set leased_until = statement_timestamp() + make_interval(secs => $2)
           where lease = $1 and status = 'queued' and leased_until > statement_timestamp()`,
    values: [lease, leaseSecs],
  })

type MailEnd = 'sent' | 'failed' | 'expired'

/** Ends a message that this lease still holds. False when another worker took it over. */
export const finishMail = (
  tx: Transaction,
  { tenantId, id }: Pick<ClaimedMail, 'tenantId' | 'id'>,
  lease: string,
  status: MailEnd,
  error: string | null,
) =>
  isChanged(tx, {
    name: 'outgoing_mail.finish',
    text: `update outgoing_mail set status = $4, error = $5, letter_sealed = null,
             next_attempt_at = null, lease = null, leased_until = null,
             finished_at = statement_timestamp()
           where tenant_id = $1 and id = $2 and lease = $3 and status = 'queued'`,
    values: [tenantId, id, lease, status, error],
  })

/** Releases a message for a later attempt. */
export const postponeMail = (
  tx: Transaction,
  { tenantId, id }: Pick<ClaimedMail, 'tenantId' | 'id'>,
  lease: string,
  waitSecs: number,
  error: string,
) =>
  execute(tx, {
    name: 'outgoing_mail.postpone',
    text: `update outgoing_mail set lease = null, leased_until = null, error = $5,
             next_attempt_at = statement_timestamp() + make_interval(secs => $4)
           where tenant_id = $1 and id = $2 and lease = $3 and status = 'queued'`,
    values: [tenantId, id, lease, waitSecs, error],
  })

/**
 * Milliseconds until a message may be claimed, at most `withinMs`.
 * @param without tenants whose share is full.
 * @param full groups whose share is full.
 */
export const nextMailMs = (
  tx: Transaction,
  withinMs: number,
  without: readonly string[],
  full: FullGroups,
) =>
  onlyValue<number>(tx, {
    name: 'outgoing_mail.next',
    text: dueWithin(
      { table: 'outgoing_mail', due: 'next_attempt_at' },
      'greatest(q.next_attempt_at, q.leased_until)',
      "q.status = 'queued'",
    ),
    values: [withinMs, without, full.sandboxes, full.networks],
  })

/** Deletes up to `limit` messages that ended before `before`. */
export const sweepMail = removing('outgoing_mail.sweep', 'outgoing_mail', 'finished_at')
