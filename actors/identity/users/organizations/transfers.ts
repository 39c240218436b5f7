/**
 * Transfers of a tenant to another organization. An owner of the tenant's organization, who is an owner of the other
 * one too, offers it. An owner of the other organization accepts it, once. Users, agents, applications and everything
 * else in the tenant move with it.
 */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import {
  acceptTransfer,
  closeTransfer,
  findTransfer,
  holdActiveOrganizations,
  insertTransfer,
  listTransfers,
  type TransferRow,
} from '../../../../storage/identity/organization/transfers.js'
import { fullOfTenants } from '../../../../storage/identity/organization/policies.js'
import { findTenant } from '../../../../storage/identity/tenants.js'
import { idempotently, kept } from '../../../../storage/platform/idempotency.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { actorOf, doneBy } from '../../../domain/audit.js'
import {
  catalogued,
  type EventContext,
  eventContext,
  type EventType,
} from '../../../domain/events.js'
import { isUuid } from '../../../domain/ids.js'
import { listed } from '../../../platform/paging.js'
import { inOrganization, offFault, OWNERS } from './access.js'
import type { Handling, OrganizationsTools } from './needs.js'
import type { OfTransfer, StartTransfer } from './protocol.js'

const UNKNOWN_TENANT = { tag: 'unknown_tenant' } as const
const UNKNOWN_TRANSFER = { tag: 'unknown_transfer' } as const
/** A transfer must not lift the suspension of an organization. */
const SUSPENDED = { tag: 'suspended', what: 'organization' } as const

export const startTenantTransfer: Handling<'startTenantTransfer'> = async (
  needs,
  message,
  context,
) => {
  const { caller, tenantId, organizationId } = message
  const off = offFault(needs, caller)
  if (off !== undefined) return off
  const tenant = isUuid(tenantId)
    ? await needs.database.system((tx) => findTenant(tx, tenantId), context)
    : undefined
  const from = tenant?.organizationId ?? null
  if (from === null) return UNKNOWN_TENANT
  const asOwner = (id: string) =>
    inOrganization(needs, { caller, organizationId: id }, OWNERS, context, async () => ({
      tag: 'owner' as const,
    }))
  const giving = await asOwner(from)
  // A caller without access to the organization of the tenant must not learn that the tenant exists.
  if (giving.tag === 'unknown_organization') return UNKNOWN_TENANT
  if (giving.tag !== 'owner') return giving
  if (from === organizationId) return { tag: 'unknown_organization' }
  const receiving = await asOwner(organizationId)
  if (receiving.tag !== 'owner') return receiving
  return inOrganization(needs, { caller, organizationId: from }, OWNERS, context, (tx) =>
    idempotently(
      tx,
      message.idempotency,
      () => offer(tx, needs, message, from, context),
      kept('transfer'),
    ),
  )
}

async function offer(
  tx: Transaction,
  needs: OrganizationsTools,
  { caller, tenantId, organizationId }: StartTransfer,
  from: string,
  context: MessageContext,
) {
  if (!(await holdActiveOrganizations(tx, [from, organizationId]))) return SUSPENDED
  const now = needs.clock.now()
  const opened = {
    id: needs.random.uuid(),
    tenantId,
    fromOrganizationId: from,
    toOrganizationId: organizationId,
    createdAt: now,
    expiresAt: new Date(now.getTime() + needs.limits.transfer_ttl_secs * 1000),
  }
  if (!(await insertTransfer(tx, opened))) return { tag: 'transfer_pending' } as const
  const transfer = (await findTransfer(tx, from, opened.id, now))!
  append(tx, 'org.tenant.transfer_requested', transfer, eventContext(needs, caller, context))
  return { tag: 'transfer', transfer, replayed: false } as const
}

export const listTenantTransfers: Handling<'listTenantTransfers'> = (needs, message, context) =>
  inOrganization(needs, message, OWNERS, context, async (tx, { id }) => {
    const { limit, after } = message
    const rows = await listTransfers(tx, id, needs.clock.now(), limit + 1, after)
    return listed(rows, limit)
  })

export const acceptTenantTransfer: Handling<'acceptTenantTransfer'> = async (
  needs,
  message,
  context,
) => {
  const { caller, organizationId } = message
  const off = offFault(needs, caller)
  if (off !== undefined) return off
  const outcome = await onTransfer(needs, message, context, async (tx, found) => {
    // The giving organization sees the transfer and cannot accept it.
    if (found.toOrganizationId !== organizationId) return UNKNOWN_TRANSFER
    if (found.status !== 'pending') return closed(found.status)
    const both = [found.fromOrganizationId, found.toOrganizationId]
    if (!(await holdActiveOrganizations(tx, both))) return SUSPENDED
    const most = await fullOfTenants(tx, organizationId, needs.limits.max_tenants)
    if (most !== undefined) return { tag: 'limit_reached', what: 'environments', most } as const
    const now = needs.clock.now()
    if (!(await acceptTransfer(tx, found, now))) {
      const status = (await findTransfer(tx, organizationId, found.id, now))?.status
      return closed(status ?? 'canceled')
    }
    const transfer = { ...found, status: 'accepted' as const, decidedAt: now }
    append(tx, 'org.tenant.transferred', transfer, eventContext(needs, caller, context))
    return { tag: 'transfer' as const, transfer, replayed: false }
  })
  if (outcome.tag === 'transfer')
    needs.tenants.send('forget', { tenantId: outcome.transfer.tenantId })
  return outcome
}

export const closeTenantTransfer: Handling<'closeTenantTransfer'> = (needs, message, context) =>
  onTransfer(needs, message, context, async (tx, found) => {
    const isReceiver = found.toOrganizationId === message.organizationId
    const status = isReceiver ? ('declined' as const) : ('canceled' as const)
    if (!(await closeTransfer(tx, found, status, needs.clock.now()))) return closed(found.status)
    const by = eventContext(needs, message.caller, context)
    append(tx, 'org.tenant.transfer_closed', found, by)
    return { tag: 'closed' }
  })

const closed = (status: TransferRow['status']) => ({ tag: 'transfer_closed', status }) as const

/** Runs an owner's operation on a transfer from or to the organization. */
function onTransfer<T>(
  needs: OrganizationsTools,
  message: OfTransfer,
  context: MessageContext,
  work: (tx: Transaction, transfer: TransferRow) => Promise<T>,
) {
  const { organizationId, transferId } = message
  return inOrganization(needs, message, OWNERS, context, async (tx) => {
    const found = isUuid(transferId)
      ? await findTransfer(tx, organizationId, transferId, needs.clock.now())
      : undefined
    return found === undefined ? UNKNOWN_TRANSFER : work(tx, found)
  })
}

/** The event belongs to the tenant that moves. A user is named only in the tenant of their token. */
function append(
  tx: Transaction,
  type: Extract<EventType, `org.tenant.transfer${string}`>,
  { id, tenantId, fromOrganizationId, toOrganizationId }: TransferRow,
  { caller, random, now, requestId }: EventContext,
): void {
  const { principal } = caller
  const isNamed = principal.subjectType === 'agent' || principal.tenantId === tenantId
  const actor = isNamed ? actorOf(caller) : { type: 'organization', id: toOrganizationId }
  const fields = {
    transfer_id: id,
    from_organization_id: fromOrganizationId,
    to_organization_id: toOrganizationId,
  }
  const about = { actor, resource: { type: 'tenant', id: tenantId }, requestId }
  const stamp = { id: random.uuid(), tenantId, occurredAt: now }
  const event = { ...stamp, ...catalogued(type, about, fields) }
  appendEvents(tx, [isNamed ? { ...event, audit: doneBy(caller) } : event])
}
