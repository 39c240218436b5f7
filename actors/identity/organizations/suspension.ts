/**
 * Suspension of organizations, tenants and accounts by an operator of the deployment. Nothing is deleted or revoked:
 * requests are refused while suspended, and reactivation restores everything. The control plane's audit chain names the
 * operator. The affected tenants get an event without a name.
 */
import type { ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { findOrganization, listOrganizations } from '../../../storage/identity/organizations.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import {
  findAccountRecord,
  switchAccount,
  switchOrganization,
  switchTenant,
  usersOfAccount,
} from '../../../storage/identity/suspensions.js'
import { tenantIdsOf } from '../../../storage/identity/organization-members.js'
import { findTenant, listEnvironments } from '../../../storage/identity/tenants.js'
import { lookedUp } from '../../../storage/identity/email-keys.js'
import { type AuditOnlyType, audited } from '../../domain/audit.js'
import { eventData, type NewEvent } from '../../domain/events.js'
import { isUuid } from '../../domain/ids.js'
import type { TenantsProtocol } from '../tenants/protocol.js'
import type { TokensProtocol } from '../../oauth/tokens/protocol.js'
import { tenantRecord } from './creation.js'
import { page } from '../../platform/paging.js'
import type { Page } from '../../domain/paging.js'
import type { ById, OrganizationsProtocol } from './protocol.js'
import {
  appendOrganizationEvent,
  DEPLOYMENT,
  NOTIFIED_TENANTS_MAX,
} from '../../platform/organization-events.js'

const UNKNOWN_ORGANIZATION = { tag: 'unknown_organization' } as const
const UNKNOWN_TENANT = { tag: 'unknown_tenant' } as const
const UNKNOWN_ACCOUNT = { tag: 'unknown_account' } as const

type Status = 'active' | 'suspended'

/** Event types per kind: one for suspension, one for reactivation. */
const AUDITED = {
  organization: {
    suspended: 'admin.organization.suspended',
    active: 'admin.organization.reactivated',
  },
  tenant: { suspended: 'admin.tenant.suspended', active: 'admin.tenant.reactivated' },
  account: { suspended: 'admin.account.suspended', active: 'admin.account.reactivated' },
} as const satisfies Record<string, Record<Status, AuditOnlyType>>

export type SuspensionNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly tenants: ActorRef<TenantsProtocol>
  readonly tokens: ActorRef<TokensProtocol>
}

type Outcome<K extends keyof OrganizationsProtocol> = Promise<OrganizationsProtocol[K]['reply']>

export function suspension({ database, clock, random, tenants, tokens }: SuspensionNeeds) {
  /** This process drops its caches at once. Other processes are notified by the commit. */
  function forget(ids: readonly string[], tenantIds: readonly string[]): void {
    tokens.send('invalidate', { ids: [...ids, ...tenantIds] })
    for (const tenantId of tenantIds) tenants.send('forget', { tenantId })
  }

  function record(
    tx: Transaction,
    { caller, id }: ById,
    to: Status,
    kind: keyof typeof AUDITED,
    now: Date,
    { requestId }: MessageContext,
  ): void {
    appendAudit(tx, [
      audited(caller, {
        id: random.uuid(),
        tenantId: caller.principal.tenantId,
        type: AUDITED[kind][to],
        occurredAt: now,
        resource: { type: kind, id },
        requestId,
      }),
    ])
  }

  // Not cancelled with the request: a suspension must not depend on the operator's connection.
  async function switchOrganizationTo(
    message: ById,
    to: Status,
    context: MessageContext,
  ): Outcome<'suspendOrganization'> {
    const { id } = message
    if (!isUuid(id)) return UNKNOWN_ORGANIZATION
    const now = clock.now()
    const done = await database.system(async (tx) => {
      const switched = await switchOrganization(tx, id, to, now)
      if (switched === undefined) return undefined
      const tenantIds = await tenantIdsOf(tx, id, NOTIFIED_TENANTS_MAX)
      if (switched.changed) {
        record(tx, message, to, 'organization', now, context)
        const type = to === 'suspended' ? 'org.suspended' : 'org.reactivated'
        const { requestId } = context
        const event = {
          type,
          organizationId: id,
          fields: {},
          by: null,
          now,
          requestId,
        } as const
        await appendOrganizationEvent(tx, random, event)
      }
      return { tenantIds, organization: await findOrganization(tx, id) }
    })
    if (done?.organization === undefined) return UNKNOWN_ORGANIZATION
    forget([id], done.tenantIds)
    return { tag: 'found', organization: { ...done.organization, role: null } }
  }

  async function switchTenantTo(
    message: ById,
    to: Status,
    context: MessageContext,
  ): Outcome<'suspendTenant'> {
    const { id } = message
    if (!isUuid(id)) return UNKNOWN_TENANT
    const now = clock.now()
    const tenant = await database.system(async (tx) => {
      const switched = await switchTenant(tx, id, to, now)
      if (switched === undefined) return undefined
      if (switched.changed) {
        record(tx, message, to, 'tenant', now, context)
        const resource = { type: 'tenant', id }
        const type = to === 'suspended' ? 'org.tenant.suspended' : 'org.tenant.reactivated'
        const data = eventData({ actor: DEPLOYMENT, resource, requestId: context.requestId }, {})
        appendEvents(tx, [{ id: random.uuid(), tenantId: id, type, occurredAt: now, data }])
      }
      return findTenant(tx, id)
    })
    if (tenant === undefined) return UNKNOWN_TENANT
    forget([], [id])
    return { tag: 'found', tenant: tenantRecord(tenant) }
  }

  async function switchAccountTo(
    message: ById,
    to: Status,
    context: MessageContext,
  ): Outcome<'suspendAccount'> {
    const { id } = message
    if (!isUuid(id)) return UNKNOWN_ACCOUNT
    const now = clock.now()
    const done = await database.system(async (tx) => {
      const switched = await switchAccount(tx, id, to, now)
      if (switched === undefined) return undefined
      const users = await usersOfAccount(tx, id, NOTIFIED_TENANTS_MAX)
      if (switched.changed) {
        record(tx, message, to, 'account', now, context)
        appendEvents(
          tx,
          users.map((user) => userEvent(random, user, to, now, context)),
        )
      }
      return { users, account: await findAccountRecord(tx, { id }) }
    })
    if (done?.account === undefined) return UNKNOWN_ACCOUNT
    forget(
      done.users.map(({ sub }) => sub),
      [],
    )
    return { tag: 'found', account: done.account }
  }

  return {
    suspendOrganization: (message: ById, context: MessageContext) =>
      switchOrganizationTo(message, 'suspended', context),
    reactivateOrganization: (message: ById, context: MessageContext) =>
      switchOrganizationTo(message, 'active', context),
    suspendTenant: (message: ById, context: MessageContext) =>
      switchTenantTo(message, 'suspended', context),
    reactivateTenant: (message: ById, context: MessageContext) =>
      switchTenantTo(message, 'active', context),
    suspendAccount: (message: ById, context: MessageContext) =>
      switchAccountTo(message, 'suspended', context),
    reactivateAccount: (message: ById, context: MessageContext) =>
      switchAccountTo(message, 'active', context),

    async listDeploymentOrganizations(
      { limit, after }: Page,
      { signal }: MessageContext,
    ): Outcome<'listDeploymentOrganizations'> {
      const rows = await database.system((tx) => listOrganizations(tx, limit + 1, after), {
        signal,
      })
      const { items, next } = page(rows, limit)
      const organizations = items.map((one) => ({ ...one, role: null }))
      return { tag: 'listed', organizations, next }
    },

    async listDeploymentTenants(
      { limit, after }: Page,
      { signal }: MessageContext,
    ): Outcome<'listDeploymentTenants'> {
      const rows = await database.system((tx) => listEnvironments(tx, limit + 1, after), { signal })
      const { items, next } = page(rows, limit)
      return { tag: 'listed', tenants: items.map(tenantRecord), next }
    },

    async findAccounts(
      { email }: { email: string },
      { signal }: MessageContext,
    ): Outcome<'findAccounts'> {
      const emailKey = lookedUp(email)
      const found = await database.system((tx) => findAccountRecord(tx, { emailKey }), { signal })
      return { tag: 'listed', accounts: found === undefined ? [] : [found] }
    },

    async readAccount(
      { accountId: id }: { accountId: string },
      { signal }: MessageContext,
    ): Outcome<'readAccount'> {
      const found = isUuid(id)
        ? await database.system((tx) => findAccountRecord(tx, { id }), { signal })
        : undefined
      return found === undefined ? UNKNOWN_ACCOUNT : { tag: 'found', account: found }
    },
  }
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
  return {
    id: random.uuid(),
    tenantId,
    type: to === 'suspended' ? 'tenant_user.suspended' : 'tenant_user.activated',
    occurredAt: now,
    data: eventData(about, { email, status, fixture }),
  }
}
