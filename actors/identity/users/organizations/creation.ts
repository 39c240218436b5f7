/** Creates organizations and environments, each in one transaction with its event. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import { findAccountEmail } from '../../../../storage/identity/accounts.js'
import {
  insertOrganization,
  insertOrganizationMember,
  type Member,
  type OrganizationRow,
} from '../../../../storage/identity/organizations.js'
import { fullOfTenants } from '../../../../storage/identity/organization/policies.js'
import { idempotently, kept } from '../../../../storage/platform/idempotency.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { insertTenantUser } from '../../../../storage/identity/tenant-users.js'
import { insertTenant, type TenantRow } from '../../../../storage/identity/tenants.js'
import { catalogued } from '../../../domain/events.js'
import { slugCandidates } from '../../../domain/tenants/slugs.js'
import { isOperatorOfDeployment, memberOf, membershipOf, offFault, tokenFault } from './access.js'
import { recordAudit } from '../../../platform/record-audit.js'
import {
  appendOrganizationEvent,
  beginFeed,
  doerOf,
} from '../../../platform/organization-events.js'
import type { Handling, OrganizationsTools } from './needs.js'
import { mayCreateTenant, slugFault } from './rules.js'
import type {
  CreateOrganization,
  CreateTenant,
  LimitReached,
  NotOperator,
  OrganizationCreated,
  TenantCreated,
  TenantRecord,
} from './protocol.js'

const SLUG_SUFFIX_BYTES = 4
const SUBJECT_BYTES = 24
const SLUG_TAKEN = { tag: 'slug_taken' } as const
const NO_ACCOUNT: NotOperator = { tag: 'not_operator', detail: 'The caller has no account.' }

export const createOrganization: Handling<'createOrganization'> = async (
  needs,
  message,
  context,
) => {
  const { caller } = message
  const fault =
    offFault(needs, caller) ??
    (await tokenFault(needs, caller, context, { unbound: true })) ??
    slugFault(message.slug)
  if (fault !== undefined) return fault
  return needs.database.system(
    (tx) =>
      idempotently(
        tx,
        message.idempotency,
        async () => {
          const member = await memberOf(tx, caller.principal)
          return member === undefined
            ? NO_ACCOUNT
            : openOrganization(tx, needs, message, member, context)
        },
        kept('created'),
      ),
    context,
  )
}

/**
 * The caller becomes the owner. The event is written to the tenant of the caller's token (the control plane, or the
 * tenant of a user), because the organization has no tenant yet.
 */
async function openOrganization(
  tx: Transaction,
  { clock, random }: OrganizationsTools,
  { caller, name, slug: wished, network: from }: CreateOrganization,
  member: Member,
  { requestId }: MessageContext,
): Promise<OrganizationCreated | typeof SLUG_TAKEN> {
  const now = clock.now()
  const { tenantId } = caller.principal
  const madeInTenantId = member.memberType === 'account' ? tenantId : undefined
  // What the deployment's operators create is their own.
  const network = isOperatorOfDeployment(caller) ? null : from
  const made = { name, createdAt: now, madeInTenantId, network }
  const organization = await firstFree(slugsFor(name, wished, '', random), (slug) =>
    insertOrganization(tx, { ...made, id: random.uuid(), slug }),
  )
  if (organization === undefined) return SLUG_TAKEN
  const { id: organizationId, slug } = organization
  const role = 'owner' as const
  const owner = { ...member, organizationId, role, createdAt: now }
  const memberId = await insertOrganizationMember(tx, owner)
  const by = doerOf(caller)
  const event = { organizationId, by, now, requestId }
  await appendOrganizationEvent(tx, random, {
    ...event,
    type: 'org.created',
    fields: { name, slug },
  })
  await appendOrganizationEvent(tx, random, {
    ...event,
    type: 'org.member.added',
    fields: { member: { type: 'member', id: memberId }, member_id: memberId, role },
    // Names a user by their subject in this tenant. The account id is never shown.
    namedFields: { member: by.actor },
  })
  return { tag: 'created', organization: { ...organization, role }, replayed: false }
}

export const createTenant: Handling<'createTenant'> = async (needs, message, context) => {
  const { caller } = message
  const fault =
    offFault(needs, caller) ?? (await tokenFault(needs, caller, context)) ?? slugFault(message.slug)
  if (fault !== undefined) return fault
  return needs.database.system(async (tx) => {
    const found = await membershipOf(tx, message)
    if (found === undefined) return { tag: 'unknown_organization' }
    if (!mayCreateTenant(found.role)) return { tag: 'role_too_low', role: found.role }
    if (found.status !== 'active') return { tag: 'suspended', what: 'organization' }
    return idempotently(
      tx,
      message.idempotency,
      async () => openTenant(tx, needs, message, found, context),
      kept('created'),
    )
  }, context)
}

/**
 * The feed of the new tenant begins with the creation of its organization. A user who creates the tenant becomes its first user with the role
 * owner. An agent logs in by its membership of the organization.
 */
async function openTenant(
  tx: Transaction,
  { clock, random, limits }: OrganizationsTools,
  { caller, name, slug: wished, environment, supportContact }: CreateTenant,
  organization: OrganizationRow,
  context: MessageContext,
): Promise<TenantCreated | LimitReached | typeof SLUG_TAKEN> {
  const organizationId = organization.id
  const member = await memberOf(tx, caller.principal)
  const most = await fullOfTenants(tx, organizationId, limits.max_tenants)
  if (most !== undefined) return { tag: 'limit_reached', what: 'environments', most }
  const now = clock.now()
  const suffix = environment === 'sandbox' ? '-sandbox' : ''
  const tenant = await firstFree(slugsFor(name, wished, suffix, random), (slug) =>
    insertTenant(tx, {
      id: random.uuid(),
      organizationId,
      name,
      slug,
      environment,
      // Sandboxes admit agents from the start, production does not.
      admitAgents: environment === 'sandbox',
      supportContact: supportContact ?? null,
      createdAt: now,
    }),
  )
  if (tenant === undefined) return SLUG_TAKEN
  await beginFeed(tx, random, organization, tenant.id)
  // The new tenant gets its own pairwise subject for the user.
  const subject = member?.memberType === 'account' ? random.token(SUBJECT_BYTES) : undefined
  const principal = { ...caller.principal, ...(subject === undefined ? {} : { subject }) }
  const as = { ...caller, principal }
  recordAudit(tx, { clock, random }, as, context, {
    tenantId: tenant.id,
    type: 'org.tenant.created',
    resource: { type: 'tenant', id: tenant.id },
    data: { organization_id: organizationId, name, slug: tenant.slug, environment },
  })
  if (member !== undefined && subject !== undefined) {
    const owner = { tenantId: tenant.id, accountId: member.memberId, sub: subject }
    await admitOwner(tx, { random, now, requestId: context.requestId }, owner)
  }
  return { tag: 'created', tenant: tenantRecord(tenant), replayed: false }
}

async function admitOwner(
  tx: Transaction,
  { random, now, requestId }: { random: Random; now: Date; requestId: string | undefined },
  { tenantId, accountId, sub }: { tenantId: string; accountId: string; sub: string },
): Promise<void> {
  const id = random.uuid()
  const user = { tenantId, id, accountId, sub, status: 'active', roles: ['owner'] } as const
  await insertTenantUser(tx, { ...user, fixture: false, createdAt: now })
  const email = await findAccountEmail(tx, accountId)
  const about = {
    actor: { type: 'human', id: sub },
    resource: { type: 'tenant_user', id },
    requestId,
  }
  const fields = { email, status: 'active', fixture: false }
  const event = catalogued('admin.user.created', about, fields)
  appendEvents(tx, [{ id: random.uuid(), tenantId, occurredAt: now, ...event }])
}

export function tenantRecord(row: TenantRow): TenantRecord {
  if (row.organizationId === null) throw new Error('the control plane is not an environment')
  return {
    id: row.id,
    organizationId: row.organizationId,
    name: row.name,
    slug: row.slug,
    environment: row.environment,
    status: row.status,
    supportContact: row.supportContact,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
  }
}

/** The requested slug, or candidates made from the name. */
export function slugsFor(
  name: string,
  wished: string | undefined,
  suffix: string,
  random: Random,
): readonly string[] {
  if (wished !== undefined) return [wished]
  const unique = () => Buffer.from(random.bytes(SLUG_SUFFIX_BYTES)).toString('hex')
  return slugCandidates(name, { suffix, unique })
}

/** Inserts under the first free slug; undefined when all are taken. */
export async function firstFree<Row>(
  slugs: readonly string[],
  insert: (slug: string) => Promise<Row | undefined>,
): Promise<Row | undefined> {
  for (const slug of slugs) {
    const row = await insert(slug)
    if (row !== undefined) return row
  }
  return undefined
}
