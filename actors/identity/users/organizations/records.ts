/** Organizations and environments as their members see them, and their name and support contact. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import {
  listMemberships,
  listPersonOrganizations,
  updateOrganizationRow,
} from '../../../../storage/identity/organizations.js'
import {
  findTenant,
  listTenantRows,
  type TenantRow,
  updateTenantRow,
} from '../../../../storage/identity/tenants.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import type { Caller } from '../../../domain/audit.js'
import { isUuid } from '../../../domain/ids.js'
import type { ListCursor } from '../../../domain/paging.js'
import { changedName, type NameRefused, refusedName } from '../../../domain/shown-names.js'
import { listed } from '../../../platform/paging.js'
import { recordAudit } from '../../../platform/record-audit.js'
import { ADMINS, inOrganization, memberOf, membershipOf, tokenFault } from './access.js'
import { tenantRecord } from './creation.js'
import type { Handling, OrganizationsTools } from './needs.js'
import type { OfTenant, OrganizationsProtocol, RecordChange } from './protocol.js'
import { boundTo } from './rules.js'

const UNKNOWN_TENANT = { tag: 'unknown_tenant' } as const

export const listOrganizations: Handling<'listOrganizations'> = async (needs, message, context) => {
  const { caller, limit, after } = message
  const fault = await tokenFault(needs, caller, context)
  if (fault !== undefined) return fault
  const rows = await needs.database.system(
    (tx) => memberships(tx, caller, limit + 1, after),
    context,
  )
  return listed(rows, limit)
}

async function memberships(
  tx: Transaction,
  { principal }: Caller,
  limit: number,
  after: ListCursor | null,
) {
  const organizationId = boundTo(principal)
  const member = await memberOf(tx, principal)
  if (member === undefined) return []
  if (member.memberType === 'agent')
    return listMemberships(tx, member, organizationId, limit, after)
  const within = { accountId: member.memberId, tenantId: principal.tenantId, organizationId }
  return listPersonOrganizations(tx, within, limit, after)
}

export const listTenants: Handling<'listTenants'> = async (needs, message, context) => {
  const { caller, organizationId, limit, after } = message
  const fault = await tokenFault(needs, caller, context)
  if (fault !== undefined) return fault
  return needs.database.system(async (tx) => {
    if ((await membershipOf(tx, message)) === undefined) return { tag: 'unknown_organization' }
    const rows = await listTenantRows(tx, organizationId, limit + 1, after)
    return listed(rows.map(tenantRecord), limit)
  }, context)
}

export const readOrganization: Handling<'readOrganization'> = (needs, message, context) =>
  inOrganization(needs, message, ADMINS, context, async (_tx, organization) => ({
    tag: 'found',
    organization,
  }))

export const updateOrganization: Handling<'updateOrganization'> = (needs, message, context) =>
  inOrganization(needs, message, ADMINS, context, async (tx, before) => {
    const change = changeOf(message, before)
    if ('tag' in change) return change
    const now = needs.clock.now()
    await updateOrganizationRow(tx, before.id, change, now)
    const organization = { ...before, ...stated(change), updatedAt: now }
    recordAudit(tx, needs, message.caller, context, {
      type: 'org.updated',
      resource: { type: 'organization', id: before.id },
      data: { before: wire(before), after: wire(organization) },
    })
    return { tag: 'found', organization }
  })

export const readTenant: Handling<'readTenant'> = (needs, message, context) =>
  ofTenant<never>(needs, message, context, async (_tx, tenant) => tenant)

export const updateTenant: Handling<'updateTenant'> = async (needs, message, context) => {
  const outcome = await ofTenant<NameRefused>(needs, message, context, async (tx, before) => {
    const change = changeOf(message, before)
    if ('tag' in change) return change
    const now = needs.clock.now()
    await updateTenantRow(tx, before.id, change, now)
    const tenant = { ...before, ...stated(change), updatedAt: now }
    recordAudit(tx, needs, message.caller, context, {
      type: 'org.tenant.updated',
      resource: { type: 'tenant', id: before.id },
      data: { before: wire(before), after: wire(tenant) },
    })
    return tenant
  })
  if (outcome.tag === 'found') needs.tenants.send('forget', { tenantId: message.tenantId })
  return outcome
}

/** The tenant as members of its organization see it. */
async function ofTenant<R extends NameRefused>(
  needs: OrganizationsTools,
  { caller, tenantId }: OfTenant,
  context: MessageContext,
  work: (tx: Transaction, tenant: TenantRow) => Promise<TenantRow | R>,
): Promise<R | OrganizationsProtocol['readTenant']['reply']> {
  const named = isUuid(tenantId)
    ? await needs.database.system((tx) => findTenant(tx, tenantId), context)
    : undefined
  const organizationId = named?.organizationId ?? null
  if (named === undefined || organizationId === null) return UNKNOWN_TENANT
  const within = { caller, organizationId }
  const outcome = await inOrganization(needs, within, ADMINS, context, async (tx) => {
    const done = await work(tx, named)
    return 'tag' in done ? done : { tag: 'found' as const, tenant: tenantRecord(done) }
  })
  return outcome.tag === 'unknown_organization' ? UNKNOWN_TENANT : outcome
}

/** The change with the name as it is stored. */
function changeOf(
  { name, supportContact }: RecordChange,
  before: { readonly name: string },
): RecordChange | NameRefused {
  const kept = name === undefined ? undefined : changedName(name, before.name)
  return kept === null ? refusedName('/name') : { name: kept, supportContact }
}

function stated({ name, supportContact }: RecordChange) {
  return {
    ...(name === undefined ? {} : { name }),
    ...(supportContact === undefined ? {} : { supportContact }),
  }
}

function wire({ name, supportContact }: { name: string; supportContact: string | null }) {
  return { name, support_contact: supportContact }
}
