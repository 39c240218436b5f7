/**
 * Calls that wait for a person. States: pending -> approved -> used, pending -> denied, and pending or approved -> expired.
 * Every transition is one conditional statement. An open one whose grant, credential, delegation or agent has ended is
 * read as expired, before the worker stores it.
 */
import type {
  ApprovalKind,
  ApprovalStatus,
  ShownCall,
} from '../../actors/domain/vault/approvals.js'
import { agentInForce } from '../platform/in-force.js'
import { removing } from '../platform/portable/expiry.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'
import {
  allRows,
  firstRow,
  firstValue,
  isChanged,
  onlyRow,
  type Transaction,
} from '../platform/sql.js'
import { notifyAfterCommit } from '../platform/transaction.js'

/** Wakes the worker of approvals. Has no payload. */
export const APPROVALS_CHANNEL = 'svc_call_approvals'

/** What one answer covers: a call of a grantee by a grant. */
export type AskedCall = {
  readonly tenantId: string
  readonly kind: ApprovalKind
  /** The grant of the vault, or of the MCP server. */
  readonly grantId: string
  readonly credentialId: string | null
  readonly agentId: string | null
  readonly delegationId: string | null
  /** SHA-256 of the whole call, hexadecimal. */
  readonly matchSha256: string
}

export type ApprovalRow = AskedCall & {
  readonly id: string
  readonly status: ApprovalStatus
  readonly agentId: string
  readonly approver: string | null
  readonly shown: ShownCall
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly decidedAt: Date | null
  readonly decidedBy: string | null
  readonly usedAt: Date | null
}

/** With what a person reads about the call. */
export type ApprovalView = ApprovalRow & {
  readonly agentName: string
  readonly purpose: string | null
  readonly provider: string | null
  readonly label: string | null
  /** The approval that the grant needs: one answers for the grant, or for this call alone. */
  readonly approval: 'first' | 'each'
  readonly grantExpiresAt: Date | null
  readonly tenantName: string
  readonly tenantSettings: Readonly<Record<string, unknown>>
}

const MEMBERS = `id tenant_id kind grant_id credential_id agent_id delegation_id approver match_sha256 shown created_at
  expires_at decided_at decided_by used_at`
const COLUMNS = columnsOf(`${MEMBERS} status`)

/** The approval of the same call that can still be answered or used. */
export const findOpenApproval = (tx: Transaction, call: AskedCall, now: Date) =>
  firstRow<ApprovalRow>(tx, {
    name: 'call_approval.open',
    text: `select ${COLUMNS} from call_approvals
           where tenant_id = $1 and grant_id = $2 and match_sha256 = $3 and status in ('pending', 'approved')
             and expires_at > $4
           order by created_at desc, id desc limit 1`,
    values: [call.tenantId, call.grantId, call.matchSha256, now],
  })

/** Stores the end of an approval of this call without an answer, so that the call can be asked again. */
export const expireApprovalOf = (tx: Transaction, call: AskedCall, now: Date) =>
  allRows<ApprovalRow>(tx, {
    name: 'call_approval.expire_same',
    text: `update call_approvals set status = 'expired'
           where tenant_id = $1 and grant_id = $2 and match_sha256 = $3 and status = 'pending' and expires_at <= $4
           returning ${COLUMNS}`,
    values: [call.tenantId, call.grantId, call.matchSha256, now],
  })

/**
 * How many approvals of an agent and of a tenant still count: an answer does not make room before its time, so that a
 * person who denies is not asked without end.
 */
export const countApprovals = (tx: Transaction, { tenantId, agentId }: AskedCall, now: Date) =>
  onlyRow<{ ofAgent: number; ofTenant: number }>(tx, {
    name: 'call_approval.count',
    text: `select count(*) filter (where agent_id = $2)::integer as "ofAgent", count(*)::integer as "ofTenant"
           from call_approvals where tenant_id = $1 and status in ('pending', 'denied') and expires_at > $3`,
    values: [tenantId, agentId, now],
  })

type NewApproval = AskedCall & {
  readonly id: string
  readonly shown: ShownCall
  readonly createdAt: Date
  readonly expiresAt: Date
}

/**
 * Stores a pending approval. Its approver is the owner of the credential if that is a person, else the person of the
 * delegation, else any owner of the tenant. Undefined: another transaction has asked for the same call.
 */
export async function insertApproval(
  tx: Transaction,
  a: NewApproval,
): Promise<ApprovalRow | undefined> {
  notifyAfterCommit(tx, APPROVALS_CHANNEL)
  return firstRow<ApprovalRow>(tx, {
    name: 'call_approval.insert',
    text: `insert into call_approvals (tenant_id, id, kind, grant_id, credential_id, agent_id, delegation_id, approver,
             match_sha256, shown, created_at, expires_at)
           select $1, $2, $3, $4, $5::uuid, coalesce($6::uuid, d.agent_id), $7::uuid,
             coalesce((select c.owner_id from vault_credentials c
               where c.tenant_id = $1 and c.id = $5 and c.owner_type = 'human'), d.subject),
             $8, $9, $10, $11
           from (values (1)) one left join delegations d on d.tenant_id = $1 and d.id = $7
           on conflict do nothing returning ${COLUMNS}`,
    values: [
      a.tenantId,
      a.id,
      a.kind,
      a.grantId,
      a.credentialId,
      a.agentId,
      a.delegationId,
      a.matchSha256,
      JSON.stringify(a.shown),
      a.createdAt,
      a.expiresAt,
    ],
  })
}

/** approved -> used, once, for the same call by one of these grants. */
export const takeApprovalRow = (
  tx: Transaction,
  tenantId: string,
  id: string,
  { matchSha256, grantIds }: { readonly matchSha256: string; readonly grantIds: readonly string[] },
  now: Date,
) =>
  firstRow<ApprovalRow>(tx, {
    name: 'call_approval.take',
    text: `update call_approvals set status = 'used', used_at = $5
           where tenant_id = $1 and id = $2 and status = 'approved' and expires_at > $5
             and match_sha256 = $3 and grant_id = any($4::uuid[])
           returning ${COLUMNS}`,
    values: [tenantId, id, matchSha256, grantIds, now],
  })

/** Puts back what the same transaction took, because the call is refused for another reason. */
export const returnApproval = (tx: Transaction, tenantId: string, id: string) =>
  isChanged(tx, {
    name: 'call_approval.return',
    text: `update call_approvals set status = 'approved', used_at = null
           where tenant_id = $1 and id = $2 and status = 'used'`,
    values: [tenantId, id],
  })

type Answer = {
  readonly status: 'approved' | 'denied'
  /** The subject of the person. */
  readonly by: string
  readonly now: Date
  readonly expiresAt: Date
}

/** pending -> approved or denied, once. Crosses tenants: the agent may have another home tenant. */
export const decideApprovalRow = (
  tx: Transaction,
  tenantId: string,
  id: string,
  { status, by, now, expiresAt }: Answer,
) =>
  firstRow<ApprovalRow>(tx, {
    name: 'call_approval.decide',
    text: `update call_approvals a set status = $3, decided_by = $4, decided_at = $5, expires_at = $6
           where a.tenant_id = $1 and a.id = $2 and a.status = 'pending' and a.expires_at > $5 and ${standing('$5')}
           returning ${COLUMNS}`,
    values: [tenantId, id, status, by, now, expiresAt],
  })

/**
 * A grant that needs one approval needs no more after the answer of an owner of the tenant or of the owner of the
 * credential. The person of a delegation answers for the calls of that delegation alone.
 */
export const openGrant = (tx: Transaction, { tenantId, id }: ApprovalRow, now: Date) =>
  isChanged(tx, {
    name: 'call_approval.open_grant',
    text: `with answer as (
             select a.grant_id, a.delegation_id::text as delegation, a.delegation_id is null
               or exists (select from vault_credentials c where c.tenant_id = $1 and c.id = a.credential_id
                 and c.owner_type = 'human' and c.owner_id = a.decided_by)
               or exists (select from tenant_users u where u.tenant_id = $1 and u.sub = a.decided_by and ${IS_OWNER})
               as whole
             from call_approvals a where a.tenant_id = $1 and a.id = $2 and a.kind = 'egress')
           update vault_grants g set
             approved_at = case when whole then $3 else approved_at end,
             approved_delegations = case when whole then approved_delegations
               else array_append(array_remove(approved_delegations, delegation), delegation) end
           from answer
           where g.tenant_id = $1 and g.id = grant_id and g.approval = 'first' and g.approved_at is null`,
    values: [tenantId, id, now],
  })

/** Ends approvals whose time or grant, credential, delegation or agent has ended. Crosses tenants. */
export const expireApprovals = (tx: Transaction, now: Date, limit: number) =>
  allRows<ApprovalRow>(tx, {
    name: 'call_approval.expire',
    text: `update call_approvals set status = 'expired'
           where (tenant_id, id) in (
             select a.tenant_id, a.id from call_approvals a
             where a.status in ('pending', 'approved') and (a.expires_at <= $1 or not ${standing('$1')})
             order by a.expires_at limit $2 for update skip locked)
           returning ${COLUMNS}`,
    values: [now, limit],
  })

/** One approval. Crosses tenants: the id tells the tenant, and the agent may have another home tenant. */
export const findApproval = (tx: Transaction, id: string, now: Date) =>
  firstRow<ApprovalView>(tx, {
    name: 'call_approval.find',
    text: `${viewAt('$2')} where a.id = $1`,
    values: [id, now],
  })

/** Filter of a list; null matches all. */
export type ApprovalsOf = {
  readonly tenantId: string
  /** Those that this person may answer. `isOwner` adds those that any owner may answer. */
  readonly approver: { readonly sub: string; readonly isOwner: boolean } | null
  readonly status: ApprovalStatus | null
}

/** A page of approvals, newest first. Crosses tenants, as `findApproval` does. */
export const listApprovalRows = (
  tx: Transaction,
  { tenantId, approver, status }: ApprovalsOf,
  now: Date,
  limit: number,
  after: { readonly createdAt: Date; readonly id: string } | null,
) =>
  allRows<ApprovalView>(tx, {
    name: 'call_approval.list',
    text: `select * from (${viewAt('$2')}
             where a.tenant_id = $1 and ($3::text is null or a.approver = $3 or ($4 and a.approver is null))
               and ($7::timestamptz is null or (a.created_at, a.id) < ($7, $8::uuid))) seen
           where $5::text is null or seen.status = $5
           order by seen."createdAt" desc, seen.id desc limit $6`,
    values: [
      tenantId,
      now,
      approver?.sub ?? null,
      approver?.isOwner ?? false,
      status,
      limit,
      after?.createdAt ?? null,
      after?.id ?? null,
    ],
  })

/** Approvals that no mail was sent about, oldest first. Crosses tenants. */
export const unannouncedApprovals = (tx: Transaction, now: Date, limit: number) =>
  allRows<ApprovalView>(tx, {
    name: 'call_approval.unannounced',
    text: `${viewAt('$1')} where a.announced_at is null and a.status = 'pending' order by a.created_at limit $2`,
    values: [now, limit],
  })

/** False if another process announces it. */
export const announceApproval = (tx: Transaction, tenantId: string, id: string, now: Date) =>
  isChanged(tx, {
    name: 'call_approval.announce',
    text: `update call_approvals set announced_at = $3
           where tenant_id = $1 and id = $2 and announced_at is null`,
    values: [tenantId, id, now],
  })

export type ApproverAddress = { readonly email: string; readonly locale: string | null }

/** The addresses of those who may answer. Accounts are global, so the transaction crosses tenants. */
export const approverAddresses = (
  tx: Transaction,
  tenantId: string,
  approver: string | null,
  limit: number,
) =>
  allRows<ApproverAddress>(tx, {
    name: 'call_approval.addresses',
    text: `select a.email, coalesce(u.locale, a.locale) as locale
           from tenant_users u join accounts a on a.id = u.account_id and a.status = 'active'
           where u.tenant_id = $1 and u.status = 'active' and a.guest_since is null
             and (u.sub = $2 or ($2::text is null and ${IS_OWNER}))
           order by u.created_at, u.id limit $3`,
    values: [tenantId, approver, limit],
  })

/** True for a person who owns the tenant, or its organization. */
export const isOwnerOfTenant = async (tx: Transaction, tenantId: string, sub: string) =>
  (await firstValue<boolean>(tx, {
    name: 'call_approval.is_owner',
    text: `select ${IS_OWNER} from tenant_users u
           where u.tenant_id = $1 and u.sub = $2 and u.status = 'active' and u.account_active`,
    values: [tenantId, sub],
  })) ?? false

/** Deletes approvals that ended long ago. */
export const removeEndedApprovals = removing('call_approval.sweep', 'call_approvals')

const IS_OWNER = `('owner' = any (u.roles) or exists (
  select from tenants t join organizations o on o.id = t.organization_id and o.status = 'active'
    join organization_members m on m.organization_id = o.id and m.role = 'owner'
      and m.member_type = 'account' and m.member_id = u.account_id
  where t.id = u.tenant_id))`

/** SQL: what the call of `a` would use is in force. */
function standing(now: string): string {
  return `((a.kind <> 'egress' or exists (select from vault_grants g
      join vault_credentials c on c.tenant_id = g.tenant_id and c.id = g.credential_id and c.status = 'active'
      where g.tenant_id = a.tenant_id and g.id = a.grant_id and g.revoked_at is null
        and (g.expires_at is null or g.expires_at > ${now})))
    and (a.delegation_id is null or exists (select from delegations d
      where d.tenant_id = a.tenant_id and d.id = a.delegation_id and d.revoked_at is null and d.expires_at > ${now}))
    and ${agentInForce('a.agent_id')}
    and not exists (select from agent_suspensions x where x.tenant_id = a.tenant_id and x.agent_id = a.agent_id))`
}

function viewAt(now: string): string {
  return `select ${columnsOf(MEMBERS, 'a')},
      case when a.status in ('pending', 'approved') and (a.expires_at <= ${now} or not ${standing(now)})
        then 'expired' else a.status end as status,
      coalesce(v.agent_name, i.name, '') as "agentName", v.purpose, k.provider, k.label,
      coalesce(y.approval, 'each') as approval, y.expires_at as "grantExpiresAt",
      t.name as "tenantName", t.settings as "tenantSettings"
    from call_approvals a join tenants t on t.id = a.tenant_id
      left join delegations v on v.tenant_id = a.tenant_id and v.id = a.delegation_id
      left join agents i on i.id = a.agent_id
      left join vault_credentials k on k.tenant_id = a.tenant_id and k.id = a.credential_id
      left join vault_grants y on y.tenant_id = a.tenant_id and y.id = a.grant_id`
}
