/**
 * Code tickets: one-time codes that the service sent to a phone number or an email address. One conditional statement
 * counts an attempt and uses the code. The tenant is unknown until the ticket is found, so these transactions cross
 * tenants.
 */
import { execute, firstValue, type Transaction } from '../../platform/sql.js'
import { removing } from '../../platform/portable/expiry.js'

export type CodePurpose = 'phone_sign_in' | 'phone_proof' | 'address_proof' | 'risk'

type NewCodeTicket = {
  readonly tenantId: string
  readonly id: string
  readonly purpose: CodePurpose
  /** Null: the target has no account. */
  readonly accountId: string | null
  /** An E.164 number or a lower-case address. */
  readonly target: string
  readonly codeSha256: Uint8Array
  /** Hash of the flow token or session token that the code belongs to. */
  readonly placeSha256: Uint8Array
  readonly attempts: number
  readonly createdAt: Date
  readonly expiresAt: Date
}

/** Inserts a ticket. The earlier codes of the same place and purpose become void. */
export const insertCodeTicket = (tx: Transaction, ticket: NewCodeTicket) =>
  execute(tx, {
    name: 'code_ticket.insert',
    text: `with superseded as (
             delete from code_tickets where place_sha256 = $7 and purpose = $3)
           insert into code_tickets (tenant_id, id, purpose, account_id, target, code_sha256,
             place_sha256, attempts_left, created_at, expires_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    values: [
      ticket.tenantId,
      ticket.id,
      ticket.purpose,
      ticket.accountId,
      ticket.target,
      Buffer.from(ticket.codeSha256),
      Buffer.from(ticket.placeSha256),
      ticket.attempts,
      ticket.createdAt,
      ticket.expiresAt,
    ],
  })

/** Where the latest code of a place went, used or not; undefined if no code was sent. */
export const findCodeTarget = (tx: Transaction, purpose: CodePurpose, placeSha256: Uint8Array) =>
  firstValue<string>(tx, {
    name: 'code_ticket.target',
    text: `select target from code_tickets where place_sha256 = $1 and purpose = $2
           order by created_at desc limit 1`,
    values: [Buffer.from(placeSha256), purpose],
  })

type CodeSpent = { readonly accountId: string; readonly target: string }

/**
 * One attempt at a code: counts it, and uses the code if it is right, in one statement. Null: a wrong code, or no
 * usable one.
 */
export async function spendCode(
  tx: Transaction,
  purpose: CodePurpose,
  placeSha256: Uint8Array,
  codeSha256: Uint8Array,
  now: Date,
): Promise<CodeSpent | null> {
  const { rows } = await tx.query<CodeSpent & { matched: boolean }>({
    name: 'code_ticket.spend',
    text: `update code_tickets set attempts_left = attempts_left - 1,
             used_at = case when code_sha256 = $3 and account_id is not null
               then $4::timestamptz end
           where place_sha256 = $1 and purpose = $2 and used_at is null
             and attempts_left > 0 and expires_at > $4
           returning used_at is not null as matched, account_id as "accountId", target`,
    values: [Buffer.from(placeSha256), purpose, Buffer.from(codeSha256), now],
  })
  const matched = rows.find((row) => row.matched)
  return matched === undefined ? null : { accountId: matched.accountId, target: matched.target }
}

/** Deletes up to `limit` tickets that expired before `before`. */
export const removeExpiredCodeTickets = removing('code_ticket.remove_expired', 'code_tickets')
