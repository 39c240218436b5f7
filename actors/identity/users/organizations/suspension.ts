/**
 * Suspension of organizations, tenants and accounts by an operator of the deployment. Nothing is deleted or revoked:
 * requests are refused while suspended, and reactivation restores everything. The control plane's audit chain names the
 * operator. The affected tenants get an event without a name.
 */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import { tenantIdsOf } from '../../../../storage/identity/organization-members.js'
import { findOrganization } from '../../../../storage/identity/organizations.js'
import {
  findAccountRecord,
  switchAccount,
  switchOrganization,
  switchTenantRow,
  usersOfAccount,
} from '../../../../storage/identity/suspensions.js'
import { findTenant } from '../../../../storage/identity/tenants.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import { catalogued, type NewEvent } from '../../../domain/events.js'
import { isUuid } from '../../../domain/ids.js'
import {
  appendOrganizationEvent,
  DEPLOYMENT,
  NOTIFIED_TENANTS_MAX,
} from '../../../platform/organization-events.js'
import { recordAudit } from '../../../platform/record-audit.js'
import { tenantRecord } from './creation.js'
import type { Handling, OrganizationsTools } from './needs.js'
import type { ById, OrganizationsProtocol } from './protocol.js'

const UNKNOWN_ORGANIZATION = { tag: 'unknown_organization' } as const
const UNKNOWN_TENANT = { tag: 'unknown_tenant' } as const
const UNKNOWN_ACCOUNT = { tag: 'unknown_account' } as const

type Status = 'active' | 'suspended'
type Outcome<K extends keyof OrganizationsProtocol> = Promise<OrganizationsProtocol[K]['reply']>

/** The end of an event type. */
const DONE = { suspended: 'suspended', active: 'reactivated' } as const

export const suspendOrganization: Handling<'suspendOrganization'> = (...asked) =>
  setOrganization('suspended', ...asked)
export const reactivateOrganization: Handling<'reactivateOrganization'> = (...asked) =>
  setOrganization('active', ...asked)
export const suspendTenant: Handling<'suspendTenant'> = (...asked) =>
  setTenant('suspended', ...asked)
export const reactivateTenant: Handling<'reactivateTenant'> = (...asked) =>
  setTenant('active', ...asked)
export const suspendAccount: Handling<'suspendAccount'> = (...asked) =>
  setAccount('suspended', ...asked)
export const reactivateAccount: Handling<'reactivateAccount'> = (...asked) =>
  setAccount('active', ...asked)

// Not cancelled with the request: a suspension must not depend on the operator's connection.
async function setOrganization(
  to: Status,
  needs: OrganizationsTools,
  { caller, id }: ById,
  context: MessageContext,
): Outcome<'suspendOrganization'> {
  if (!isUuid(id)) return UNKNOWN_ORGANIZATION
  const { clock, random } = needs
  const now = clock.now()
  const done = await needs.database.system(async (tx) => {
    const switched = await switchOrganization(tx, id, to, now)
    if (switched === undefined) return undefined
    const tenantIds = await tenantIdsOf(tx, id, NOTIFIED_TENANTS_MAX)
    tx.forget([id, ...tenantIds])
    if (switched.changed) {
      const resource = { type: 'organization', id }
      const type = `admin.organization.${DONE[to]}` as const
      recordAudit(tx, needs, caller, context, { type, resource })
      await appendOrganizationEvent(tx, random, {
        type: `org.${DONE[to]}`,
        organizationId: id,
        fields: {},
        by: null,
        now,
        requestId: context.requestId,
      })
    }
    return { tenantIds, organization: await findOrganization(tx, id) }
  })
  if (done?.organization === undefined) return UNKNOWN_ORGANIZATION
  forgetTenants(needs, done.tenantIds)
  return { tag: 'found', organization: { ...done.organization, role: null } }
}

async function setTenant(
  to: Status,
  needs: OrganizationsTools,
  { caller, id }: ById,
  context: MessageContext,
): Outcome<'suspendTenant'> {
  if (!isUuid(id)) return UNKNOWN_TENANT
  const { clock, random } = needs
  const now = clock.now()
  const tenant = await needs.database.system(async (tx) => {
    const switched = await switchTenantRow(tx, id, to, now)
    if (switched === undefined) return undefined
    tx.forget([id])
    if (switched.changed) {
      const resource = { type: 'tenant', id }
      const recorded = `admin.tenant.${DONE[to]}` as const
      recordAudit(tx, needs, caller, context, { type: recorded, resource })
      const type = `org.tenant.${DONE[to]}` as const
      const about = { actor: DEPLOYMENT, resource, requestId: context.requestId }
      const event = catalogued(type, about, {})
      appendEvents(tx, [{ id: random.uuid(), tenantId: id, occurredAt: now, ...event }])
    }
    return findTenant(tx, id)
  })
  if (tenant === undefined) return UNKNOWN_TENANT
  forgetTenants(needs, [id])
  return { tag: 'found', tenant: tenantRecord(tenant) }
}

async function setAccount(
  to: Status,
  needs: OrganizationsTools,
  { caller, id }: ById,
  context: MessageContext,
): Outcome<'suspendAccount'> {
  if (!isUuid(id)) return UNKNOWN_ACCOUNT
  const now = needs.clock.now()
  const account = await needs.database.system(async (tx) => {
    const switched = await switchAccount(tx, id, to, now)
    if (switched === undefined) return undefined
    const users = await usersOfAccount(tx, id, NOTIFIED_TENANTS_MAX)
    tx.forget(users.map(({ sub }) => sub))
    if (switched.changed) {
      const resource = { type: 'account', id }
      const type = `admin.account.${DONE[to]}` as const
      recordAudit(tx, needs, caller, context, { type, resource })
      const events = users.map((user) => userEvent(needs.random, user, to, now, context))
      appendEvents(tx, events)
    }
    return findAccountRecord(tx, { id })
  })
  return account === undefined ? UNKNOWN_ACCOUNT : { tag: 'found', account }
}

/** This process drops its caches immediately. Other processes are notified by the commit. */
function forgetTenants({ tenants }: OrganizationsTools, tenantIds: readonly string[]): void {
  for (const tenantId of tenantIds) tenants.send('forget', { tenantId })
}

/** The event in a tenant: its user is suspended or reactivated. */
function userEvent(
  random: Random,
  user: Awaited<ReturnType<typeof usersOfAccount>>[number],
  to: Status,
  now: Date,
  { requestId }: MessageContext,
): NewEvent {
  const { tenantId, id, email, fixture } = user
  const about = { actor: DEPLOYMENT, resource: { type: 'tenant_user', id }, requestId }
  const status = to === 'suspended' ? 'suspended' : user.status
  const type = to === 'suspended' ? 'tenant_user.suspended' : 'tenant_user.activated'
  return {
    id: random.uuid(),
    tenantId,
    occurredAt: now,
    ...catalogued(type, about, { email, status, fixture }),
  }
}
