/** Browser sessions of users. Only the hash of a cookie is stored. */
import type { Email } from '../../actors/domain/email.js'
import { endBackchannelApprovals } from '../oauth/backchannel-requests.js'
import { ending } from '../platform/ends/ending.js'
import { LOGOUTS_CHANNEL } from '../platform/ends/table.js'
import { notifyAfterCommit } from '../platform/transaction.js'
import {
  allRows,
  changedRows,
  execute,
  firstRow,
  firstValue,
  isChanged,
  type Transaction,
} from '../platform/sql.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'

type NewBrowserSession = {
  tenantId: string
  id: string
  accountId: string
  tokenSha256: Uint8Array
  level: 1 | 2 | 3
  pending: boolean
  /** Valid for this tenant only: changes nothing that affects other tenants. */
  confined: boolean
  /** The federated provider of the sign-in; null: none. */
  provider: string | null
  /** The user at the provider, and the session there if it named one. */
  upstreamSubject: string | null
  upstreamSid: string | null
  amr: readonly string[]
  /** When the user authenticated. For a federated sign-in this may be earlier than the session. */
  authTime: Date
  createdAt: Date
  idleSecs: number
  userAgent: string
  address: string
  expiresAt: Date
}

/** Opens a session after a sign-in. */
export async function insertBrowserSession(
  tx: Transaction,
  session: NewBrowserSession,
): Promise<void> {
  const s = session
  await tx.query({
    name: 'browser_session.insert',
    text: `insert into browser_sessions (tenant_id, id, account_id, token_sha256, level, pending,
             confined, amr, auth_time, password_at, idle_secs, user_agent, address, created_at,
             last_seen_at, expires_at, provider, upstream_subject, upstream_sid)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $10, $10,
             $14, $15, $16, $17)`,
    values: [
      s.tenantId,
      s.id,
      s.accountId,
      Buffer.from(s.tokenSha256),
      s.level,
      s.pending,
      s.confined,
      s.amr,
      s.authTime,
      s.createdAt,
      s.idleSecs,
      s.userAgent,
      s.address,
      s.expiresAt,
      s.provider,
      s.upstreamSubject,
      s.upstreamSid,
    ],
  })
}

/** An open session with its tenant user. */
export type BrowserSessionRow = {
  readonly id: string
  readonly tenantId: string
  readonly organizationId: string | null
  readonly accountId: string
  readonly tenantUserId: string
  readonly sub: string
  /** Empty: a guest. */
  readonly email: Email | ''
  readonly emailVerified: boolean
  readonly displayName: string
  readonly roles: readonly string[]
  readonly level: 1 | 2 | 3
  readonly pending: boolean
  readonly confined: boolean
  readonly amr: readonly string[]
  readonly authTime: Date
  readonly passwordAt: Date
  readonly createdAt: Date
  readonly lastSeenAt: Date
  readonly idleSecs: number
  readonly expiresAt: Date
}

/**
 * The open session of a cookie: not ended, not idle for too long, with an active user and tenant, and opened with the
 * current password. The tenant is unknown before, so the transaction crosses tenants.
 */
export const findBrowserSession = (tx: Transaction, tokenSha256: Uint8Array, now: Date) =>
  firstRow<BrowserSessionRow>(tx, {
    name: 'browser_session.find',
    text: `select s.id, s.tenant_id as "tenantId", t.organization_id as "organizationId",
             s.account_id as "accountId", u.id as "tenantUserId", u.sub,
             case when a.guest_since is null then a.email else '' end as email,
             a.email_verified as "emailVerified", a.display_name as "displayName", u.roles,
             ${columnsOf(
               `level pending confined amr auth_time password_at created_at last_seen_at idle_secs
                expires_at`,
               's',
             )}
           from (select * from browser_sessions where token_sha256 = $1 offset 0) s
             join accounts a on a.id = s.account_id and a.status = 'active'
             join tenants t on t.id = s.tenant_id and t.status = 'active'
             join tenant_users u on u.tenant_id = s.tenant_id and u.account_id = s.account_id
               and u.status = 'active'
           where s.ended_at is null and s.expires_at > $2
             and (a.password_changed_at is null or a.password_changed_at <= s.password_at)
             and s.last_seen_at + make_interval(secs => s.idle_secs) > $2`,
    values: [Buffer.from(tokenSha256), now],
  })

/** The tenant of a cookie's session, even if ended; undefined when unknown. */
export const findSessionTenant = (tx: Transaction, tokenSha256: Uint8Array) =>
  firstValue<string>(tx, {
    name: 'browser_session.find_tenant',
    text: `select s.tenant_id as "tenantId"
           from browser_sessions s join tenants t on t.id = s.tenant_id and t.status = 'active'
           where s.token_sha256 = $1`,
    values: [Buffer.from(tokenSha256)],
  })

/** Updates `last_seen_at` if it is older than `before`: of concurrent requests one writes. */
export const touchBrowserSession = (
  tx: Transaction,
  tenantId: string,
  id: string,
  now: Date,
  before: Date,
) =>
  execute(tx, {
    name: 'browser_session.touch',
    text: `update browser_sessions set last_seen_at = $3
           where tenant_id = $1 and id = $2 and last_seen_at < $4`,
    values: [tenantId, id, now, before],
  })

type Raise = {
  readonly tenantId: string
  readonly id: string
  /** Hash of the current cookie, which becomes invalid. */
  readonly tokenSha256: Uint8Array
  readonly newTokenSha256: Uint8Array
  readonly level: 1 | 2 | 3
  readonly amr: readonly string[]
  readonly authTime: Date
}

/** Raises a session under a new cookie; false when it was ended or raised concurrently. */
export const raiseBrowserSession = (tx: Transaction, raise: Raise) =>
  isChanged(tx, {
    name: 'browser_session.raise',
    text: `update browser_sessions
           set level = greatest(level, $7), pending = false, token_sha256 = $4, amr = $5, auth_time = $6
           where tenant_id = $1 and id = $2 and token_sha256 = $3 and ended_at is null`,
    values: [
      raise.tenantId,
      raise.id,
      Buffer.from(raise.tokenSha256),
      Buffer.from(raise.newTokenSha256),
      raise.amr,
      raise.authTime,
      raise.level,
    ],
  })

/** Ends a session once, with its tokens. Returns its user to the call that ended it. */
export const endBrowserSession = (
  tx: Transaction,
  tenantId: string,
  id: string,
  reason: string,
  now: Date,
) =>
  firstRow<{ readonly sub: string }>(ending(tx, 'browser_session.ended', [{ tenantId, id }]), {
    name: 'browser_session.end',
    text: `update browser_sessions set ended_at = $4, ended_reason = $3
           where tenant_id = $1 and id = $2 and ended_at is null
           returning (select u.sub from tenant_users u where u.tenant_id = $1
             and u.account_id = browser_sessions.account_id) as sub`,
    values: [tenantId, id, reason, now],
  })

/**
 * Ends the sessions of a user in a tenant except one, including idle and pending ones, with their tokens. Returns the
 * ended sessions.
 */
export const endOtherBrowserSessions = (
  tx: Transaction,
  person: { readonly tenantId: string; readonly accountId: string; readonly exceptId: string },
  reason: string,
  now: Date,
) =>
  allRows<{ readonly id: string; readonly sub: string }>(ending(tx, 'browser_session.ended'), {
    name: 'browser_session.end_others',
    text: `update browser_sessions b set ended_at = $5, ended_reason = $4 from tenant_users u
           where b.tenant_id = $1 and b.account_id = $2 and b.id <> $3 and b.ended_at is null
             and u.tenant_id = $1 and u.account_id = $2
           returning b.tenant_id as "tenantId", b.id, u.sub`,
    values: [person.tenantId, person.accountId, person.exceptId, reason, now],
  })

/**
 * Ends the session of a cookie when a new one replaces it, in any tenant unless `leavesOtherTenants`. A session of the
 * same user is linked to the new one: its tokens stay valid and end with the new session. The applications of another
 * user's session get logout tokens.
 */
export async function replaceBrowserSession(
  tx: Transaction,
  tokenSha256: Uint8Array,
  by: {
    readonly tenantId: string
    readonly id: string
    readonly accountId: string
    readonly leavesOtherTenants: boolean
  },
  now: Date,
): Promise<void> {
  const told = await changedRows(tx, {
    name: 'browser_session.replace',
    text: `with replaced as (
             update browser_sessions set ended_at = $2, ended_reason = 'replaced',
               replaced_by = case when tenant_id = $3 and account_id = $5 then $4::uuid end
             where token_sha256 = $1 and ended_at is null and (tenant_id = $3 or not $6)
             returning tenant_id, id, replaced_by)
           update session_applications s set ended_at = now(), due_at = now() from replaced r
           where r.replaced_by is null and s.tenant_id = r.tenant_id and s.session_id = r.id
             and s.ended_at is null`,
    values: [
      Buffer.from(tokenSha256),
      now,
      by.tenantId,
      by.id,
      by.accountId,
      by.leavesOtherTenants,
    ],
  })
  if (told > 0) notifyAfterCommit(tx, LOGOUTS_CHANNEL)
}

export type BrowserSessionSeen = Pick<
  BrowserSessionRow,
  'id' | 'level' | 'createdAt' | 'lastSeenAt'
> & { readonly userAgent: string; readonly address: string }

const LISTED_MAX = 100

/**
 * The open sessions of a user in a tenant, most recently used first, at most 100. Reads the account, so the transaction
 * must cross tenants.
 */
export const listBrowserSessions = (
  tx: Transaction,
  tenantId: string,
  accountId: string,
  now: Date,
) =>
  allRows<BrowserSessionSeen>(tx, {
    name: 'browser_session.list',
    text: `select ${columnsOf('id level created_at last_seen_at user_agent address', 's')}
           from browser_sessions s join accounts a on a.id = s.account_id
           where s.tenant_id = $1 and s.account_id = $2 and s.ended_at is null and not s.pending
             and s.expires_at > $3 and s.last_seen_at + make_interval(secs => s.idle_secs) > $3
             and (a.password_changed_at is null or a.password_changed_at <= s.password_at)
           order by s.last_seen_at desc, s.id desc limit ${LISTED_MAX}`,
    values: [tenantId, accountId, now],
  })

/**
 * Removes up to `limit` sessions that expired before `before`. One that was replaced stays while the session that replaced it
 * does: its applications get their logout tokens when that one ends.
 */
export const removeExpiredBrowserSessions = (tx: Transaction, before: Date, limit: number) =>
  changedRows(tx, {
    name: 'browser_session.remove_expired',
    text: `delete from browser_sessions where (tenant_id, id) in (select tenant_id, id from browser_sessions b
             where expires_at < $1 and not exists (select from browser_sessions n
               where n.tenant_id = b.tenant_id and n.id = b.replaced_by)
             order by expires_at limit $2 for update skip locked)`,
    values: [before, limit],
  })

type Renewal = Pick<Raise, 'tenantId' | 'id' | 'tokenSha256' | 'newTokenSha256'> & {
  /** Id of the new session. */
  readonly newId: string
}

/**
 * Opens the session that continues in a browser after a password change, with a new cookie and the same level. False
 * when the old one was ended concurrently. The new id matters: everything issued in the old session has ended, and
 * applications bind their tokens to the new one.
 */
export const renewBrowserSession = (tx: Transaction, renewal: Renewal, now: Date) =>
  isChanged(ending(tx, 'browser_session.ended', [renewal]), {
    name: 'browser_session.renew',
    text: `with old as (
             update browser_sessions set ended_at = $5, ended_reason = 'password_changed'
             where tenant_id = $1 and id = $2 and token_sha256 = $3 and ended_at is null
             returning *)
           insert into browser_sessions (tenant_id, id, account_id, token_sha256, level, pending,
             confined, amr, auth_time, password_at, idle_secs, user_agent, address, created_at,
             last_seen_at, expires_at, provider, upstream_subject, upstream_sid)
           select tenant_id, $6, account_id, $4, level, pending, confined, amr, auth_time, $5,
             idle_secs, user_agent, address, created_at, last_seen_at, expires_at, provider,
             upstream_subject, upstream_sid
           from old`,
    values: [
      renewal.tenantId,
      renewal.id,
      Buffer.from(renewal.tokenSha256),
      Buffer.from(renewal.newTokenSha256),
      now,
      renewal.newId,
    ],
  })

/**
 * Ends all sessions of an account in every tenant except the named browser session, with tokens and with device and
 * CIBA approvals that were not yet fetched.
 */
export async function endAccountSessions(
  tx: Transaction,
  accountId: string,
  exceptId: string | null,
  reason: string,
  now: Date,
): Promise<void> {
  const sessions = () =>
    Promise.all([
      ending(tx, 'browser_session.ended').query({
        name: 'browser_session.end_of_account',
        text: `update browser_sessions b set ended_at = $4, ended_reason = $3
               from tenant_users m
               where m.account_id = $1 and b.tenant_id = m.tenant_id and b.account_id = $1
                 and b.ended_at is null and b.id is distinct from $2::uuid
               returning b.tenant_id as "tenantId", b.id`,
        values: [accountId, exceptId, reason, now],
      }),
      tx.query({
        name: 'session.end_of_account',
        text: `update sessions s set ended_at = $3, ended_reason = $2
               from tenant_users u
               where u.account_id = $1 and s.tenant_id = u.tenant_id and s.subject = u.sub
                 and s.subject_type = 'human' and s.ended_at is null`,
        values: [accountId, reason, now],
      }),
    ])
  await sessions()
  await endBackchannelApprovals(tx, { accountId }, now)
  // Again, for approvals fetched concurrently.
  await sessions()
}
