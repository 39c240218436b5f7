/**
 * Requests that a user decides on another device: device codes (RFC 8628) and CIBA. Each is polled by
 * its hash, decided once and redeemed once.
 */
import { personInForce, tenantInForce } from '../platform/in-force.js'
import { allRows, firstRow, isChanged, type Transaction } from '../platform/sql.js'
import { removing } from '../platform/portable/expiry.js'

export type BackchannelKind = 'device' | 'ciba'
type BackchannelStatus = 'pending' | 'approved' | 'denied' | 'redeemed'

type NewBackchannelRequest = {
  readonly tenantId: string
  readonly id: string
  readonly kind: BackchannelKind
  readonly codeSha256: Uint8Array
  /** Null for CIBA. */
  readonly userCode: string | null
  readonly clientId: string
  readonly scopes: readonly string[]
  readonly audience: readonly string[]
  /** The requested API resources. Null if it is for other audiences. */
  readonly resourceIds: readonly string[] | null
  readonly levelAsked: 1 | 2 | 3
  readonly bindingMessage: string | null
  readonly askedFrom: string | null
  readonly intervalSecs: number
  /** The user of a CIBA request. Null if the user is unknown, and for device codes. */
  readonly subject: string | null
  readonly createdAt: Date
  readonly expiresAt: Date
}

/** Returns false if another request has the same user code. */
export async function insertBackchannelRequest(
  tx: Transaction,
  request: NewBackchannelRequest,
): Promise<boolean> {
  const r = request
  return isChanged(tx, {
    name: 'backchannel_request.insert',
    text: `insert into backchannel_requests (tenant_id, id, kind, code_sha256, user_code, client_id,
             scopes, audience, level_asked, binding_message, asked_from, interval_secs, subject,
             created_at, expires_at, resource_ids)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
           on conflict (user_code) where user_code is not null do nothing`,
    values: [
      r.tenantId,
      r.id,
      r.kind,
      Buffer.from(r.codeSha256),
      r.userCode,
      r.clientId,
      r.scopes,
      r.audience,
      r.levelAsked,
      r.bindingMessage,
      r.askedFrom,
      r.intervalSecs,
      r.subject,
      r.createdAt,
      r.expiresAt,
      r.resourceIds,
    ],
  })
}

type PollKey = {
  readonly kind: BackchannelKind
  readonly codeSha256: Uint8Array
  /** Only this client can poll the request. */
  readonly clientId: string
  readonly now: Date
}

/** A polled request. */
export type PolledRequest = {
  readonly tenantId: string
  readonly id: string
  readonly clientId: string
  readonly status: BackchannelStatus
  readonly scopes: readonly string[]
  readonly audience: readonly string[]
  readonly resourceIds: readonly string[] | null
  readonly expiresAt: Date
  /** The poll interval. It never changes, so that a client of fixed cadence is never too fast. */
  readonly intervalSecs: number
  /** True if the request is pending and the last poll was less than the interval ago. */
  readonly tooFast: boolean
  readonly subject: string | null
  readonly organizationId: string | null
  readonly level: number | null
  readonly amr: readonly string[] | null
  readonly authTime: Date | null
  /** True if the user and the tenant are active. */
  readonly standing: boolean
}

/**
 * Records a poll and compares it with the last one in one statement, so that concurrent polls see each
 * other. The tenant is unknown, so the transaction crosses tenants.
 */
export const recordPoll = (tx: Transaction, key: PollKey) =>
  firstRow<PolledRequest>(tx, {
    name: 'backchannel_request.record_poll',
    text: `with seen as (
             select tenant_id, id, status = 'pending' and expires_at > $4
               and polled_at + make_interval(secs => interval_secs) > $4 as too_fast
             from backchannel_requests
             where kind = $1 and code_sha256 = $2 and client_id = $3
             for update)
           update backchannel_requests r set polled_at = $4
           from seen where r.tenant_id = seen.tenant_id and r.id = seen.id
           returning r.tenant_id as "tenantId", r.id, r.client_id as "clientId", r.status, r.scopes,
             r.audience, r.resource_ids as "resourceIds", r.expires_at as "expiresAt", r.interval_secs as "intervalSecs",
             coalesce(seen.too_fast, false) as "tooFast", r.subject,
             r.organization_id as "organizationId", r.level, r.amr, r.auth_time as "authTime",
             ${tenantInForce('r.tenant_id')}
             and ${personInForce('r.tenant_id', 'r.subject')} as standing`,
    values: [key.kind, Buffer.from(key.codeSha256), key.clientId, key.now],
  })

type BackchannelRedemption = {
  readonly tenantId: string
  readonly id: string
  /** Key thumbprint to which the refresh tokens are bound. */
  readonly jkt: string | null
  /** Null if the application gets no refresh token. */
  readonly refreshTokenSha256: Uint8Array | null
  /** The metadata document of the client. Null for a registered client. */
  readonly documentSha256: string | null
  readonly now: Date
  /** Expiry of the session and the family. */
  readonly expiresAt: Date
}

/**
 * approved -> redeemed. Creates the session, the refresh family and the first refresh token. Returns
 * true for the one call that redeemed it. A sign-out in the approving browser does not end
 * the new session.
 */
export async function redeemBackchannelRequest(
  tx: Transaction,
  redemption: BackchannelRedemption,
): Promise<boolean> {
  const r = redemption
  const { rows } = await tx.query<{ redeemed: boolean }>({
    name: 'backchannel_request.redeem',
    text: `with redeemed as (
             update backchannel_requests set status = 'redeemed'
             where tenant_id = $1 and id = $2 and status = 'approved' and expires_at > $4
             returning *),
           session as (
             insert into sessions (tenant_id, id, subject, subject_type, client_id,
               organization_id, amr, auth_time, created_at, expires_at)
             select tenant_id, id, subject, 'human', client_id, organization_id, amr, auth_time, $4,
               $5
             from redeemed),
           family as (
             insert into refresh_families (tenant_id, id, session_id, client_id, scopes, audience,
               jkt, created_at, expires_at, subject, level, amr, auth_time, resource_ids,
               document_sha256)
             select tenant_id, id, id, client_id, scopes, audience, $3, $4, $5, subject, level, amr,
               auth_time, resource_ids, $7::text
             from redeemed),
           token as (
             insert into refresh_tokens (tenant_id, family_id, generation, token_sha256, issued_at)
             select tenant_id, id, 0, $6, $4 from redeemed where $6::bytea is not null)
           select exists (select from redeemed) as redeemed`,
    values: [
      r.tenantId,
      r.id,
      r.jkt,
      r.now,
      r.expiresAt,
      r.refreshTokenSha256 === null ? null : Buffer.from(r.refreshTokenSha256),
      r.documentSha256,
    ],
  })
  return rows[0]!.redeemed
}

/** The client of a request, by the hash of its code. Its tenant is unknown, so the transaction crosses tenants. */
export const findBackchannelClient = (
  tx: Transaction,
  kind: BackchannelKind,
  codeSha256: Uint8Array,
) =>
  firstRow<{ tenantId: string; clientId: string }>(tx, {
    name: 'backchannel_request.client',
    text: `select tenant_id as "tenantId", client_id as "clientId" from backchannel_requests
           where kind = $1 and code_sha256 = $2`,
    values: [kind, Buffer.from(codeSha256)],
  })

/** A request that waits for its user. */
export type PendingBackchannelRequest = {
  readonly tenantId: string
  readonly id: string
  readonly clientId: string
  readonly scopes: readonly string[]
  readonly audience: readonly string[]
  readonly resourceIds: readonly string[] | null
  readonly levelAsked: 1 | 2 | 3
  readonly bindingMessage: string | null
  readonly askedFrom: string | null
  readonly createdAt: Date
  readonly expiresAt: Date
}

/** Finds a request by user code. Its tenant is unknown, so the transaction crosses tenants. */
export const findByUserCode = (tx: Transaction, userCode: string, now: Date) =>
  firstRow<PendingBackchannelRequest>(tx, {
    name: 'backchannel_request.by_user_code',
    text: `select ${PENDING} from backchannel_requests r
           where r.user_code = $1 and r.status = 'pending' and r.expires_at > $2`,
    values: [userCode, now],
  })

/** A CIBA request in the inbox of its user. */
export type InboxRequest = PendingBackchannelRequest & {
  readonly clientName: string
  /** The current scopes of the application. */
  readonly clientScopes: readonly string[]
}

/** The pending requests of a user in a tenant, the newest first. */
export const listInbox = (
  tx: Transaction,
  { tenantId, subject, now }: { tenantId: string; subject: string; now: Date },
  limit: number,
) =>
  allRows<InboxRequest>(tx, {
    name: 'backchannel_request.inbox',
    text: `select ${PENDING}, a.name as "clientName", a.scopes as "clientScopes"
           from backchannel_requests r
             join applications a on a.tenant_id = r.tenant_id and a.id = r.client_id
               and a.status = 'active'
           where r.tenant_id = $1 and r.subject = $2 and r.kind = 'ciba' and r.status = 'pending'
             and r.expires_at > $3
           order by r.created_at desc, r.id desc limit $4`,
    values: [tenantId, subject, now, limit],
  })

/** One pending request of the user. Undefined if it is another user's, decided or expired. */
export const findInInbox = (
  tx: Transaction,
  { tenantId, subject, now }: { tenantId: string; subject: string; now: Date },
  id: string,
) =>
  firstRow<PendingBackchannelRequest>(tx, {
    name: 'backchannel_request.in_inbox',
    text: `select ${PENDING} from backchannel_requests r
           where r.tenant_id = $1 and r.id = $4 and r.subject = $2 and r.kind = 'ciba'
             and r.status = 'pending' and r.expires_at > $3`,
    values: [tenantId, subject, now, id],
  })

/** A decision that a session made at or after `since`. Undefined if it made none. */
export const findDecision = (
  tx: Transaction,
  key: { tenantId: string; id: string; sessionId: string; since: Date },
) =>
  firstRow<{ status: BackchannelStatus; clientId: string }>(tx, {
    name: 'backchannel_request.decision',
    text: `select status, client_id as "clientId" from backchannel_requests
           where tenant_id = $1 and id = $2 and decided_session_id = $3 and decided_at >= $4`,
    values: [key.tenantId, key.id, key.sessionId, key.since],
  })

type Decision = {
  readonly tenantId: string
  readonly id: string
  /** The session that decides. */
  readonly sessionId: string
  readonly now: Date
}
type Approval = Decision & {
  readonly scopes: readonly string[]
  readonly audience: readonly string[]
  readonly subject: string
  readonly organizationId: string | null
  readonly level: number
  readonly amr: readonly string[]
  readonly authTime: Date
}

/** A late decision extends the expiry, so that the next poll still gets it. */
const STAYS_DECIDED = `greatest(expires_at, $3::timestamptz + interval '5 minutes')`

/** pending -> approved, once. False if it was decided or expired. */
export async function approveBackchannelRequestRow(
  tx: Transaction,
  approval: Approval,
): Promise<boolean> {
  const a = approval
  return isChanged(tx, {
    name: 'backchannel_request.approve',
    text: `update backchannel_requests set status = 'approved', user_code = null, decided_at = $3,
             expires_at = ${STAYS_DECIDED}, scopes = $4, audience = $5, subject = $6, organization_id = $7, level = $8, amr = $9,
             auth_time = $10, decided_session_id = $11
           where tenant_id = $1 and id = $2 and status = 'pending' and expires_at > $3
             and (subject is null or subject = $6)`,
    values: [
      a.tenantId,
      a.id,
      a.now,
      a.scopes,
      a.audience,
      a.subject,
      a.organizationId,
      a.level,
      a.amr,
      a.authTime,
      a.sessionId,
    ],
  })
}

/** pending -> denied, once. False if it was decided or expired. */
export const denyBackchannelRequestRow = (
  tx: Transaction,
  { tenantId, id, sessionId, now }: Decision,
) =>
  isChanged(tx, {
    name: 'backchannel_request.deny',
    text: `update backchannel_requests set status = 'denied', user_code = null, decided_at = $3,
             expires_at = ${STAYS_DECIDED}, decided_session_id = $4
           where tenant_id = $1 and id = $2 and status = 'pending' and expires_at > $3`,
    values: [tenantId, id, now, sessionId],
  })

/** Selects approvals: of one user in one tenant, or of an account in all tenants. */
type ApprovalsOf =
  | { readonly tenantId: string; readonly subject: string }
  | { readonly accountId: string }

/**
 * approved -> denied, for approvals that were not redeemed before their session, consent or user ended.
 * Waits for concurrent redemptions.
 */
export async function endBackchannelApprovals(
  tx: Transaction,
  of: ApprovalsOf,
  now: Date,
): Promise<void> {
  const [tenantId, subject, accountId] =
    'accountId' in of ? [null, null, of.accountId] : [of.tenantId, of.subject, null]
  await tx.query({
    name: 'backchannel_request.end_approvals',
    text: `update backchannel_requests r set status = 'denied'
           from tenant_users u
           where (u.account_id = $3 or (u.tenant_id = $1 and u.sub = $2))
             and r.tenant_id = u.tenant_id and r.subject = u.sub and r.status = 'approved'
             and r.expires_at > $4`,
    values: [tenantId, subject, accountId, now],
  })
}

/** Deletes up to `limit` requests that ended before `before`. Later polls see an unknown code. */
export const removeEndedBackchannelRequests = removing(
  'backchannel_request.remove_ended',
  'backchannel_requests',
)

const PENDING = `r.tenant_id as "tenantId", r.id, r.client_id as "clientId", r.scopes, r.audience,
  r.resource_ids as "resourceIds", r.level_asked as "levelAsked", r.binding_message as "bindingMessage", r.asked_from as "askedFrom",
  r.created_at as "createdAt", r.expires_at as "expiresAt"`
