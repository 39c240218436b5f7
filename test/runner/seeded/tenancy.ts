/** Faults of tenancy: filters, row-level security, and keys of another tenant. */
import { fault, faults, type SeededFault } from './fault.js'

export const TENANCY: readonly SeededFault[] = [
  fault(
    'without a tenant no row is visible',
    'migrations/0001_foundation.sql',
    [
      `select tenant_id = nullif(current_setting('svc.tenant_id', true), '')::uuid`,
      `select coalesce(tenant_id = nullif(current_setting('svc.tenant_id', true), '')::uuid, true)`,
    ],
    'storage/platform/database.test.ts',
  ),
  fault(
    'a tenant sees its own organization only',
    'migrations/0003_identity.sql',
    ['where t.organization_id = organizations.id and svc_visible(t.id)', 'where svc_visible(t.id)'],
    'storage/identity/identity-races.test.ts',
  ),
  fault(
    'accounts are invisible to a tenant',
    'migrations/0003_identity.sql',
    [
      `create policy crossing on accounts
  using (svc_visible('00000000-0000-0000-0000-000000000000'))`,
      `create policy crossing on accounts
  using (true)`,
    ],
    'storage/identity/identity-races.test.ts',
  ),
  fault(
    'no tenant writes an organization',
    'migrations/0003_identity.sql',
    [
      `organizations.id and svc_visible(t.id)))
  with check (svc_visible('00000000-0000-0000-0000-000000000000'));`,
      `organizations.id and svc_visible(t.id)))
  with check (true);`,
    ],
    'storage/identity/identity-races.test.ts',
  ),
  fault(
    'no tenant writes an agent of another tenant',
    'migrations/0003_identity.sql',
    [
      `'create policy tenant on %I using (svc_visible(tenant_id)) with check (svc_visible(tenant_id))'`,
      `'create policy tenant on %I using (svc_visible(tenant_id)) with check (true)'`,
    ],
    'storage/identity/identity-races.test.ts',
  ),
  faults(
    'an application of another tenant is unknown',
    [
      {
        source: 'migrations/0004_tokens.sql',
        find: `using (svc_visible(tenant_id)) with check (svc_visible(tenant_id))'`,
        replace: `using (true) with check (svc_visible(tenant_id))'`,
      },
      {
        source: 'storage/oauth/applications.ts',
        find: 'where tenant_id = $1 and id = $2 and metadata_url is null`',
        replace: 'where $1::uuid is not null and id = $2 and metadata_url is null`',
      },
    ],
    'actors/oauth/clients/registered/applications.test.ts',
  ),
  fault(
    'a client introspects tokens of its tenant',
    'actors/oauth/tokens/verify/introspection.ts',
    ['inspected.tenantId === inspector.tenantId', 'inspector.tenantId !== null'],
    'actors/oauth/tokens/access-token-verifier.test.ts',
  ),
  fault(
    'an agent logs in to its own tenant, or as a member',
    'actors/agents/agents/rules.ts',
    ['!controlPlane && role !== null', '!controlPlane || role !== null'],
    'actors/agents/agents/rules.test.ts',
  ),
  fault(
    'a session of another tenant does not sign in',
    'actors/identity/sign-in/flow/flows.ts',
    ['session === undefined || session.tenantId !== demand.tenantId', 'session === undefined'],
    'actors/identity/sign-in/flow/flows.test.ts',
  ),
  fault(
    'an idempotency key belongs to its caller and route',
    'storage/platform/idempotency.ts',
    ['.update(`${claim.scope}\\n${claim.key}`)', '.update(claim.key)'],
    'storage/platform/idempotency.test.ts',
  ),
  fault(
    'a commit of several tenants sees the rows of none',
    'storage/platform/tenancy.ts',
    [`: ['', tenantIds.join(',')]`, `: [tenantIds[0], tenantIds.join(',')]`],
    'actors/platform/batching/commits-of-tenants.test.ts',
  ),
  fault(
    'a key of an agent is changed at home only',
    'actors/agents/agents/management/rules.ts',
    ['agent.homeTenantId !== principal.tenantId', 'agent.homeTenantId === null'],
    'flows/agents/agent-management.test.ts',
  ),
  fault(
    'a log about an agent is an event of the tenants of that agent alone',
    'actors/agents/agents/registries/worker.ts',
    ['token === change.token && change.block', 'change.block'],
    'flows/agents/chain-events.test.ts',
  ),
  fault(
    'the owner of an agent on a chain signs for its anchor',
    'actors/agents/agents/erc8004.ts',
    ['signer?.toLowerCase() === owner', 'signer !== null'],
    'flows/agents/chain-events.test.ts',
  ),
  fault(
    'a receiver reaches only its own streams of security events',
    'storage/webhooks/signal-streams.ts',
    [
      "'tenant_id = $1 and receiver = $2 and id = $3'",
      "'tenant_id = $1 and $2 <> id::text and id = $3'",
    ],
    'flows/webhooks/shared-signals.test.ts',
  ),
  fault(
    'the person of a delegation opens a grant for that delegation alone',
    'storage/vault/call-approvals.ts',
    ['as delegation, a.delegation_id is null', 'as delegation, true'],
    'flows/vault/approvals/calls.test.ts',
  ),
]
