/**
 * Creates the first operator of a deployment: an organization and an invite link that makes the user who accepts it the
 * owner. There are no default passwords.
 */
import { sha256 } from '../../../domain/secret-hashes.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import {
  insertOperatorInvite,
  type NewOperatorInvite,
} from '../../../../storage/identity/operator-invites.js'
import { insertOrganization } from '../../../../storage/identity/organizations.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { findControlPlane, insertTenant } from '../../../../storage/identity/tenants.js'
import type { Environment } from '../../../domain/tenants/tenancy.js'
import { firstFree, slugsFor } from './creation.js'
import { appendOrganizationEvent } from '../../../platform/organization-events.js'

const INVITE_TOKEN_BYTES = 32
/** Lifetime of an operator invite. */
const INVITE_LIFETIME_MS = 7 * 24 * 60 * 60_000

type FirstOperator = {
  readonly organizationId: string
  readonly organizationSlug: string
  readonly tenantId: string
  readonly tenantSlug: string
  /** Shown once, stored as its SHA-256. */
  readonly inviteToken: string
  readonly expiresAt: Date
}

type FirstPersonOfControlPlane = Pick<FirstOperator, 'inviteToken' | 'expiresAt'>

/**
 * Creates an invite to the control plane: the user who accepts it administers the deployment. Needs a transaction that
 * crosses tenants.
 */
export async function inviteDeploymentOperator(
  tx: Transaction,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  { name, scopes }: { readonly name: string; readonly scopes: readonly string[] },
): Promise<FirstPersonOfControlPlane | { readonly tag: 'no_control_plane' }> {
  const controlPlane = await findControlPlane(tx)
  if (controlPlane === undefined) return { tag: 'no_control_plane' }
  const createdAt = clock.now()
  const organization = await firstFree(slugsFor(name, undefined, '', random), (slug) =>
    insertOrganization(tx, { id: random.uuid(), name, slug, createdAt, network: null }),
  )
  if (organization === undefined) throw new Error('no free slug among the generated candidates')
  const tenantId = controlPlane.id
  const command = 'svc operator create --control-plane'
  const rights = { role: 'member', appointedScopes: scopes } as const
  return inviteOwner(tx, { tenantId, createdAt, organization, name, command, ...rights }, random)
}

/** Creates organization, environment and invite in one transaction that crosses tenants. */
export async function createFirstOperator(
  tx: Transaction,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  { name, environment }: { readonly name: string; readonly environment: Environment },
): Promise<FirstOperator> {
  const createdAt = clock.now()
  const organization = await firstFree(slugsFor(name, undefined, '', random), (slug) =>
    insertOrganization(tx, { id: random.uuid(), name, slug, createdAt, network: null }),
  )
  const suffix = environment === 'sandbox' ? '-sandbox' : ''
  const tenant = await firstFree(slugsFor(name, undefined, suffix, random), (slug) =>
    insertTenant(tx, {
      id: random.uuid(),
      organizationId: organization?.id ?? null,
      name: `${name} ${environment}`,
      slug,
      environment,
      admitAgents: environment === 'sandbox',
      createdAt,
    }),
  )
  if (organization === undefined || tenant === undefined) {
    throw new Error('no free slug among the generated candidates')
  }
  const command = 'svc operator create'
  const invited = { tenantId: tenant.id, createdAt, organization, name, command }
  const invite = await inviteOwner(tx, invited, random)
  return {
    organizationId: organization.id,
    organizationSlug: organization.slug,
    tenantId: tenant.id,
    tenantSlug: tenant.slug,
    ...invite,
  }
}

type Opened = { readonly id: string; readonly slug: string }

/** Inserts the invite that makes the user who accepts it an owner of the organization, with its event. */
async function inviteOwner(
  tx: Transaction,
  invited: Pick<NewOperatorInvite, 'tenantId' | 'role' | 'appointedScopes' | 'createdAt'> & {
    readonly organization: Opened
    readonly name: string
    /** The command, as the event names it. */
    readonly command: string
  },
  random: Random,
): Promise<FirstPersonOfControlPlane> {
  const { organization, name, command, ...draft } = invited
  const { tenantId, createdAt } = draft
  const inviteToken = random.token(INVITE_TOKEN_BYTES)
  const expiresAt = new Date(createdAt.getTime() + INVITE_LIFETIME_MS)
  await insertOperatorInvite(tx, {
    ...draft,
    id: random.uuid(),
    organizationId: organization.id,
    tokenSha256: sha256(inviteToken),
    invitedByAgentId: null,
    expiresAt,
  })
  await appendOrganizationEvent(tx, random, {
    type: 'org.created',
    organizationId: organization.id,
    fields: { name, slug: organization.slug },
    by: { actor: { type: 'command', id: command }, tenantId, isNamedEverywhere: true },
    now: createdAt,
    requestId: undefined,
  })
  return { inviteToken, expiresAt }
}
