import test from 'ava'
import { TENANT_SCOPES, WORKSPACE_APPLICATION_SCOPES } from '../../../../actors/domain/scopes.js'
import { clientSecretSha256 } from '../../../../storage/oauth/applications.js'
import { eventsAfter } from '../../../../storage/platform/outbox.js'
import { identityFixture, ISSUER, started } from '../../../support/identity/identity.js'
import { nonceFor } from '../../../support/identity/nonce.js'
import { sql } from '../../../support/storage/sql.js'
import { workspace } from '../../../support/identity/workspace.js'

const resources = await identityFixture()
test.after.always(() => resources.close())
const { controlPlane, database, granted, workspaces } = resources

test('the metadata names the issuer and the control-plane tenant', async (t) => {
  t.deepEqual(await workspaces.readWorkspaceBootstrap({}), {
    tag: 'metadata',
    issuer: ISSUER,
    controlPlaneTenantId: controlPlane.id,
    anchorTypes: ['did_key', 'did_web'],
  })
})

test('a workspace is agent, organization, sandbox, application and fixture user', async (t) => {
  const made = await workspace(resources, { organizationName: 'Émile & Söhne' })
  t.like(made.agent, { tenantId: controlPlane.id, did: made.key.did, status: 'active' })
  t.deepEqual(made.agent.scopes, ['org:read', 'org:create', 'org:manage', 'tenant:manage'])
  t.like(made.organization, { name: 'Émile & Söhne', slug: 'emile-sohne' })
  t.like(made.tenant, { slug: 'emile-sohne-sandbox', environment: 'sandbox' })
  t.like(made.application, {
    clientId: made.application.id,
    audience: `urn:svc:application:${made.application.id}`,
    redirectUris: ['https://app.example/callback'],
    tokenEndpointAuthMethod: 'client_secret_basic',
  })
  t.regex(made.fixtureUser.email, /^fixture-[0-9a-f]{10}@emile-sohne-sandbox\.test$/)
  t.is(made.operatorInvite, null)
  t.is(made.discoveryUrl, `${ISSUER}/.well-known/openid-configuration`)
  t.true(made.envBlock.includes(`SVC_CLIENT_ID=${made.application.id}\n`))

  const [row] = await sql<Record<string, unknown>>(
    database,
    `select a.client_type, a.grant_types, a.scopes, t.admit_agents, t.organization_id,
       (select encode(s.secret_sha256, 'hex') from application_secrets s
        where s.application_id = a.id) as secret,
       (select json_agg(json_build_object('type', m.member_type, 'role', m.role)
          order by m.member_type) from organization_members m
        where m.organization_id = t.organization_id) as members,
       (select json_build_object('fixture', u.fixture, 'status', u.status, 'email', c.email,
          'hash', c.password_hash)
        from tenant_users u join accounts c on c.id = u.account_id
        where u.tenant_id = t.id) as fixture
     from applications a join tenants t on t.id = a.tenant_id where a.id = $1`,
    [made.application.id],
  )
  const secret = Buffer.from(clientSecretSha256(made.application.clientSecret ?? '')).toString(
    'hex',
  )
  t.like(row, {
    client_type: 'confidential',
    admit_agents: true,
    organization_id: made.organization.id,
    secret,
    scopes: [...WORKSPACE_APPLICATION_SCOPES],
    grant_types: [
      'authorization_code',
      'refresh_token',
      'client_credentials',
      'urn:ietf:params:oauth:grant-type:token-exchange',
      'urn:ietf:params:oauth:grant-type:device_code',
    ],
    members: [
      { type: 'account', role: 'member' },
      { type: 'agent', role: 'owner' },
    ],
  })
  const fixture = row?.['fixture'] as { hash: string }
  t.like(fixture, { fixture: true, status: 'active', email: made.fixtureUser.email })
  t.regex(fixture.hash, /^\$argon2id\$/)
  t.true(resources.hashed.includes(made.fixtureUser.password))
  t.true(made.fixtureUser.password.length >= 24)
})

test('it comes with a token for the control plane and one for the sandbox', async (t) => {
  const made = await workspace(resources)
  const grants = granted.filter(({ agentId }) => agentId === made.agent.id)
  t.deepEqual(
    grants.map(({ tenantId, scopes }) => ({ tenantId, scopes })),
    [
      { tenantId: controlPlane.id, scopes: made.agent.scopes },
      { tenantId: made.tenant.id, scopes: TENANT_SCOPES },
    ],
  )
  t.true(grants.every(({ keyFingerprint }) => keyFingerprint === made.key.fingerprint))
})

test('events are appended to the tenants where they happened, in order', async (t) => {
  const made = await workspace(resources)
  const events = await database.tenant(made.tenant.id, (tx) =>
    eventsAfter(tx, made.tenant.id, 0, 10),
  )
  t.deepEqual(
    events.map(({ type, sequence }) => `${sequence} ${type}`),
    ['1 org.created', '2 org.member.added', '3 admin.user.created'],
  )
  t.like(events[2]?.data, {
    actor: { type: 'agent', id: made.agent.id },
    resource: { type: 'tenant_user', id: made.fixtureUser.id },
    email: made.fixtureUser.email,
  })
  const told = JSON.stringify(events)
  t.false(told.includes(made.fixtureUser.password))
  const home = await database.tenant(controlPlane.id, (tx) =>
    eventsAfter(tx, controlPlane.id, 0, 1000),
  )
  const about = home.filter(({ data }) => data['key_id'] === made.key.fingerprint)
  t.deepEqual(
    about.map(({ type }) => type),
    ['admin.agent.registered'],
  )
})

test('a taken name gets a unique slug', async (t) => {
  const first = await workspace(resources, { organizationName: 'Twin' })
  const second = await workspace(resources, { organizationName: 'Twin' })
  t.is(first.organization.slug, 'twin')
  t.regex(second.organization.slug, /^twin-[0-9a-f]{8}$/)
  t.is(first.tenant.slug, 'twin-sandbox')
  t.regex(second.tenant.slug, /^twin-sandbox-[0-9a-f]{8}$/)
})

test('the sandbox is found by its slug immediately', async (t) => {
  const { tenant } = await workspace(resources)
  const resolved = await resources.tenants.resolve({ tenantSlug: tenant.slug })
  t.like(resolved, { tag: 'resolved', tenant: { id: tenant.id, admitAgents: true } })
})

test('a repeated completion returns no secrets', async (t) => {
  const { challengeId, nonce } = await workspace(resources)
  const replay = await workspaces.completeWorkspaceBootstrap({
    challengeId,
    nonce,
    organizationName: 'Again',
    redirectUris: [],
    issueOperatorInvite: true,
    framework: 'generic',
    network: null,
  })
  t.deepEqual(replay, { tag: 'challenge_consumed' })
})

test('an invalid redirect URI does not spend the challenge', async (t) => {
  const { challengeId, nonce } = await started(resources, 'workspace')
  const complete = (redirectUris: string[]) =>
    workspaces.completeWorkspaceBootstrap({
      challengeId,
      nonce,
      organizationName: 'Acme',
      redirectUris,
      issueOperatorInvite: false,
      framework: 'generic',
      network: null,
    })
  t.like(await complete(['https://a.example/', 'http://a.example/']), {
    tag: 'invalid_redirect_uri',
    index: 1,
  })
  t.is((await complete([])).tag, 'provisioned')
})

test('an operator invite is valid once, for seven days', async (t) => {
  const before = Date.now()
  const made = await workspace(resources, {
    issueOperatorInvite: true,
    organizationName: 'Inviting',
  })
  const { url, expiresAt } = made.operatorInvite!
  t.true(url.startsWith(`${ISSUER}/auth/invites/`))
  const days = (expiresAt.getTime() - before) / 86_400_000
  t.true(days >= 7 && days < 7.01)
  const token = url.slice(url.lastIndexOf('/') + 1)
  const read = () => workspaces.readOperatorInvite({ token })
  t.deepEqual(await read(), { tag: 'valid', organizationName: 'Inviting', expiresAt })
  const change = (set: string) =>
    sql(database, `update operator_invites set ${set} where tenant_id = $1`, [made.tenant.id])
  await change('used_at = now()')
  t.deepEqual(await read(), { tag: 'spent' })
  await change(`used_at = null, expires_at = now() - interval '1 second'`)
  t.deepEqual(await read(), { tag: 'spent' })
  t.deepEqual(await workspaces.readOperatorInvite({ token: 'x' }), { tag: 'unknown_invite' })
  const kept = await sql<{ text: string }>(
    database,
    `select i::text as text from operator_invites i`,
  )
  t.false(kept.some(({ text }) => text.includes(token)))
})

test('a key that was registered concurrently fails the bootstrap, which creates nothing', async (t) => {
  const first = await started(resources, 'workspace')
  const twin = await resources.agents.startAgentRegistration({
    kind: 'agent',
    registration: first.registration,
    tenant: { tenantId: controlPlane.id },
  })
  if (twin.tag !== 'started') return t.fail(twin.tag)
  await resources.agents.completeAgentRegistration({
    challengeId: twin.challengeId,
    nonce: nonceFor(twin),
  })
  const outcome = await workspaces.completeWorkspaceBootstrap({
    challengeId: first.challengeId,
    nonce: first.nonce,
    organizationName: 'Never Made',
    redirectUris: [],
    issueOperatorInvite: false,
    framework: 'generic',
    network: null,
  })
  t.is(outcome.tag, 'fingerprint_known')
  const made = await sql(database, `select from organizations where name = 'Never Made'`)
  t.is(made.length, 0)
})
