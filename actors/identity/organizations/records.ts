/** Name and support contact of organizations and environments. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { updateOrganization } from '../../../storage/identity/organizations.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { findTenant, type TenantRow, updateTenant } from '../../../storage/identity/tenants.js'
import { type AuditOnlyType, audited, type Caller } from '../../domain/audit.js'
import { isUuid } from '../../domain/ids.js'
import { changedName, type NameRefused, refusedName } from '../../domain/shown-names.js'
import type { Access } from './access.js'
import { tenantRecord } from './creation.js'
import type { OfOrganization, OfTenant, OrganizationsProtocol, RecordChange } from './protocol.js'

const UNKNOWN_TENANT = { tag: 'unknown_tenant' } as const
const READERS = ['owner', 'admin'] as const

export type RecordsNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly access: Access
  /** Drops this process's cache of a tenant. */
  readonly changed: (tenantId: string) => void
}

type Outcome<K extends keyof OrganizationsProtocol> = Promise<OrganizationsProtocol[K]['reply']>

export function records({ database, clock, random, access, changed }: RecordsNeeds) {
  /** The tenant as members of its organization see it. */
  async function inTenant<R extends NameRefused>(
    { caller, tenantId }: OfTenant,
    context: MessageContext,
    work: (tx: Transaction, tenant: TenantRow) => Promise<TenantRow | R>,
  ): Promise<R | Awaited<Outcome<'readTenant'>>> {
    const named = isUuid(tenantId)
      ? await database.system((tx) => findTenant(tx, tenantId), { signal: context.signal })
      : undefined
    const organizationId = named?.organizationId ?? null
    if (named === undefined || organizationId === null) return UNKNOWN_TENANT
    const outcome = await access.inOrganization(
      caller,
      organizationId,
      READERS,
      context,
      async (tx) => {
        const done = await work(tx, named)
        return 'tag' in done ? done : { tag: 'found' as const, tenant: tenantRecord(done) }
      },
    )
    return outcome.tag === 'unknown_organization' ? UNKNOWN_TENANT : outcome
  }

  function record(
    tx: Transaction,
    caller: Caller,
    type: AuditOnlyType,
    resource: { readonly type: string; readonly id: string },
    data: Readonly<Record<string, unknown>>,
    { requestId }: MessageContext,
  ): void {
    appendAudit(tx, [
      audited(caller, {
        id: random.uuid(),
        tenantId: caller.principal.tenantId,
        type,
        occurredAt: clock.now(),
        resource,
        requestId,
        data,
      }),
    ])
  }

  return {
    async readOrganization(
      { caller, organizationId }: OfOrganization,
      context: MessageContext,
    ): Outcome<'readOrganization'> {
      return access.inOrganization(
        caller,
        organizationId,
        READERS,
        context,
        async (_tx, organization) => ({ tag: 'found' as const, organization }),
      )
    },

    async updateOrganization(
      { caller, organizationId, name, supportContact }: OfOrganization & RecordChange,
      context: MessageContext,
    ): Outcome<'updateOrganization'> {
      return access.inOrganization(caller, organizationId, READERS, context, async (tx, before) => {
        const kept = nameIn(name, before.name)
        if (kept === null) return refusedName('/name')
        const change = { name: kept, supportContact }
        const now = clock.now()
        await updateOrganization(tx, organizationId, change, now)
        const after = { ...before, ...changesOf(change), updatedAt: now }
        const resource = { type: 'organization', id: organizationId }
        record(
          tx,
          caller,
          'org.updated',
          resource,
          { before: wire(before), after: wire(after) },
          context,
        )
        return { tag: 'found' as const, organization: after }
      })
    },

    readTenant: (message: OfTenant, context: MessageContext): Outcome<'readTenant'> =>
      inTenant<never>(message, context, async (_tx, tenant) => tenant),

    async updateTenant(
      message: OfTenant & RecordChange,
      context: MessageContext,
    ): Outcome<'updateTenant'> {
      const { caller, tenantId, name, supportContact } = message
      const outcome = await inTenant<NameRefused>(message, context, async (tx, before) => {
        const kept = nameIn(name, before.name)
        if (kept === null) return refusedName('/name')
        const change = { name: kept, supportContact }
        const now = clock.now()
        await updateTenant(tx, tenantId, change, now)
        const after = { ...before, ...changesOf(change), updatedAt: now }
        const resource = { type: 'tenant', id: tenantId }
        const data = { before: wire(before), after: wire(after) }
        record(tx, caller, 'org.tenant.updated', resource, data, context)
        return after
      })
      if (outcome.tag === 'found') changed(tenantId)
      return outcome
    },
  }
}

/** Undefined: the name does not change. Null: it may not be one. */
function nameIn(name: string | undefined, before: string): string | undefined | null {
  return name === undefined ? undefined : changedName(name, before)
}

function changesOf({ name, supportContact }: RecordChange) {
  return {
    ...(name === undefined ? {} : { name }),
    ...(supportContact === undefined ? {} : { supportContact }),
  }
}

function wire({ name, supportContact }: { name: string; supportContact: string | null }) {
  return { name, support_contact: supportContact }
}
