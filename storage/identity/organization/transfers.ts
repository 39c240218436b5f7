/** Transfers of tenants between organizations. Every transaction here crosses tenants. */
import { ending } from '../../platform/ends/ending.js'
import { allRows, firstRow, isChanged, type Transaction } from '../../platform/sql.js'

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
  await ending(tx, 'tenant.suspended', [{ tenantId, id: tenantId }]).query({
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
