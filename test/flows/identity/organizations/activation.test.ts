/** Sandbox to production. Two processes on a database of this file, whose connections a trigger cuts. */
import test, { type ExecutionContext } from 'ava'
import type { Api, Json, Workspace } from '../../../support/api.js'
import { openBrowser } from '../../../support/pages/browser.js'
import {
  fixtureOf,
  type Human,
  delegate,
  newFixture,
  ownToken,
  present,
} from '../../../support/agents/delegation.js'
import { sql } from '../../../support/storage/sql.js'
import { owned as ownedSandbox } from '../../../support/identity/owner.js'
import { signIn } from '../../../support/identity/person.js'
import { twoServices } from '../../../support/service/two-services.js'

const { first: api, second } = await twoServices()

const PATH = '/api/v1/tenant/activate'
const activate = (at: Api, token: string) => at.post(PATH, token, {})

async function owned(options: { readonly factor?: boolean } = {}) {
  const made = await ownedSandbox(api, options)
  return made
}

const basic = (id: string, secret: string) => ({
  authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
})
const clientToken = (at: Api, id: string, secret: string) =>
  at.form('/oauth/token', { grant_type: 'client_credentials' }, basic(id, secret))

/** Waits until the other process has seen the change: a second at most. */
async function soon(t: ExecutionContext, status: number, ask: () => Promise<{ status: number }>) {
  const endMs = Date.now() + 3_000
  let found = (await ask()).status
  while (found !== status && Date.now() < endMs) found = (await ask()).status
  t.is(found, status)
}

test('activation ends everything the bootstrap issued, in every process immediately', async (t) => {
  const { made, token } = await owned()
  const fixture: Human = { tenantSlug: made.tenantSlug, email: made.email, password: made.password }
  const lender = await present(api, fixture)
  const agent = await api.register(made.tenantId)
  const loggedIn = await api.login(agent.key, { agent_id: agent.agentId, tenant_id: made.tenantId })
  const agentToken = String(loggedIn.body['access_token'])
  const delegated = await delegate(api, agentToken, lender, { scope: 'openid vault:list' })
  const issued = await clientToken(api, made.clientId, made.clientSecret).gives(200)
  const serviceToken = String(issued.body['access_token'])
  const introspect = (at: Api, secret: string) =>
    at.form('/oauth/introspect', { token: serviceToken }, basic(made.clientId, secret))
  t.is((await introspect(second, made.clientSecret)).body['active'], true)
  t.is((await second.get('/api/v1/vault/credentials', delegated.token)).status, 200)

  const done = await activate(api, token).gives(200)
  t.is(done.headers['cache-control'], 'no-store')
  t.like(done.body, { id: made.tenantId, environment: 'production', slug: made.tenantSlug })
  t.is((done.body['retired_fixture_users'] as string[]).length, 1)
  const [rotated] = done.body['rotated_applications'] as Json[]
  t.is(rotated?.['client_id'], made.clientId)
  const secret = String(rotated?.['client_secret'])
  t.not(secret, made.clientSecret)

  for (const at of [api, second]) {
    await soon(t, 401, () => clientToken(at, made.clientId, made.clientSecret))
    t.is((await clientToken(at, made.clientId, secret)).status, 200)
    await soon(t, 401, () => at.get('/api/v1/agents/me', agentToken))
    await soon(t, 401, () => at.get('/api/v1/vault/credentials', delegated.token))
    t.is((await introspect(at, secret)).body['active'], false)
    const start = {
      tenant_id: made.tenantId,
      ...agent.key.registration({ issuer: api.at.issuer, tenantId: made.tenantId }),
    }
    await soon(t, 403, () =>
      at.post('/api/v1/agents/auth/register/pow', undefined, { name: 'A', ...start }),
    )
  }
  // The user stays, and the agent logs in again with its key.
  t.is((await api.get('/api/v1/tenant-users', token)).status, 200)
  t.is(
    (await api.login(agent.key, { agent_id: agent.agentId, tenant_id: made.tenantId })).status,
    200,
  )
  const browser = openBrowser(api.at)
  t.is((await signIn(browser, fixture)).status, 200, 'the form again, not a session')
  t.is((await api.post('/api/v1/sandbox/fixture-users', token, {})).status, 403)
  const users = await api.list('/api/v1/tenant-users?status=removed', token)
  t.deepEqual(
    users.rows.map(({ fixture: is }) => is),
    [true],
  )

  await activate(second, token).gives(409, 'conflict')
  const audit = await sql<{ type: string; data: Json }>(api.at)`
    select type, data from audit_events where tenant_id = ${made.tenantId}
    and type in ('tenant.activated', 'tenant_user.removed', 'admin.delegation.revoked')
    order by type`
  t.deepEqual(
    audit.map(({ type }) => type),
    ['admin.delegation.revoked', 'tenant.activated', 'tenant_user.removed'],
  )
  t.false(JSON.stringify(audit).includes(secret))
})

test('activation is refused to agents, fixture users, one factor and the control plane', async (t) => {
  const workspace: Workspace = await api.workspace()
  t.is((await activate(api, workspace.token)).status, 403)
  t.is((await activate(api, workspace.operator)).status, 403)
  t.is((await api.post(PATH, undefined, {})).status, 401)

  // A fixture user with the role owner: the creator of the sandbox knows its password.
  const human = await newFixture(api, workspace)
  const users = await api.list('/api/v1/tenant-users', workspace.token)
  const id = String(users.rows.find(({ email }) => email === human.email)?.['id'])
  const json = { roles: ['owner'] }
  await api.patch(`/api/v1/tenant-users/${id}`, workspace.token, json).gives(200)
  const fixture = await present(api, human)
  const fixtureToken = await ownToken(api, workspace, fixture, 'openid tenant:manage users:manage')
  await activate(api, fixtureToken).gives(403, 'policy_denied')
  const still = await api.get('/api/v1/vault/credentials', workspace.token)
  t.is(still.status, 200, 'the token is still good')

  const { token } = await owned({ factor: false })
  const weak = await activate(api, token).gives(401, 'insufficient_user_authentication')
  t.regex(String(weak.headers['www-authenticate']), /acr_values="aal3 aal2"/)
})

test('of concurrent activations and fixture mints, one activation wins and no fixture is left', async (t) => {
  const { made, token } = await owned()
  const answers = await Promise.all([
    ...Array.from({ length: 8 }, (_, at) => activate(at % 2 ? api : second, token)),
    ...Array.from({ length: 4 }, () => api.post('/api/v1/sandbox/fixture-users', token, {})),
  ])
  const activations = answers.slice(0, 8).map(({ status }) => status)
  t.deepEqual(activations.toSorted(), [200, ...Array.from({ length: 7 }, () => 409)])
  for (const { status } of answers.slice(8)) t.true([201, 403].includes(status), String(status))
  const left = await sql(api.at)`
    select id from tenant_users where tenant_id = ${made.tenantId} and fixture
    and status <> 'removed'`
  t.deepEqual(left, [])
  const winner = answers.find(({ status }) => status === 200)
  const [rotated] = (winner?.body['rotated_applications'] ?? []) as Json[]
  t.is((await clientToken(api, made.clientId, String(rotated?.['client_secret']))).status, 200)
})

test('a connection lost at the last step leaves the sandbox unchanged', async (t) => {
  const { made, token } = await owned()
  t.is((await clientToken(api, made.clientId, made.clientSecret)).status, 200)
  const run = (text: string) => sql(api.at, text, [])
  await run(`create function test_die() returns trigger language plpgsql as $$
    begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$`)
  await run(`create trigger test_die before insert on revoked_tokens
    for each row when (new.tenant_id = '${made.tenantId}') execute function test_die()`)
  t.teardown(() => run('drop function if exists test_die() cascade'))
  const died = await activate(api, token)
  t.true(died.status >= 500, String(died.status))
  t.is((await clientToken(api, made.clientId, made.clientSecret)).status, 200)
  const browser = openBrowser(api.at)
  t.is(
    (
      await signIn(
        browser,
        fixtureOf({
          body: {
            tenant_slug: made.tenantSlug,
            fixture_end_user: { email: made.email, password: made.password },
          },
        } as unknown as Workspace),
      )
    ).status,
    303,
  )
  const [tenant] = await sql<{ environment: string }>(api.at)`
    select environment from tenants where id = ${made.tenantId}`
  t.is(tenant?.environment, 'sandbox')
  await run('drop function test_die() cascade')
  t.is((await activate(api, token)).status, 200)
})
