/**
 * Turns a sandbox into a production environment in one transaction: changes the tenant's kind, removes its fixture
 * users, and ends every secret and token issued by the bootstrap.
 */
import type { ActorRef, MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  clearFixtureAccounts,
  endAgentSessionsIn,
  endInvites,
  type FixtureRow,
  lockBootstrapApplications,
  lockFixtures,
  revokeServiceTokens,
} from '../../../storage/identity/activation.js'
import { newClientSecret, addApplicationSecret } from '../../../storage/oauth/applications.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { endDelegations } from '../../../storage/agents/delegations.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { endHumanSessions, removeTenantUser } from '../../../storage/identity/tenant-users.js'
import { activateTenant, lockTenant } from '../../../storage/identity/tenants.js'
import { actorOf, audited, type Caller, doneBy } from '../../domain/audit.js'
import { eventData, type NewEvent } from '../../domain/events.js'
import { byCaller, delegationsRevoked } from '../../domain/revocation.js'
import type { TokensProtocol } from '../../oauth/tokens/protocol.js'
import { tenantRecord } from './creation.js'
import type {
  ActivateTenant,
  ActivationRefused,
  IdempotencyRefused,
  RotatedSecret,
  TenantActivated,
} from './protocol.js'
import { provesTwoFactors } from './rules.js'

const REASON = 'tenant_activated'

export type ActivationNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly tokens: ActorRef<TokensProtocol>
}

export function activation({ database, clock, random, tokens }: ActivationNeeds) {
  return activate

  async function activate(
    { caller, idempotency }: ActivateTenant,
    { requestId }: MessageContext,
  ): Promise<TenantActivated | ActivationRefused | IdempotencyRefused> {
    const { principal } = caller
    if (!provesTwoFactors(principal)) return { tag: 'step_up_needed' }
    // Accounts and memberships are global, so the transaction crosses tenants. It is not cancelled with the request: an
    // activation must not depend on the caller's connection.
    return database.system((tx) =>
      idempotently(
        tx,
        idempotency,
        () => once(tx, caller, requestId),
        (outcome) => (outcome.tag === 'activated' ? withoutSecrets(outcome) : undefined),
      ),
    )
  }

  async function once(
    tx: Transaction,
    caller: Caller,
    requestId: string | undefined,
  ): Promise<TenantActivated | ActivationRefused> {
    const { principal } = caller
    const { tenantId } = principal
    const before = await lockTenant(tx, tenantId)
    if (before === undefined || before.controlPlane) return { tag: 'no_environment' }
    const fixtures = await lockFixtures(tx, tenantId)
    // The creator of the sandbox knows the password of a fixture user, so that sign-in does not prove a person.
    if (fixtures.some(({ sub }) => sub === principal.subject)) return { tag: 'fixture_caller' }
    const now = clock.now()
    const tenant = await activateTenant(tx, tenantId, now)
    if (tenant === undefined) return { tag: 'already_production' }
    const events = await removeFixtures(tx, fixtures, caller, now, requestId)
    const applications = await rotateAll(tx, tenantId, now)
    await endInvites(tx, tenantId, now)
    await endAgentSessionsIn(tx, tenantId, REASON, now)
    // Append events before revoking tokens: from here on no other transaction commits a token of the tenant, so the
    // revocation sees every token issued for the old secrets.
    appendEvents(tx, events)
    const audit = audited(caller, {
      id: random.uuid(),
      tenantId,
      type: 'tenant.activated',
      occurredAt: now,
      resource: { type: 'tenant', id: tenantId },
      requestId,
      data: {
        retired_fixture_users: fixtures.map(({ id }) => id),
        rotated_applications: applications.map(({ applicationId }) => applicationId),
      },
    })
    appendAudit(tx, [audit])
    const ids = applications.map(({ applicationId }) => applicationId)
    await revokeServiceTokens(tx, tenantId, ids, now)
    // This process refuses all of them from the commit on. The others hear of it from PostgreSQL.
    tx.afterCommit(() => tokens.send('invalidate', { ids: [tenantId, ...ids] }))
    return {
      tag: 'activated',
      tenant: tenantRecord(tenant),
      retiredFixtureUsers: fixtures.map(({ id }) => id),
      rotated: applications,
      replayed: false,
    }
  }

  async function removeFixtures(
    tx: Transaction,
    fixtures: readonly FixtureRow[],
    caller: Caller,
    now: Date,
    requestId: string | undefined,
  ): Promise<NewEvent[]> {
    const actor = actorOf(caller)
    const audit = doneBy(caller)
    const events: NewEvent[] = []
    for (const user of fixtures) {
      const { tenantId, id, sub } = user
      // End sessions first: this waits for approvals that are being decided in one of them, and those end too.
      await endHumanSessions(tx, user, REASON, now)
      const delegations = await endDelegations(tx, { tenantId, subject: sub }, REASON, now)
      await removeTenantUser(tx, tenantId, id, now)
      events.push(...delegationsRevoked(random, delegations, byCaller(caller, requestId)), {
        id: random.uuid(),
        tenantId,
        type: 'tenant_user.removed',
        occurredAt: now,
        audit,
        data: eventData(
          { actor, resource: { type: 'tenant_user', id }, requestId },
          { status: 'removed', fixture: true },
        ),
      })
    }
    await clearFixtureAccounts(
      tx,
      fixtures.map(({ accountId }) => accountId),
      now,
    )
    return events
  }

  /** Replaces the secrets of bootstrap applications. The old ones end at once. */
  async function rotateAll(tx: Transaction, tenantId: string, now: Date): Promise<RotatedSecret[]> {
    const rotated: RotatedSecret[] = []
    for (const applicationId of await lockBootstrapApplications(tx, tenantId)) {
      const { secret: clientSecret, sha256 } = newClientSecret(random)
      const secretId = random.uuid()
      const rotation = { tenantId, applicationId, secretId, sha256, now, othersUntil: now }
      await addApplicationSecret(tx, rotation)
      rotated.push({ applicationId, clientSecret })
    }
    return rotated
  }
}

/** The response of an idempotent replay: secrets are shown once. */
function withoutSecrets(activated: TenantActivated): TenantActivated {
  const rotated = activated.rotated.map((secret) => ({ ...secret, clientSecret: null }))
  return { ...activated, rotated }
}
