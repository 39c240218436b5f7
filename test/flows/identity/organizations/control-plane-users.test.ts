/** Users on the control-plane routes, with tokens that an application got from their sign-in. */
import test, { type ExecutionContext } from 'ava'
import { claimsOf, type Json } from '../../../support/api.js'
import { openBrowser } from '../../../support/pages/browser.js'
import {
  ask,
  decide,
  fixtureOf,
  delegate,
  newFixture,
  ownToken,
  poll,
  present,
} from '../../../support/agents/delegation.js'
import { sql } from '../../../support/storage/sql.js'
import { owned } from '../../../support/identity/owner.js'
import { signIn } from '../../../support/identity/person.js'
import { sharedApi } from '../../../support/service.js'

const PATH = '/api/v1/control-plane/organizations'
const EVERYTHING = 'openid org:read org:create tenant:manage'
const { api, running } = await sharedApi('plain')

const tenantsOf = (organizationId: unknown) => `${PATH}/${String(organizationId)}/tenants`
const tokenOf = (organizationId: unknown) => `${PATH}/${String(organizationId)}/token`

async function owner(scope = EVERYTHING) {
  const made = await owned(api, { factor: false, scope })
  const organizationId = String(claimsOf(made.token)['organization_id'])
  return { ...made, organizationId, tenantId: made.made.tenantId }
}

async function idsOf(token: string): Promise<unknown[]> {
  return (await api.list(PATH, token)).rows.map(({ id }) => id)
}

/** Sets the role of a token's user in an organization directly in the database. */
async function setRole(organizationId: string, token: string, role: string): Promise<void> {
  const { sub, tenant_id: tenantId } = claimsOf(token)
  await sql(running)`
    update organization_members set role = ${role} where organization_id = ${organizationId}
    and member_id = (select account_id from tenant_users where tenant_id = ${tenantId}
    and sub = ${sub})`
}

function refused(t: ExecutionContext, { status, body }: { status: number; body: Json }, what = '') {
  t.is(status, 403, `${what} ${JSON.stringify(body)}`)
}

test('an owner reads the organization, creates an environment, and becomes its first user', async (t) => {
  const { token, organizationId, tenantId, person } = await owner()
  const listed = await api.list(PATH, token)
  t.is(listed.rows.length, 1)
  t.like(listed.rows[0], { id: organizationId, role: 'owner', status: 'active' })
  const before = await api.list(tenantsOf(organizationId), token)
  t.deepEqual(
    before.rows.map(({ id }) => id),
    [tenantId],
  )

  const key = { 'idempotency-key': 'by-a-person' }
  const json = { name: 'Live', environment: 'production' }
  const created = await api.post(tenantsOf(organizationId), token, json, key).gives(201)
  const { id, slug } = created.body
  t.like(created.body, { organization_id: organizationId, environment: 'production' })
  const again = await api.post(tenantsOf(organizationId), token, json, key)
  t.is(again.headers['idempotency-replayed'], 'true')
  t.is(again.body['id'], id)

  // The user signs in there with the same account, under another subject.
  const browser = openBrowser(running)
  const human = { ...person.human, tenantSlug: String(slug) }
  t.is((await signIn(browser, human)).status, 303)
  const there = await ownToken(api, { tenantId: String(id) }, { browser, human }, EVERYTHING)
  t.like(claimsOf(there), { tenant_id: id, organization_id: organizationId, subject_type: 'human' })
  t.not(claimsOf(there)['sub'], claimsOf(token)['sub'])
  t.is((await api.get('/api/v1/tenant/settings', there)).status, 200)

  const audit = await sql<{ type: string; subject: Json }>(running)`
    select type, subject from audit_events where tenant_id = ${id} order by sequence limit 3`
  t.deepEqual(
    audit.map(({ type }) => type),
    ['org.created', 'org.tenant.created', 'admin.user.created'],
  )
  t.is(audit[1]?.subject['sub'], claimsOf(there)['sub'])
})

test('an admin and a member read it and change nothing, whatever the token’s scopes', async (t) => {
  const { token, organizationId } = await owner()
  for (const role of ['admin', 'member']) {
    await setRole(organizationId, token, role)
    const { rows } = await api.list(PATH, token)
    t.deepEqual(
      rows.map((row) => [row['id'], row['role']]),
      [[organizationId, role]],
    )
    t.is((await api.get(tenantsOf(organizationId), token)).status, 200)
    refused(t, await api.post(tenantsOf(organizationId), token, { name: 'No' }), role)
    const bound = await api.post(tokenOf(organizationId), token)
    t.is(bound.body['scope'], 'org:read', role)
  }
})

test('a user of the tenant without a role in the organization reads it as a member', async (t) => {
  const workspace = await api.workspace()
  const human = await newFixture(api, workspace)
  const users = await api.list('/api/v1/tenant-users', workspace.token)
  const id = String(users.rows.find(({ email }) => email === human.email)?.['id'])
  // A tenant owner has the scopes, but no role in the organization.
  await api.patch(`/api/v1/tenant-users/${id}`, workspace.token, { roles: ['owner'] }).gives(200)
  const person = await present(api, human)
  const token = await ownToken(api, workspace, person, EVERYTHING)
  const { rows } = await api.list(PATH, token)
  t.deepEqual(
    rows.map((row) => [row['id'], row['role']]),
    [[workspace.organizationId, 'member']],
  )
  refused(t, await api.post(tenantsOf(workspace.organizationId), token, { name: 'No' }))
  const reader = await ownToken(api, workspace, person, 'openid org:read')
  t.is((await api.get(tenantsOf(workspace.organizationId), reader)).status, 200)
  const lacking = await api.post(PATH, reader, { name: 'No' })
  t.is(lacking.body['error'], 'insufficient_scope')
})

test('an organization created by a user is theirs, and other tenants get no event', async (t) => {
  const { token, organizationId, tenantId, person } = await owner()
  const created = await api.post(PATH, token, { name: 'Second venture' }).gives(201)
  t.like(created.body, { role: 'owner', status: 'active' })
  const second = String(created.body['id'])
  t.deepEqual(await idsOf(token), [second, organizationId])

  // The event names the user by the subject of this tenant.
  const [added] = await sql<{ data: Json }>(running)`
    select data from all_events where tenant_id = ${tenantId} and type = 'org.member.added'
    and data #>> '{resource,id}' = ${second}`
  t.deepEqual(added?.data['member'], { type: 'human', id: claimsOf(token)['sub'] })

  const tenant = await api.post(tenantsOf(second), token, { name: 'Venture' }).gives(201)
  const browser = openBrowser(running)
  const human = { ...person.human, tenantSlug: String(tenant.body['slug']) }
  t.is((await signIn(browser, human)).status, 303)
  const there = await ownToken(
    api,
    { tenantId: String(tenant.body['id']) },
    { browser, human },
    EVERYTHING,
  )
  // An application there sees only its own organization, although the user owns both.
  t.deepEqual(await idsOf(there), [second])
  for (const path of [tenantsOf(organizationId), tenantsOf('unknown')])
    t.is((await api.get(path, there)).status, 404)
  t.is((await api.post(tokenOf(organizationId), there)).status, 404)
  t.is((await api.post(tenantsOf(organizationId), there, { name: 'No' })).status, 404)
})

test('another organization is not found for a user', async (t) => {
  const [mine, theirs] = [await owner(), await owner()]
  const at = tenantsOf(theirs.organizationId)
  t.is((await api.get(at, mine.token)).status, 404)
  t.is((await api.post(at, mine.token, { name: 'No' })).status, 404)
  t.is((await api.post(tokenOf(theirs.organizationId), mine.token)).status, 404)
})

test("a user's organization token has fewer scopes, expires earlier, and is for the control plane only", async (t) => {
  const { token, organizationId, tenantId } = await owner()
  const second = String((await api.post(PATH, token, { name: 'Other one' })).body['id'])
  const issued = await api.post(tokenOf(second), token).gives(200)
  t.is(issued.headers['cache-control'], 'no-store')
  const bound = String(issued.body['access_token'])
  t.like(issued.body, {
    token_type: 'Bearer',
    scope: 'org:read tenant:manage',
    organization_id: second,
  })
  const [claims, own] = [claimsOf(bound), claimsOf(token)]
  for (const name of ['sub', 'sid', 'grant_id', 'acr', 'amr', 'auth_time', 'client_id'])
    t.deepEqual(claims[name], own[name], name)
  t.like(claims, { organization_id: second, organization_bound: true, aud: running.issuer })
  t.true(Number(claims['exp']) <= Number(own['exp']))

  t.deepEqual(await idsOf(bound), [second])
  t.is((await api.get(tenantsOf(organizationId), bound)).status, 404)
  t.is((await api.post(tenantsOf(second), bound, { name: 'By a bound one' })).status, 201)
  // It issues no further tokens, creates no organizations, and grants nothing in its original tenant.
  refused(t, await api.post(tokenOf(second), bound))
  refused(t, await api.post(PATH, bound, { name: 'No' }))
  refused(t, await api.get('/api/v1/tenant/settings', bound))
  const own403 = await api.post(tokenOf(organizationId), token)
  refused(t, await api.post(tokenOf(second), String(own403.body['access_token'])))
  t.deepEqual(await idsOf(String(own403.body['access_token'])), [organizationId])

  // It ends with its session.
  await sql(running)`
    update sessions set ended_at = now() where tenant_id = ${tenantId} and id = ${own['sid']}`
  await until(async () => (await api.get(PATH, bound)).status === 401)
  t.is((await api.get(PATH, bound)).status, 401)
})

test('switching is for agents, and a delegated token changes nothing', async (t) => {
  const { token, organizationId, tenantId } = await owner()
  refused(t, await api.post(`${tenantsOf(organizationId)}/${tenantId}/switch`, token))

  const workspace = await api.workspace()
  const lender = await present(api, fixtureOf(workspace))
  const delegated = await delegate(api, workspace.token, lender, { scope: 'openid org:read' })
  t.deepEqual(await idsOf(delegated.token), [workspace.organizationId])
  refused(t, await api.post(tokenOf(workspace.organizationId), delegated.token))
  const { made, person, token: own } = await owned(api)
  const agent = await api.register(made.tenantId)
  const login = await api.login(agent.key, { agent_id: agent.agentId, tenant_id: made.tenantId })
  const direct = String(login.body['access_token'])
  const asked = await ask(api, direct, { scope: 'openid org:create tenant:manage' })
  t.is((await decide(person, asked)).status, 303)
  const acting = String((await poll(api, direct, asked)).body['access_token'])
  t.is(claimsOf(acting)['scope'], 'openid tenant:manage org:create')
  const organization = claimsOf(own)['organization_id']
  refused(t, await api.post(PATH, acting, { name: 'No' }))
  refused(t, await api.post(tenantsOf(organization), acting, { name: 'No' }))
})

test('an application token is not an operator token', async (t) => {
  const workspace = await api.workspace()
  const made = await api.post('/api/v1/applications', workspace.token, {
    name: 'Machine',
    client_type: 'confidential',
    grant_types: ['client_credentials'],
    scopes: ['org:read'],
  })
  t.is(made.status, 201)
  const { client_id: id, client_secret: secret } = made.body
  const basic = Buffer.from(`${String(id)}:${String(secret)}`).toString('base64')
  const fields = { grant_type: 'client_credentials', scope: 'org:read' }
  const issued = await api.form('/oauth/token', fields, { authorization: `Basic ${basic}` })
  t.is(issued.status, 200, JSON.stringify(issued.body))
  refused(t, await api.get(PATH, String(issued.body['access_token'])))
})

test('a user suspended in the tenant has no access to its organization', async (t) => {
  const { token, organizationId, tenantId } = await owner()
  const [user] = await sql<{ id: string }>(running)`
    select id from tenant_users where tenant_id = ${tenantId} and sub = ${claimsOf(token)['sub']}`
  await sql(running)`
    update tenant_users set status = 'suspended' where tenant_id = ${tenantId}
    and id = ${user?.id}`
  const seen = await api.get(tenantsOf(organizationId), token)
  t.true([401, 404].includes(seen.status), String(seen.status))
})

async function until(holds: () => Promise<boolean>): Promise<void> {
  const endMs = Date.now() + 5_000
  while (Date.now() < endMs && !(await holds())) continue
}
