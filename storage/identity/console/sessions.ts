/** Sessions of the console. Only the SHA-256 of the cookie is stored, and the tokens are sealed. */
import { execute, firstRow, firstValue, type Transaction } from '../../platform/sql.js'
import { removing } from '../../platform/portable/expiry.js'

type ConsoleSessionRow = {
  tenantId: string
  id: string
  subject: string
  tokensSealed: Uint8Array
  scopes: string[]
  /** When the access token expires. */
  accessUntil: Date
  expiresAt: Date
}

type NewConsoleSession = ConsoleSessionRow & {
  readonly tokenSha256: Uint8Array
  readonly createdAt: Date
}

/** Encryption context of the tokens of a session. */
export const consoleTokensContext = (id: string) => `console_session:${id}:tokens`
/** Encryption context of the action that waits for a fresh second factor. */
export const consolePendingContext = (id: string) => `console_session:${id}:pending`

export const insertConsoleSession = (tx: Transaction, s: NewConsoleSession) =>
  execute(tx, {
    name: 'console_session.insert',
    text: `insert into console_sessions (tenant_id, id, token_sha256, subject, tokens_sealed, scopes,
             access_until, created_at, expires_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    values: [
      s.tenantId,
      s.id,
      Buffer.from(s.tokenSha256),
      s.subject,
      Buffer.from(s.tokensSealed),
      s.scopes,
      s.accessUntil,
      s.createdAt,
      s.expiresAt,
    ],
  })

/** Finds an open session by its cookie. Its tenant is unknown, so the transaction must cross tenants. */
export const findConsoleSession = (tx: Transaction, tokenSha256: Uint8Array, now: Date) =>
  firstRow<ConsoleSessionRow>(tx, {
    name: 'console_session.find',
    text: `select c.tenant_id as "tenantId", c.id, c.subject, c.tokens_sealed as "tokensSealed",
             c.scopes, c.access_until as "accessUntil", c.expires_at as "expiresAt"
           from console_sessions c join tenants t on t.id = c.tenant_id and t.status = 'active'
           where c.token_sha256 = $1 and c.expires_at > $2`,
    values: [Buffer.from(tokenSha256), now],
  })

/** The active tenant that verified a domain. Crosses tenants. */
export const findTenantOfDomain = (tx: Transaction, domain: string) =>
  firstValue<string>(tx, {
    name: 'console_session.tenant_of_domain',
    text: `select t.id from verified_domains d join tenants t on t.id = d.tenant_id
           where d.domain = $1 and d.verified_at is not null and t.status = 'active'
           order by t.environment = 'production' desc, t.created_at, t.id limit 1`,
    values: [domain],
  })

type RenewedTokens = Pick<
  ConsoleSessionRow,
  'tenantId' | 'id' | 'tokensSealed' | 'scopes' | 'accessUntil'
>

/** Replaces the tokens after a refresh. An older answer never replaces a newer one. */
export const renewConsoleTokens = (tx: Transaction, renewed: RenewedTokens) =>
  execute(tx, {
    name: 'console_session.renew',
    text: `update console_sessions set tokens_sealed = $3, scopes = $4, access_until = $5
           where tenant_id = $1 and id = $2 and access_until <= $5`,
    values: [
      renewed.tenantId,
      renewed.id,
      Buffer.from(renewed.tokensSealed),
      renewed.scopes,
      renewed.accessUntil,
    ],
  })

type OneSession = { readonly tenantId: string; readonly id: string }

/** Keeps an action until it is taken. It replaces an earlier one. */
export const keepConsoleAction = (
  tx: Transaction,
  { tenantId, id }: OneSession,
  sealed: Uint8Array,
) =>
  execute(tx, {
    name: 'console_session.keep_action',
    text: 'update console_sessions set pending_sealed = $3 where tenant_id = $1 and id = $2',
    values: [tenantId, id, Buffer.from(sealed)],
  })

/** Takes the action that waits, once. */
export const takeConsoleAction = async (tx: Transaction, { tenantId, id }: OneSession) =>
  (await firstValue<Uint8Array | null>(tx, {
    name: 'console_session.take_action',
    text: `with waiting as (
             select tenant_id, id, pending_sealed from console_sessions
             where tenant_id = $1 and id = $2 and pending_sealed is not null for update)
           update console_sessions c set pending_sealed = null
           from waiting w where c.tenant_id = w.tenant_id and c.id = w.id
           returning w.pending_sealed as sealed`,
    values: [tenantId, id],
  })) ?? undefined

/** Ends a session. */
export const deleteConsoleSession = (tx: Transaction, { tenantId, id }: OneSession) =>
  execute(tx, {
    name: 'console_session.delete',
    text: 'delete from console_sessions where tenant_id = $1 and id = $2',
    values: [tenantId, id],
  })

/** Deletes up to `limit` sessions that expired before `before`. */
export const removeExpiredConsoleSessions = removing(
  'console_session.remove_expired',
  'console_sessions',
)
