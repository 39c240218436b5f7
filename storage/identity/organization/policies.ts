/**
 * Limits of organizations, and transfers of tenants between them. Organizations span tenants, so every transaction here
 * crosses tenants.
 */
import {
  allRows,
  execute,
  firstRow,
  isChanged,
  onlyRow,
  type Transaction,
} from '../../platform/sql.js'

type OrganizationPolicyRow = {
  /** Null: the limit of the deployment. */
  readonly maxMembers: number | null
  readonly maxTenants: number | null
  readonly invitationTtlSecs: number | null
  /** The ceilings of the plan. Null: none. */
  readonly planMembers: number | null
  readonly planTenants: number | null
  /** Members and open invitations. */
  readonly members: number
  readonly tenants: number
}

export const findOrganizationPolicy = (tx: Transaction, organizationId: string, now: Date) =>
  onlyRow<OrganizationPolicyRow>(tx, {
    name: 'organization.policy',
    text: `select o.max_members as "maxMembers", o.max_tenants as "maxTenants",
             o.invitation_ttl_secs as "invitationTtlSecs",
             p.max_members as "planMembers", p.max_tenants as "planTenants",
             (select count(*)::int from organization_members m where m.organization_id = o.id
               and (m.expires_at is null or m.expires_at > $2)) as members,
             (select count(*)::int from tenants t where t.organization_id = o.id) as tenants
           from organizations o left join billing_plans p on p.id = o.billing_plan_id where o.id = $1`,
    values: [organizationId, now],
  })

/** Undefined stays unchanged. Null removes the organization's own limit. */
type PolicyChangeRow = {
  readonly maxMembers: number | null | undefined
  readonly maxTenants: number | null | undefined
  readonly invitationTtlSecs: number | null | undefined
}

export const updateOrganizationPolicy = (
  tx: Transaction,
  organizationId: string,
  { maxMembers, maxTenants, invitationTtlSecs }: PolicyChangeRow,
  now: Date,
) =>
  execute(tx, {
    name: 'organization.set_policy',
    text: `update organizations set
             max_members = case when $2 then $3 else max_members end,
             max_tenants = case when $4 then $5 else max_tenants end,
             invitation_ttl_secs = case when $6 then $7 else invitation_ttl_secs end,
             updated_at = $8
           where id = $1`,
    values: [
      organizationId,
      maxMembers !== undefined,
      maxMembers ?? null,
      maxTenants !== undefined,
      maxTenants ?? null,
      invitationTtlSecs !== undefined,
      invitationTtlSecs ?? null,
      now,
    ],
  })

/**
 * The organization's limit of tenants when it is reached, otherwise undefined. Locks the organization until the
 * transaction ends, so that creations and transfers are counted one after the other.
 */
export async function fullOfTenants(
  tx: Transaction,
  organizationId: string,
  limit: number,
): Promise<number | undefined> {
  const { rows } = await tx.query<{ most: number }>({
    name: 'organization.hold_tenants',
    text: `select least(coalesce(o.max_tenants, $2::int), (select p.max_tenants from billing_plans p
             where p.id = o.billing_plan_id)) as most
           from organizations o where o.id = $1 for no key update`,
    values: [organizationId, limit],
  })
  const most = rows[0]?.most ?? 0
  const { rows: full } = await tx.query({
    name: 'organization.full_of_tenants',
    text: `select where (select count(*) from (select from tenants where organization_id = $1
             limit $2) t) >= $2`,
    values: [organizationId, most],
  })
  return full.length === 0 ? undefined : most
}

/** Locks organizations until the transaction ends, in one order. @returns whether all of them are active. */
export async function holdActiveOrganizations(
  tx: Transaction,
  ids: readonly string[],
): Promise<boolean> {
  const { rows } = await tx.query<{ status: string }>({
    name: 'organization.hold_all',
    text: `select status from organizations where id = any($1::uuid[]) order by id for no key update`,
    values: [ids],
  })
  return rows.length === ids.length && rows.every(({ status }) => status === 'active')
}

type TransferStatus = 'pending' | 'accepted' | 'canceled' | 'declined' | 'expired'

export type TransferRow = {
  readonly id: string
  readonly tenantId: string
  readonly tenantName: string
  readonly fromOrganizationId: string
  readonly fromOrganizationName: string
  readonly toOrganizationId: string
  readonly toOrganizationName: string
  readonly status: TransferStatus
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly decidedAt: Date | null
}

/** An open transfer whose time is over is expired, also before a statement says so in its row. */
const TRANSFER = `select x.id, x.tenant_id as "tenantId", t.name as "tenantName",
    x.from_organization_id as "fromOrganizationId", f.name as "fromOrganizationName",
    x.to_organization_id as "toOrganizationId", o.name as "toOrganizationName",
    case when x.status = 'pending' and x.expires_at <= $1 then 'expired' else x.status end as status,
    x.created_at as "createdAt", x.expires_at as "expiresAt", x.decided_at as "decidedAt"
  from tenant_transfers x join tenants t on t.id = x.tenant_id
    join organizations f on f.id = x.from_organization_id
    join organizations o on o.id = x.to_organization_id`

/** Opens a transfer. False when the tenant has an open one, or is no longer of the organization. */
export async function insertTransfer(
  tx: Transaction,
  transfer: Pick<
    TransferRow,
    'id' | 'tenantId' | 'fromOrganizationId' | 'toOrganizationId' | 'createdAt' | 'expiresAt'
  >,
): Promise<boolean> {
  const { id, tenantId, fromOrganizationId, toOrganizationId, createdAt, expiresAt } = transfer
  await tx.query({
    name: 'tenant_transfer.expire',
    text: `update tenant_transfers set status = 'expired', decided_at = expires_at
           where tenant_id = $1 and status = 'pending' and expires_at <= $2`,
    values: [tenantId, createdAt],
  })
  return isChanged(tx, {
    name: 'tenant_transfer.insert',
    text: `insert into tenant_transfers (id, tenant_id, from_organization_id, to_organization_id, status,
             created_at, expires_at)
           select $2, t.id, $3, $4, 'pending', $5, $6 from tenants t
           where t.id = $1 and t.organization_id = $3
           on conflict do nothing`,
    values: [tenantId, id, fromOrganizationId, toOrganizationId, createdAt, expiresAt],
  })
}

/** A transfer from or to the organization. */
export const findTransfer = (tx: Transaction, organizationId: string, id: string, now: Date) =>
  firstRow<TransferRow>(tx, {
    name: 'tenant_transfer.find',
    text: `${TRANSFER} where x.id = $3 and $2 in (x.from_organization_id, x.to_organization_id)`,
    values: [now, organizationId, id],
  })

/** A page of the transfers from and to the organization, newest first. */
export const listTransfers = (
  tx: Transaction,
  organizationId: string,
  now: Date,
  limit: number,
  after: { readonly createdAt: Date; readonly id: string } | null,
) =>
  allRows<TransferRow>(tx, {
    name: 'tenant_transfer.list',
    text: `${TRANSFER} where $2 in (x.from_organization_id, x.to_organization_id)
             and ($4::timestamptz is null or (x.created_at, x.id) < ($4, $5::uuid))
           order by x.created_at desc, x.id desc limit $3`,
    values: [now, organizationId, limit, after?.createdAt ?? null, after?.id ?? null],
  })

/**
 * Moves the tenant, once: only an open transfer from the organization that still has the tenant does so. Ends the
 * sessions of agents in the tenant, because their roles come from the organization.
 * @returns whether it moved.
 */
export async function acceptTransfer(
  tx: Transaction,
  { id, tenantId, fromOrganizationId, toOrganizationId }: TransferRow,
  now: Date,
): Promise<boolean> {
  const { rowCount } = await tx.query({
    name: 'tenant_transfer.accept',
    text: `update tenant_transfers x set status = 'accepted', decided_at = $3
           from tenants t
           where x.id = $2 and x.tenant_id = $1 and x.status = 'pending' and x.expires_at > $3
             and t.id = x.tenant_id and t.organization_id = x.from_organization_id`,
    values: [tenantId, id, now],
  })
  if (rowCount !== 1) return false
  await tx.query({
    name: 'tenant.move',
    // suspended_at is written so that the triggers of 0047_suspension take status and contact from the new organization.
    text: `update tenants set organization_id = $3, suspended_at = suspended_at, updated_at = $4
           where id = $1 and organization_id = $2`,
    values: [tenantId, fromOrganizationId, toOrganizationId, now],
  })
  await tx.query({
    name: 'session.end_of_transfer',
    text: `update sessions set ended_at = $2, ended_reason = 'tenant_transferred'
           where tenant_id = $1 and subject_type = 'agent' and ended_at is null`,
    values: [tenantId, now],
  })
  return true
}

/** Closes an open transfer. False when it is not open. */
export const closeTransfer = (
  tx: Transaction,
  { id, tenantId }: TransferRow,
  status: 'canceled' | 'declined',
  now: Date,
) =>
  isChanged(tx, {
    name: 'tenant_transfer.close',
    text: `update tenant_transfers set status = $3, decided_at = $4
           where id = $2 and tenant_id = $1 and status = 'pending' and expires_at > $4`,
    values: [tenantId, id, status, now],
  })
