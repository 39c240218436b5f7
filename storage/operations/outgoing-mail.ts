/**
 * The mail queue: messages are queued in the transaction of their cause, and leased by the worker
 * that sends them.
 */
import type { Transaction } from '../platform/sql.js'
import {
  type FullGroups,
  tenantHasRoom,
  tenantInForce,
  type TenantKind,
  tenantKind,
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

/** The number of messages that a worker takes, in total and per tenant. */
export type MailRoomLeft = {
  readonly limit: number
  /** Maximum messages of one tenant, including those that the worker is sending. */
  readonly perTenantMax: number
  /** Messages that the worker is sending, by tenant. */
  readonly held: ReadonlyMap<string, number>
  /** Their tenants get none. */
  readonly full: FullGroups
}

/**
 * Leases due messages, as many as the worker has room for. Tenants take turns: the first message of
 * each precedes the second of any, and within a turn the longest due is first. Crosses tenants.
 */
export async function claimMail(
  tx: Transaction,
  lease: string,
  { limit, perTenantMax, held, full }: MailRoomLeft,
  leaseSecs: number,
): Promise<ClaimedMail[]> {
  const { rows } = await tx.query<ClaimedMail>({
    name: 'outgoing_mail.claim',
    // Reads only the first few messages of each tenant, however many are queued.
    text: `with tenants_due as (
             select tenant_id from
               (select distinct tenant_id from outgoing_mail m where ${FREE}) m
             where ${tenantHasRoom('m.tenant_id', '$7', '$8')}),
           waiting as (
             select each.tenant_id, each.id, each.next_attempt_at,
               row_number() over (partition by each.tenant_id order by each.next_attempt_at)
                 + coalesce(h.held, 0) as place
             from tenants_due
             cross join lateral (
               select m.tenant_id, m.id, m.next_attempt_at from outgoing_mail m
               where m.tenant_id = tenants_due.tenant_id and ${FREE}
               order by m.next_attempt_at limit $2) each
             left join unnest($4::uuid[], $5::integer[]) as h (tenant_id, held)
               on h.tenant_id = each.tenant_id),
           chosen as (
             select tenant_id, id from waiting where place <= $6
             order by place, next_attempt_at limit $2),
           due as (
             select m.tenant_id, m.id from outgoing_mail m join chosen using (tenant_id, id)
             where ${DUE_AND_FREE} for update of m skip locked)
           update outgoing_mail m
           set lease = $1, leased_until = statement_timestamp() + make_interval(secs => $3),
             attempts = m.attempts + 1
           from due where m.tenant_id = due.tenant_id and m.id = due.id
           returning m.tenant_id as "tenantId", m.id, m.kind, m.letter_sealed as "letterSealed",
             m.attempts, m.expires_at as "expiresAt",
             m.expires_at <= statement_timestamp() as expired, ${tenantKind('m.tenant_id')}`,
    values: [
      lease,
      limit,
      leaseSecs,
      [...held.keys()],
      [...held.values()],
      perTenantMax,
      full.sandboxes,
      full.networks,
    ],
  })
  return rows
}

/** Checked twice: another worker may lease a message between the selection and the lock. */
const FREE = `m.status = 'queued' and m.next_attempt_at <= statement_timestamp()
  and (m.leased_until is null or m.leased_until <= statement_timestamp())`
const DUE_AND_FREE = `${FREE} and ${tenantInForce('m.tenant_id')}`

/** Extends the leases of messages in progress. */
export async function renewMail(tx: Transaction, lease: string, leaseSecs: number): Promise<void> {
  await tx.query({
    name: 'outgoing_mail.renew',
    text: `update outgoing_mail
           set leased_until = statement_timestamp() + make_interval(secs => $2)
           where lease = $1 and status = 'queued' and leased_until > statement_timestamp()`,
    values: [lease, leaseSecs],
  })
}

export type MailEnd = 'sent' | 'failed' | 'expired'

/** Ends a message that this lease still holds. False when another worker took it over. */
export async function finishMail(
  tx: Transaction,
  { tenantId, id }: Pick<ClaimedMail, 'tenantId' | 'id'>,
  lease: string,
  status: MailEnd,
  error: string | null,
): Promise<boolean> {
  const { rowCount } = await tx.query({
    name: 'outgoing_mail.finish',
    text: `update outgoing_mail set status = $4, error = $5, letter_sealed = null,
             next_attempt_at = null, lease = null, leased_until = null,
             finished_at = statement_timestamp()
           where tenant_id = $1 and id = $2 and lease = $3 and status = 'queued'`,
    values: [tenantId, id, lease, status, error],
  })
  return rowCount === 1
}

/** Releases a message for a later attempt. */
export async function postponeMail(
  tx: Transaction,
  { tenantId, id }: Pick<ClaimedMail, 'tenantId' | 'id'>,
  lease: string,
  waitSecs: number,
  error: string,
): Promise<void> {
  await tx.query({
    name: 'outgoing_mail.postpone',
    text: `update outgoing_mail set lease = null, leased_until = null, error = $5,
             next_attempt_at = statement_timestamp() + make_interval(secs => $4)
           where tenant_id = $1 and id = $2 and lease = $3 and status = 'queued'`,
    values: [tenantId, id, lease, waitSecs, error],
  })
}

/**
 * Milliseconds until a message may be claimed, at most `withinMs`.
 * @param without tenants whose share is full.
 * @param full groups whose share is full.
 */
export async function nextMailMs(
  tx: Transaction,
  withinMs: number,
  without: readonly string[],
  full: FullGroups,
): Promise<number> {
  const { rows } = await tx.query<{ ms: number }>({
    name: 'outgoing_mail.next',
    text: `select coalesce(min(extract(epoch from greatest(next_attempt_at, leased_until)
                    - clock_timestamp()) * 1000), $1)::float8 as ms
           from outgoing_mail m
           where status = 'queued'
             and next_attempt_at <= statement_timestamp() + make_interval(secs => $1::float8 / 1000)
             and m.tenant_id <> all($2::uuid[])
             and ${tenantHasRoom('m.tenant_id', '$3', '$4')}`,
    values: [withinMs, without, full.sandboxes, full.networks],
  })
  return Math.min(withinMs, Math.max(0, rows[0]!.ms))
}

/** Deletes up to `limit` messages that ended before `before`. */
export async function sweepMail(tx: Transaction, before: Date, limit: number): Promise<number> {
  const { rowCount } = await tx.query({
    name: 'outgoing_mail.sweep',
    text: `delete from outgoing_mail where (tenant_id, id) in (
             select tenant_id, id from outgoing_mail where finished_at < $1
             order by finished_at limit $2 for update skip locked)`,
    values: [before, limit],
  })
  return rowCount
}
