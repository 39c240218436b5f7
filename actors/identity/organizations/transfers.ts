/**
 * Transfers of a tenant to another organization. An owner of the tenant's organization, who is an owner of the other
 * one too, offers it. An owner of the other organization accepts it, once. Users, agents, applications and everything
 * else in the tenant move with it.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  acceptTransfer,
  closeTransfer,
  findTransfer,
  fullOfTenants,
  holdActiveOrganizations,
  insertTransfer,
  listTransfers,
  type TransferRow,
} from '../../../storage/identity/organization/policies.js'
import { findTenant } from '../../../storage/identity/tenants.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { actorOf, type Caller, doneBy } from '../../domain/audit.js'
import { type EventType, eventData } from '../../domain/events.js'
import { isUuid } from '../../domain/ids.js'
import type { Page } from '../../domain/paging.js'
import { page } from '../../platform/paging.js'
import type { Access } from './access.js'
import type {
  OfOrganization,
  OfTransfer,
  OrganizationsOff,
  OrganizationsProtocol,
  StartTransfer,
} from './protocol.js'
import type { OrganizationsSettings } from './settings.js'

const OWNERS = ['owner'] as const
const UNKNOWN_TENANT = { tag: 'unknown_tenant' } as const
const UNKNOWN_TRANSFER = { tag: 'unknown_transfer' } as const
/** A transfer must not lift the suspension of an organization. */
const SUSPENDED = { tag: 'suspended', what: 'organization' } as const

export type TransfersNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly access: Access
  readonly limits: OrganizationsSettings
  /** The refusal when organizations.enabled is false. */
  readonly refuseOff: (caller: Caller) => OrganizationsOff | undefined
  /** Drops this process's cache of a tenant. */
  readonly changed: (tenantId: string) => void
}

type Outcome<K extends keyof OrganizationsProtocol> = Promise<OrganizationsProtocol[K]['reply']>

export function transfers(needs: TransfersNeeds) {
  const { database, clock, random, access, limits, refuseOff, changed } = needs

  /** The event belongs to the tenant that moves. A user is named only in the tenant of their token. */
  function append(
    tx: Transaction,
    caller: Caller,
    type: EventType,
    transfer: TransferRow,
    { requestId }: MessageContext,
  ): void {
    const { id, tenantId, fromOrganizationId, toOrganizationId } = transfer
    const { principal } = caller
    const isNamed = principal.subjectType === 'agent' || principal.tenantId === tenantId
    const actor = isNamed ? actorOf(caller) : { type: 'organization', id: toOrganizationId }
    const event = {
      id: random.uuid(),
      tenantId,
      type,
      occurredAt: clock.now(),
      data: eventData(
        { actor, resource: { type: 'tenant', id: tenantId }, requestId },
        {
          transfer_id: id,
          from_organization_id: fromOrganizationId,
          to_organization_id: toOrganizationId,
        },
      ),
    }
    appendEvents(tx, [isNamed ? { ...event, audit: doneBy(caller) } : event])
  }

  /** Runs an owner's operation on a transfer from or to the organization. */
  const onTransfer = <T>(
    { caller, organizationId, transferId }: OfTransfer,
    context: MessageContext,
    work: (tx: Transaction, transfer: TransferRow) => Promise<T>,
  ) =>
    access.inOrganization(caller, organizationId, OWNERS, context, async (tx) => {
      const found = isUuid(transferId)
        ? await findTransfer(tx, organizationId, transferId, clock.now())
        : undefined
      return found === undefined ? UNKNOWN_TRANSFER : work(tx, found)
    })

  return {
    async startTenantTransfer(
      message: StartTransfer,
      context: MessageContext,
    ): Outcome<'startTenantTransfer'> {
      const { caller, tenantId, organizationId, idempotency } = message
      const { signal } = context
      const off = refuseOff(caller)
      if (off !== undefined) return off
      const tenant = isUuid(tenantId)
        ? await database.system((tx) => findTenant(tx, tenantId), { signal })
        : undefined
      const from = tenant?.organizationId ?? null
      if (tenant === undefined || from === null) return UNKNOWN_TENANT
      const asOwner = (id: string) =>
        access.inOrganization(caller, id, OWNERS, context, async () => ({ tag: 'owner' as const }))
      const giving = await asOwner(from)
      // A caller without access to the organization of the tenant must not learn that the tenant exists.
      if (giving.tag === 'unknown_organization') return UNKNOWN_TENANT
      if (giving.tag !== 'owner') return giving
      if (from === organizationId) return { tag: 'unknown_organization' }
      const receiving = await asOwner(organizationId)
      if (receiving.tag !== 'owner') return receiving
      return access.inOrganization(caller, from, OWNERS, context, (tx) =>
        idempotently(
          tx,
          idempotency,
          async () => {
            if (!(await holdActiveOrganizations(tx, [from, organizationId]))) return SUSPENDED
            const now = clock.now()
            const opened = {
              id: random.uuid(),
              tenantId,
              fromOrganizationId: from,
              toOrganizationId: organizationId,
              createdAt: now,
              expiresAt: new Date(now.getTime() + limits.transfer_ttl_secs * 1000),
            }
            if (!(await insertTransfer(tx, opened))) return { tag: 'transfer_pending' as const }
            const transfer = (await findTransfer(tx, from, opened.id, now))!
            append(tx, caller, 'org.tenant.transfer_requested', transfer, context)
            return { tag: 'transfer' as const, transfer, replayed: false }
          },
          (done) => (done.tag === 'transfer' ? done : undefined),
        ),
      )
    },

    async listTenantTransfers(
      { caller, organizationId, limit, after }: OfOrganization & Page,
      context: MessageContext,
    ): Outcome<'listTenantTransfers'> {
      return access.inOrganization(caller, organizationId, OWNERS, context, async (tx) => {
        const rows = await listTransfers(tx, organizationId, clock.now(), limit + 1, after)
        const { items, next } = page(rows, limit)
        return { tag: 'listed' as const, transfers: items, next }
      })
    },

    async acceptTenantTransfer(
      message: OfTransfer,
      context: MessageContext,
    ): Outcome<'acceptTenantTransfer'> {
      const off = refuseOff(message.caller)
      if (off !== undefined) return off
      const outcome = await onTransfer(message, context, async (tx, found) => {
        const { organizationId, caller } = message
        // The giving organization sees the transfer and cannot accept it.
        if (found.toOrganizationId !== organizationId) return UNKNOWN_TRANSFER
        if (found.status !== 'pending')
          return { tag: 'transfer_closed' as const, status: found.status }
        const both = [found.fromOrganizationId, found.toOrganizationId]
        if (!(await holdActiveOrganizations(tx, both))) return SUSPENDED
        const most = await fullOfTenants(tx, organizationId, limits.max_tenants)
        if (most !== undefined)
          return { tag: 'limit_reached' as const, what: 'environments' as const, most }
        const now = clock.now()
        if (!(await acceptTransfer(tx, found, now))) {
          const status = (await findTransfer(tx, organizationId, found.id, now))?.status
          return { tag: 'transfer_closed' as const, status: status ?? 'canceled' }
        }
        const transfer = { ...found, status: 'accepted' as const, decidedAt: now }
        append(tx, caller, 'org.tenant.transferred', transfer, context)
        return { tag: 'transfer' as const, transfer, replayed: false }
      })
      if (outcome.tag === 'transfer') changed(outcome.transfer.tenantId)
      return outcome
    },

    async closeTenantTransfer(
      message: OfTransfer,
      context: MessageContext,
    ): Outcome<'closeTenantTransfer'> {
      return onTransfer(message, context, async (tx, found) => {
        const status =
          found.toOrganizationId === message.organizationId
            ? ('declined' as const)
            : ('canceled' as const)
        if (!(await closeTransfer(tx, found, status, clock.now())))
          return { tag: 'transfer_closed' as const, status: found.status }
        append(tx, message.caller, 'org.tenant.transfer_closed', found, context)
        return { tag: 'closed' as const }
      })
    },
  }
}
