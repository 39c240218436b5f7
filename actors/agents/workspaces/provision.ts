/** Creates a workspace in one transaction. */
import { invariant } from '../../../runtime/kernel/assert.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { insertAccount } from '../../../storage/identity/accounts.js'
import type { NewAgent } from '../../../storage/agents/agents.js'
import {
  type ApplicationRow,
  insertApplication,
  newClientSecret,
} from '../../../storage/oauth/applications.js'
import { insertOperatorInvite } from '../../../storage/identity/operator-invites.js'
import {
  insertOrganization,
  insertOrganizationMember,
  type OrganizationRow,
} from '../../../storage/identity/organizations.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import { type Redemption, redeemPowChallenge } from '../../../storage/agents/pow-challenges.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { insertTenantUser } from '../../../storage/identity/tenant-users.js'
import { insertTenant, type TenantRow } from '../../../storage/identity/tenants.js'
import { agentRegistered, catalogued, type NewEvent } from '../../domain/events.js'
import { DEVICE_CODE, TOKEN_EXCHANGE } from '../../domain/oauth/grant-types.js'
import { WORKSPACE_APPLICATION_SCOPES } from '../../domain/scopes.js'
import { slugCandidates } from '../../domain/tenants/slugs.js'
import { sha256 } from '../../domain/secret-hashes.js'
import { appendOrganizationEvent } from '../../platform/organization-events.js'
import { type FixturePrepared, fixtureEmail } from '../../identity/users/protocol.js'

const INVITE_TOKEN_BYTES = 32
const INVITE_LIFETIME_MS = 7 * 24 * 60 * 60_000
const SUBJECT_BYTES = 24
const SLUG_SUFFIX_BYTES = 4

const APPLICATION_GRANTS = [
  'authorization_code',
  'refresh_token',
  'client_credentials',
  TOKEN_EXCHANGE,
  DEVICE_CODE,
]

type WorkspaceOrder = {
  readonly challengeId: string
  readonly agent: NewAgent
  readonly organizationName: string
  readonly redirectUris: readonly string[]
  readonly network: string | null
  readonly fixture: FixturePrepared
  readonly invited: boolean
  readonly now: Date
  readonly requestId: string | undefined
}

export type Provisioned = {
  tag: 'provisioned'
  organization: OrganizationRow
  tenant: TenantRow
  application: ApplicationRow
  clientSecret: string
  fixtureUser: { id: string; email: string; createdAt: Date }
  invite: { token: string; expiresAt: Date } | null
}

/** Spends the challenge and creates everything, or nothing when the challenge is closed. */
export async function provision(
  tx: Transaction,
  order: WorkspaceOrder,
  random: Random,
): Promise<Provisioned | { tag: Exclude<Redemption, 'registered'> }> {
  const { agent, network, now } = order
  const redemption = await redeemPowChallenge(tx, order.challengeId, agent)
  if (redemption !== 'registered') return { tag: redemption }

  const unique = () => Buffer.from(random.bytes(SLUG_SUFFIX_BYTES)).toString('hex')
  const name = order.organizationName
  const organization = await firstFree(slugCandidates(name, { unique }), (slug) =>
    insertOrganization(tx, { id: random.uuid(), name, slug, createdAt: now, network }),
  )
  const organizationId = organization.id
  const tenant = await firstFree(slugCandidates(name, { unique, suffix: '-sandbox' }), (slug) =>
    insertTenant(tx, {
      id: random.uuid(),
      organizationId,
      name: `${name} sandbox`,
      slug,
      environment: 'sandbox',
      admitAgents: true,
      createdAt: now,
    }),
  )
  const member = { organizationId, createdAt: now }
  const memberId = await insertOrganizationMember(tx, {
    ...member,
    memberType: 'agent',
    memberId: agent.id,
    role: 'owner',
  })

  const secret = newClientSecret(random)
  const application = await insertApplication(tx, {
    id: random.uuid(),
    tenantId: tenant.id,
    name,
    clientType: 'confidential',
    tokenEndpointAuthMethod: 'client_secret_basic',
    redirectUris: [...order.redirectUris],
    grantTypes: APPLICATION_GRANTS,
    scopes: [...WORKSPACE_APPLICATION_SCOPES],
    secretSha256: secret.sha256,
    createdAt: now,
  })

  const fixtureUser = await insertFixture(tx, order.fixture, tenant, now, random)
  await insertOrganizationMember(tx, {
    ...member,
    memberType: 'account',
    memberId: fixtureUser.accountId,
    role: 'member',
  })
  const invite = order.invited
    ? await insertInvite(tx, order, organizationId, tenant, random)
    : null
  await appendCreation(tx, order, organization, { tenantId: tenant.id, memberId }, random)
  appendEvents(tx, [fixtureCreated(order, tenant, fixtureUser, random)])
  return {
    tag: 'provisioned',
    organization,
    tenant,
    application,
    clientSecret: secret.secret,
    fixtureUser,
    invite,
  }
}

/** Inserts with the first free slug. */
async function firstFree<Row>(
  slugs: readonly string[],
  insert: (slug: string) => Promise<Row | undefined>,
): Promise<Row> {
  for (const slug of slugs) {
    const row = await insert(slug)
    if (row !== undefined) return row
  }
  throw new Error('no free slug among unique candidates')
}

async function insertFixture(
  tx: Transaction,
  fixture: FixturePrepared,
  tenant: TenantRow,
  now: Date,
  random: Random,
) {
  const accountId = random.uuid()
  const id = random.uuid()
  const email = fixtureEmail(fixture.mailbox, tenant.slug)
  const inserted = await insertAccount(tx, {
    id: accountId,
    email,
    emailVerified: true,
    displayName: fixture.displayName,
    passwordHash: fixture.passwordHash,
    createdAt: now,
  })
  invariant(inserted, 'a mailbox in the domain of a new tenant is free')
  await insertTenantUser(tx, {
    tenantId: tenant.id,
    id,
    accountId,
    sub: random.token(SUBJECT_BYTES),
    status: 'active',
    roles: [],
    fixture: true,
    createdAt: now,
  })
  return { id, accountId, email, createdAt: now }
}

async function insertInvite(
  tx: Transaction,
  { agent, now }: WorkspaceOrder,
  organizationId: string,
  tenant: TenantRow,
  random: Random,
) {
  const token = random.token(INVITE_TOKEN_BYTES)
  const expiresAt = new Date(now.getTime() + INVITE_LIFETIME_MS)
  await insertOperatorInvite(tx, {
    tenantId: tenant.id,
    id: random.uuid(),
    organizationId,
    tokenSha256: sha256(token),
    invitedByAgentId: agent.id,
    createdAt: now,
    expiresAt,
  })
  return { token, expiresAt }
}

/** The registration event belongs to the control plane, the others to the new organization and its tenant. */
async function appendCreation(
  tx: Transaction,
  { agent, now, requestId }: WorkspaceOrder,
  { id: organizationId, name, slug }: OrganizationRow,
  { tenantId, memberId }: { readonly tenantId: string; readonly memberId: string },
  random: Random,
): Promise<void> {
  appendEvents(tx, [agentRegistered(random.uuid(), agent, requestId)])
  const member = { type: 'agent', id: agent.id }
  const by = { actor: member, tenantId, isNamedEverywhere: true }
  const event = { organizationId, by, now, requestId }
  const created = { ...event, type: 'org.created', fields: { name, slug } } as const
  await appendOrganizationEvent(tx, random, created)
  const fields = { member, member_id: memberId, role: 'owner' }
  await appendOrganizationEvent(tx, random, { ...event, type: 'org.member.added', fields })
}

function fixtureCreated(
  { agent, now, requestId }: WorkspaceOrder,
  tenant: TenantRow,
  { id, email }: { readonly id: string; readonly email: string },
  random: Random,
): NewEvent {
  const actor = { type: 'agent', id: agent.id }
  const about = { actor, resource: { type: 'tenant_user', id }, requestId }
  const fields = { email, status: 'active', fixture: true }
  const event = catalogued('admin.user.created', about, fields)
  return { id: random.uuid(), tenantId: tenant.id, occurredAt: now, ...event }
}
