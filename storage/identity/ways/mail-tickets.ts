/**
 * Mail tickets: the single-use link or code of a message. One conditional statement uses a ticket,
 * so that one of several concurrent attempts wins. The tenant is unknown until the ticket is found,
 * so these transactions cross tenants.
 */
import type { Email } from '../../../actors/domain/email.js'
import { hasKeyOrFactorIn } from './ways-in.js'
import { execute, firstRow, type Transaction } from '../../platform/sql.js'
import { removing } from '../../platform/portable/expiry.js'

export type TicketPurpose =
  | 'sign_in'
  | 'password_reset'
  | 'invitation'
  | 'email_verification'
  | 'sign_up'

export type NewTicket = {
  readonly tenantId: string
  readonly id: string
  readonly purpose: TicketPurpose
  /** Null: the address has no account. The row costs the same and grants nothing. */
  readonly accountId: string | null
  readonly email: Email
  readonly linkSha256: Uint8Array | null
  readonly codeSha256: Uint8Array | null
  readonly flowSha256: Uint8Array | null
  readonly browserSha256: Uint8Array | null
  readonly attempts: number
  /** Issued by `svc admin recover`: its use also removes the second factors. Default: false. */
  readonly isRecovery?: boolean | undefined
  readonly createdAt: Date
  readonly expiresAt: Date
}

/** Inserts a ticket. An unused ticket of the same sign-in becomes void. */
export async function insertTicket(tx: Transaction, ticket: NewTicket): Promise<void> {
  const bytes = (value: Uint8Array | null) => (value === null ? null : Buffer.from(value))
  await tx.query({
    name: 'mail_ticket.insert',
    text: `with superseded as (
             delete from mail_tickets
             where tenant_id = $1 and flow_sha256 = $8 and used_at is null)
           insert into mail_tickets (tenant_id, id, purpose, account_id, email_key, link_sha256,
             code_sha256, flow_sha256, browser_sha256, attempts_left, created_at, expires_at,
             recovery)
           values ($1, $2, $3, $4, lower($5), $6, $7, $8, $9, $10, $11, $12, $13)`,
    values: [
      ticket.tenantId,
      ticket.id,
      ticket.purpose,
      ticket.accountId,
      ticket.email,
      bytes(ticket.linkSha256),
      bytes(ticket.codeSha256),
      bytes(ticket.flowSha256),
      bytes(ticket.browserSha256),
      ticket.attempts,
      ticket.createdAt,
      ticket.expiresAt,
      ticket.isRecovery ?? false,
    ],
  })
}

/** A usable link, its tenant, and the sign-in in which it was requested. */
type LinkFound = {
  readonly tenantId: string
  readonly tenantName: string
  readonly tenantSettings: Readonly<Record<string, unknown>>
  /** Lower case in a sign-up. */
  readonly email: Email
  readonly flowSha256: Uint8Array | null
  readonly browserSha256: Uint8Array | null
}

/** A usable ticket, with the data of its page. */
export type TicketFound = LinkFound & {
  readonly accountId: string
  readonly displayName: string
  readonly emailVerified: boolean
  /** The account has a way into the tenant, or a second factor. */
  readonly hasKey: boolean
  /** Issued by `svc admin recover`, and not sent to the mailbox. */
  readonly isRecovery: boolean
  readonly expiresAt: Date
}

const ALIVE = `t.used_at is null and t.attempts_left > 0 and t.expires_at > $3
             and a.id = t.account_id and a.status = 'active' and lower(a.email) = t.email_key
             and o.id = t.tenant_id and o.status = 'active'
             and (t.purpose <> 'invitation' or (select u.status = 'invited' from tenant_users u
               where u.tenant_id = t.tenant_id and u.account_id = t.account_id))`
const FOUND = `t.tenant_id as "tenantId", o.name as "tenantName", o.settings as "tenantSettings",
             a.id as "accountId", a.email, a.display_name as "displayName",
             a.email_verified as "emailVerified", ${hasKeyOrFactorIn('t.tenant_id')} as "hasKey",
             t.flow_sha256 as "flowSha256",
             t.browser_sha256 as "browserSha256", t.recovery as "isRecovery",
             t.expires_at as "expiresAt"`

/** Reads a link's ticket without using it, because mail scanners open every link. */
export const findTicket = (
  tx: Transaction,
  purpose: TicketPurpose,
  linkSha256: Uint8Array,
  now: Date,
) =>
  firstRow<TicketFound>(tx, {
    name: 'mail_ticket.find',
    text: `select ${FOUND} from mail_tickets t, accounts a, tenants o
           where t.link_sha256 = $1 and t.purpose = $2 and ${ALIVE}`,
    values: [Buffer.from(linkSha256), purpose, now],
  })

/** A usable link of a sign-up. Its address may have no account. */
export type SignUpTicket = LinkFound & { readonly controlPlane: boolean }

const SIGN_UP = `t.tenant_id as "tenantId", o.name as "tenantName", o.settings as "tenantSettings",
             o.control_plane as "controlPlane", t.email_key as email,
             t.flow_sha256 as "flowSha256", t.browser_sha256 as "browserSha256"`
const SIGN_UP_ALIVE = `t.link_sha256 = $1 and t.purpose = 'sign_up' and t.used_at is null
             and t.attempts_left > 0 and t.expires_at > $2
             and o.id = t.tenant_id and o.status = 'active'`

/** Reads the link of a sign-up without using it. */
export const findSignUpTicket = (tx: Transaction, linkSha256: Uint8Array, now: Date) =>
  firstRow<SignUpTicket>(tx, {
    name: 'mail_ticket.find_sign_up',
    text: `select ${SIGN_UP} from mail_tickets t, tenants o where ${SIGN_UP_ALIVE}`,
    values: [Buffer.from(linkSha256), now],
  })

/** Uses the link of a sign-up once, and with it every other link of that address in the tenant. */
export const useSignUpTicket = (tx: Transaction, linkSha256: Uint8Array, now: Date) =>
  firstRow<SignUpTicket>(tx, {
    name: 'mail_ticket.use_sign_up',
    text: `with used as (
             update mail_tickets t set used_at = $2 from tenants o
             where ${SIGN_UP_ALIVE} returning t.id, ${SIGN_UP}),
           others as (
             update mail_tickets t set used_at = $2 from used
             where t.tenant_id = used."tenantId" and t.email_key = used.email
               and t.purpose = 'sign_up' and t.used_at is null and t.id <> used.id)
           select "tenantId", "tenantName", "tenantSettings", "controlPlane", email,
             "flowSha256", "browserSha256" from used`,
    values: [Buffer.from(linkSha256), now],
  })

/** The tenant of a link, used or expired, until its row is deleted. */
export const findTicketTenant = (tx: Transaction, purpose: TicketPurpose, linkSha256: Uint8Array) =>
  firstRow<TicketTenant>(tx, {
    name: 'mail_ticket.find_tenant',
    text: `select o.id, o.name, o.settings from mail_tickets t join tenants o on o.id = t.tenant_id
           where t.link_sha256 = $1 and t.purpose = $2 and o.status = 'active'`,
    values: [Buffer.from(linkSha256), purpose],
  })

type TicketTenant = {
  readonly id: string
  readonly name: string
  readonly settings: Readonly<Record<string, unknown>>
}

/** Uses a link once. */
export const useTicket = (
  tx: Transaction,
  purpose: TicketPurpose,
  linkSha256: Uint8Array,
  now: Date,
) =>
  firstRow<TicketFound>(tx, {
    name: 'mail_ticket.use',
    text: `update mail_tickets t set used_at = $3 from accounts a, tenants o
           where t.link_sha256 = $1 and t.purpose = $2 and ${ALIVE}
           returning ${FOUND}`,
    values: [Buffer.from(linkSha256), purpose, now],
  })

/**
 * One attempt at a sign-in code: counts it, and uses the code if it is right, in one statement.
 * @returns undefined when there is no usable code.
 */
export async function tryCode(
  tx: Transaction,
  flowSha256: Uint8Array,
  codeSha256: Uint8Array,
  now: Date,
): Promise<{ readonly accountId: string | null; readonly email: Email } | 'wrong' | undefined> {
  const { rows } = await tx.query<{ matched: boolean; accountId: string | null; email: Email }>({
    name: 'mail_ticket.try_code',
    text: `update mail_tickets set attempts_left = attempts_left - 1,
             used_at = case when code_sha256 = $2 and account_id is not null
               then $3::timestamptz end
           where flow_sha256 = $1 and code_sha256 is not null and used_at is null
             and attempts_left > 0 and expires_at > $3
           returning used_at is not null as matched, account_id as "accountId",
             email_key as email`,
    values: [Buffer.from(flowSha256), Buffer.from(codeSha256), now],
  })
  const matched = rows.find((row) => row.matched)
  if (matched !== undefined) return matched
  return rows.length === 0 ? undefined : 'wrong'
}

/** Voids the other tickets of an account, in one tenant or (null) in all. */
export const voidTickets = (
  tx: Transaction,
  accountId: string,
  tenantId: string | null,
  purpose: TicketPurpose,
  now: Date,
) =>
  execute(tx, {
    name: 'mail_ticket.void',
    text: `update mail_tickets set used_at = $3
           where account_id = $1 and purpose = $2 and used_at is null
             and ($4::uuid is null or tenant_id = $4)`,
    values: [accountId, purpose, now, tenantId],
  })

/** Deletes up to `limit` tickets that expired before `before`. */
export const removeExpiredTickets = removing('mail_ticket.remove_expired', 'mail_tickets')
