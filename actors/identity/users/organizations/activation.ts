/**
 * Turns a sandbox into a production environment in one transaction: changes the tenant's kind, removes its fixture
 * users, and ends every secret and token issued by the bootstrap.
 */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import {
  emptyFixtureAccounts,
  endAgentSessionsIn,
  endInvites,
  type FixtureRow,
  lockBootstrapApplications,
  lockFixtures,
  revokeServiceTokens,
} from '../../../../storage/identity/activation.js'
import {
  newClientSecret,
  rotateApplicationSecretRow,
} from '../../../../storage/oauth/applications.js'
import { idempotently } from '../../../../storage/platform/idempotency.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { removeTenantUserRow } from '../../../../storage/identity/tenant-users.js'
import { activateTenantRow, holdTenant } from '../../../../storage/identity/tenants.js'
import type { Caller } from '../../../domain/audit.js'
import { type EventContext, eventContext, type NewEvent } from '../../../domain/events.js'
import { recordAudit } from '../../../platform/record-audit.js'
import { endUser, userEvent } from '../../../platform/people/ending.js'
import { tenantRecord } from './creation.js'
import type { Handling, OrganizationsTools } from './needs.js'
import type { ActivationRefused, RotatedSecret, TenantActivated } from './protocol.js'
import { provesTwoFactors } from './rules.js'

const REASON = 'tenant_activated'

export const activateTenant: Handling<'activateTenant'> = async (needs, message, context) => {
  const { caller, idempotency } = message
  if (!provesTwoFactors(caller.principal)) return { tag: 'step_up_needed' }
  // Accounts and memberships are global, so the transaction crosses tenants. It is not cancelled with the request: an
  // activation must not depend on the caller's connection.
  const outcome = await needs.database.system((tx) =>
    idempotently(
      tx,
      idempotency,
      () => activate(tx, needs, caller, context),
      (done) => (done.tag === 'activated' ? withoutSecrets(done) : undefined),
    ),
  )
  // Other processes are notified by the commit.
  needs.tenants.send('forget', { tenantId: caller.principal.tenantId })
  return outcome
}

async function activate(
  tx: Transaction,
  needs: OrganizationsTools,
  caller: Caller,
  context: MessageContext,
): Promise<TenantActivated | ActivationRefused> {
  const { tenantId, subject } = caller.principal
  const before = await holdTenant(tx, tenantId)
  if (before === undefined || before.controlPlane) return { tag: 'no_environment' }
  const fixtures = await lockFixtures(tx, tenantId)
  // The creator of the sandbox knows the password of a fixture user, so that sign-in does not prove a person.
  if (fixtures.some(({ sub }) => sub === subject)) return { tag: 'fixture_caller' }
  const now = needs.clock.now()
  const tenant = await activateTenantRow(tx, tenantId, now)
  if (tenant === undefined) return { tag: 'already_production' }
  const events = await removeFixtures(tx, fixtures, eventContext(needs, caller, context))
  const rotated = await rotateAll(tx, needs.random, tenantId, now)
  await endInvites(tx, tenantId, now)
  await endAgentSessionsIn(tx, tenantId, REASON, now)
  // Append events before revoking tokens: from here on no other transaction commits a token of the tenant, so the
  // revocation sees every token issued for the old secrets.
  appendEvents(tx, events)
  const retiredFixtureUsers = fixtures.map(({ id }) => id)
  const applications = rotated.map(({ applicationId }) => applicationId)
  recordAudit(tx, needs, caller, context, {
    type: 'tenant.activated',
    resource: { type: 'tenant', id: tenantId },
    data: { retired_fixture_users: retiredFixtureUsers, rotated_applications: applications },
  })
  await revokeServiceTokens(tx, tenantId, applications, now)
  // This process refuses all of them from the commit on. PostgreSQL notifies the others.
  tx.forget([tenantId, ...applications])
  return {
    tag: 'activated',
    tenant: tenantRecord(tenant),
    retiredFixtureUsers,
    rotated,
    replayed: false,
  }
}

async function removeFixtures(
  tx: Transaction,
  fixtures: readonly FixtureRow[],
  by: EventContext,
): Promise<NewEvent[]> {
  const { now } = by
  const events: NewEvent[] = []
  const fields = { status: 'removed', fixture: true }
  for (const user of fixtures) {
    const { tenantId, id } = user
    const ended = await endUser(tx, user, REASON, by)
    await removeTenantUserRow(tx, tenantId, id, now)
    events.push(...ended, userEvent('tenant_user.removed', user, by, fields))
  }
  await emptyFixtureAccounts(
    tx,
    fixtures.map(({ accountId }) => accountId),
    now,
  )
  return events
}

/** Replaces the secrets of bootstrap applications. The old ones end immediately. */
async function rotateAll(
  tx: Transaction,
  random: Random,
  tenantId: string,
  now: Date,
): Promise<RotatedSecret[]> {
  const rotated: RotatedSecret[] = []
  for (const applicationId of await lockBootstrapApplications(tx, tenantId)) {
    const { secret: clientSecret, sha256 } = newClientSecret(random)
    const secretId = random.uuid()
    const rotation = { tenantId, applicationId, secretId, sha256, now, othersUntil: now }
    await rotateApplicationSecretRow(tx, rotation)
    rotated.push({ applicationId, clientSecret })
  }
  return rotated
}

/** The response of an idempotent replay: secrets are shown once. */
function withoutSecrets(activated: TenantActivated): TenantActivated {
  const rotated = activated.rotated.map((secret) => ({ ...secret, clientSecret: null }))
  return { ...activated, rotated }
}
