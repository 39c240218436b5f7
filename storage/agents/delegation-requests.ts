/** Delegation requests of agents. Device codes are stored as hashes. */
import { agentInForce } from '../platform/in-force.js'
import { firstRow, isChanged, type Transaction } from '../platform/sql.js'
import { removing } from '../platform/portable/expiry.js'

type NewDelegationRequest = {
  readonly tenantId: string
  readonly id: string
  readonly agentId: string
  readonly keyFingerprint: string | null
  readonly deviceCodeSha256: Uint8Array
  readonly userCode: string
  readonly scopes: readonly string[]
  readonly audience: string
  readonly purpose: string | null
  readonly address: string
  /** Seconds. */
  readonly interval: number
  readonly createdAt: Date
  readonly expiresAt: Date
}

/** False when the user code is in use. */
export const insertDelegationRequest = (tx: Transaction, r: NewDelegationRequest) =>
  isChanged(tx, {
    name: 'delegation_request.insert',
    text: `insert into delegation_requests (tenant_id, id, agent_id, key_fingerprint,
             device_code_sha256, user_code, scopes, audience, address, interval_secs, created_at,
             expires_at, purpose)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
           on conflict (user_code) do nothing`,
    values: [
      r.tenantId,
      r.id,
      r.agentId,
      r.keyFingerprint,
      Buffer.from(r.deviceCodeSha256),
      r.userCode,
      r.scopes,
      r.audience,
      r.address,
      r.interval,
      r.createdAt,
      r.expiresAt,
      r.purpose,
    ],
  })

type DelegationRequestStatus = 'pending' | 'approved' | 'denied' | 'consumed'

/** A request at the time of a poll. */
export type PolledRequest = {
  readonly id: string
  readonly status: DelegationRequestStatus
  readonly expiresAt: Date
  /** The request is pending and the poll came before the interval was over. */
  readonly tooFast: boolean
  /** The new interval, seconds. */
  readonly interval: number
  /** Approved, but the delegation was revoked before a poll got its token. */
  readonly revoked: boolean
}

type Poll = {
  readonly tenantId: string
  readonly agentId: string
  readonly deviceCodeSha256: Uint8Array
  readonly now: Date
  /** Seconds added to the interval after a poll that is too fast (RFC 8628 section 3.5). */
  readonly penalty: number
}

/**
 * Records a poll and returns the request. Serialised by the row lock; the time of the last poll never
 * moves back, even if a poll that waited for the lock has an older time.
 */
export const pollDelegationRequest = (
  tx: Transaction,
  { tenantId, agentId, deviceCodeSha256, now, penalty }: Poll,
) =>
  firstRow<PolledRequest>(tx, {
    name: 'delegation_request.poll',
    text: `with seen as (
             select id, status, expires_at, interval_secs, polled_at,
               status = 'pending' and expires_at > $4 and polled_at is not null
                 and $4 < polled_at + make_interval(secs => interval_secs) as too_fast
             from delegation_requests
             where tenant_id = $1 and agent_id = $2 and device_code_sha256 = $3
             for update)
           update delegation_requests r
           set polled_at = greatest(seen.polled_at, $4),
             interval_secs = seen.interval_secs + case when seen.too_fast then $5::integer else 0 end
           from seen where r.tenant_id = $1 and r.id = seen.id
           returning r.id, seen.status, seen.expires_at as "expiresAt", seen.too_fast as "tooFast",
             r.interval_secs as interval,
             exists (select from delegations d where d.tenant_id = $1 and d.id = seen.id
               and d.revoked_at is not null) as revoked`,
    values: [tenantId, agentId, Buffer.from(deviceCodeSha256), now, penalty],
  })

/** A request for the approval page. */
export type ShownRequest = {
  readonly tenantId: string
  readonly id: string
  readonly agentId: string
  readonly agentName: string
  /** When the agent registered; null for a deleted agent. */
  readonly agentSince: Date | null
  /**
   * A domain that an organization of the agent has proved to own; null without one. Agents register themselves in
   * tenants, so only a membership counts, which an owner gives.
   */
  readonly agentDomain: string | null
  readonly keyFingerprint: string | null
  readonly userCode: string
  readonly scopes: readonly string[]
  readonly purpose: string | null
  readonly audience: string
  /** Name of the application with this audience; null for this service. */
  readonly audienceName: string | null
  readonly address: string
  readonly status: DelegationRequestStatus
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly decidedBy: string | null
  /** The agent and the tenant are active. */
  readonly standing: boolean
  readonly tenantName: string
  readonly tenantSettings: Readonly<Record<string, unknown>>
}

/**
 * Finds a request by its user code. Crosses tenants: the code determines the tenant, and the agent may
 * have another home tenant.
 */
export const findDelegationRequest = (tx: Transaction, userCode: string) =>
  firstRow<ShownRequest>(tx, {
    name: 'delegation_request.find',
    text: `select r.tenant_id as "tenantId", r.id, r.agent_id as "agentId",
             coalesce(a.name, '') as "agentName", a.created_at as "agentSince",
             (select o.domain from organization_members m
                join organizations g on g.id = m.organization_id and g.status = 'active'
                join domain_owners o on o.organization_id = g.id
              where m.member_type = 'agent' and m.member_id = r.agent_id
              order by o.verified_at, o.domain limit 1) as "agentDomain",
             r.key_fingerprint as "keyFingerprint",
             r.user_code as "userCode", r.scopes, r.purpose, r.audience, p.name as "audienceName", r.address,
             r.status, r.created_at as "createdAt", r.expires_at as "expiresAt",
             r.decided_by as "decidedBy",
             t.status = 'active' and ${agentInForce('r.agent_id')}
               and not exists (select from agent_suspensions x
                 where x.tenant_id = r.tenant_id and x.agent_id = r.agent_id) as standing,
             t.name as "tenantName", t.settings as "tenantSettings"
           from delegation_requests r
             join tenants t on t.id = r.tenant_id
             left join agents a on a.id = r.agent_id
             left join applications p on p.tenant_id = r.tenant_id and p.audience = r.audience
           where r.user_code = $1`,
    values: [userCode],
  })

/**
 * pending -> approved or denied, before it expires; true for the decision that wins. Extends the expiry
 * to five minutes from now, so that the next poll gets the decision.
 */
export const decideDelegationRequest = (
  tx: Transaction,
  { tenantId, id }: Pick<ShownRequest, 'tenantId' | 'id'>,
  decision: 'approved' | 'denied',
  sub: string,
  now: Date,
) =>
  isChanged(tx, {
    name: 'delegation_request.decide',
    text: `update delegation_requests set status = $3, decided_by = $4, decided_at = $5,
             expires_at = greatest(expires_at, $5::timestamptz + interval '5 minutes')
           where tenant_id = $1 and id = $2 and status = 'pending' and expires_at > $5`,
    values: [tenantId, id, decision, sub, now],
  })

/** Deletes up to `limit` requests that expired before `before`. */
export const removeEndedDelegationRequests = removing(
  'delegation_request.remove_ended',
  'delegation_requests',
)
