/** An initial access token is limited by the scopes that it was created with, and by the current ones of its creator. */
import test from 'ava'
import type { Json } from '../../../support/api.js'
import { fixtureOf, ownToken, present } from '../../../support/agents/delegation.js'
import { TOKENS } from '../../../support/identity/registering.js'
import { sharedApi } from '../../../support/service.js'

const { api } = await sharedApi('clients')

const register = (token: string, scope?: string) =>
  api.post('/oauth/register', token, {
    redirect_uris: ['https://app.example/back'],
    grant_types: ['client_credentials'],
    ...(scope === undefined ? {} : { scope }),
  })
/** More than any token below permits. */
const ALL = [
  'openid',
  'profile',
  'applications:manage',
  'commerce:manage',
  'users:manage',
  'webhooks:manage',
]
const GONE = /may no longer manage applications/

async function tokenOf(maker: string, more: object = { scopes: ALL }): Promise<string> {
  const made = await api.post(TOKENS, maker, { max_uses: 5, ...more }).gives(201)
  return String(made.body['token'])
}

test('created by a user: limited by the roles that are left', async (t) => {
  const workspace = await api.workspace()
  const { id } = workspace.body['fixture_end_user'] as Json
  const user = `/api/v1/tenant-users/${String(id)}`
  const roles = (names: readonly string[]) => api.patch(user, workspace.token, { roles: names })
  await roles(['admin'])
  const person = await present(api, fixtureOf(workspace))
  const scope = 'openid applications:manage users:manage'
  const token = await tokenOf(await ownToken(api, workspace, person, scope))
  t.is((await register(token, 'users:manage')).body['scope'], 'users:manage')
  // Never more than the creating token had, whatever else the user may do.
  t.is((await register(token, 'webhooks:manage')).body['scope'], 'openid')

  await roles([])
  const demoted = await register(token, 'openid').gives(401)
  t.regex(String(demoted.body['error_description']), GONE)
  await roles(['admin'])
  t.is((await register(token, 'users:manage')).body['scope'], 'users:manage')
  t.is((await api.post(`${user}/suspend`, workspace.token)).status, 200)
  t.is((await register(token, 'openid')).status, 401)
})

test('created by an agent: limited by the scopes that are left', async (t) => {
  const { tenantId, token: owner } = await api.workspace()
  const { key, agentId } = await api.register(tenantId)
  const agent = `/api/v1/agents/${agentId}`
  const scopes = (names: readonly string[]) => api.patch(agent, owner, { scopes: names })
  t.is((await scopes(['applications:manage', 'users:manage'])).status, 200)
  const login = await api.login(key, { agent_id: agentId, tenant_id: tenantId })
  const token = await tokenOf(String(login.body['access_token']))
  t.is((await register(token, 'users:manage')).body['scope'], 'users:manage')

  await scopes(['applications:manage'])
  t.is((await register(token, 'users:manage')).body['scope'], 'openid')
  t.is((await register(token, 'applications:manage')).body['scope'], 'applications:manage')
  await scopes(['users:manage'])
  t.is((await register(token, 'openid')).status, 401)
  await scopes(['applications:manage', 'users:manage'])
  t.is((await api.post(`${agent}/suspend`, owner)).status, 200)
  t.is((await register(token, 'openid')).status, 401)
})

test('created by an application: limited by the scopes that are left, and by all scopes of an owner’s agent', async (t) => {
  const { token: owner } = await api.workspace()
  const application = { name: 'Maker', redirect_uris: [], grant_types: ['client_credentials'] }
  const made = await api.post('/api/v1/applications', owner, {
    ...application,
    scopes: ['applications:manage', 'users:manage'],
  })
  const issued = await api.form('/oauth/token', {
    grant_type: 'client_credentials',
    client_id: String(made.body['client_id']),
    client_secret: String(made.body['client_secret']),
    scope: 'applications:manage users:manage',
  })
  const token = await tokenOf(String(issued.body['access_token']))
  t.is((await register(token, 'users:manage')).body['scope'], 'users:manage')
  const at = `/api/v1/applications/${String(made.body['id'])}`
  const less = { ...application, scopes: ['users:manage'] }
  t.is((await api.put(at, owner, less)).status, 200)
  t.is((await register(token, 'users:manage')).status, 401)
  t.is((await api.delete(at, owner)).status, 204)
  t.is((await register(token, 'openid')).status, 401)

  t.is((await register(await tokenOf(owner), 'commerce:manage')).body['scope'], 'commerce:manage')
})

test('by default no client gets a scope of its creator', async (t) => {
  const { token: owner } = await api.workspace()
  const answer = await api.post('/api/v1/api-resources', owner, {
    resource: 'https://localhost/orders',
    name: 'Orders',
    scopes: [{ name: 'orders:read', description: 'Read your orders' }],
  })
  t.is(answer.status, 201)
  const token = await tokenOf(owner, {})
  const user = ['openid', 'profile', 'email', 'phone', 'address', 'offline_access', 'orders:read']
  const wanted = [...ALL, ...user, 'vault:read', 'moon']
  const made = await register(token, [...new Set(wanted)].join(' '))
  t.deepEqual(new Set(String(made.body['scope']).split(' ')), new Set(user))
  t.is((await register(token, ALL.slice(2).join(' '))).body['scope'], 'openid')
})

test('the scopes of the token bound user scopes too, for all changes of its clients', async (t) => {
  const { token: owner } = await api.workspace()
  const made = await api.post(TOKENS, owner, {
    max_uses: 5,
    scopes: ['openid', 'email', 'users:read', 'deployment:manage', 'moon'],
  })
  t.is(made.status, 201)
  t.deepEqual(made.body['scopes'], ['openid', 'email', 'users:read'])
  const token = String(made.body['token'])
  const everything = [...ALL, 'email', 'users:read', 'deployment:manage', 'moon'].join(' ')
  const client = await register(token, everything)
  t.is(client.body['scope'], 'openid email users:read')
  t.is((await register(token)).body['scope'], 'openid email', 'of the default scopes')
  t.is((await register(token, 'profile users:manage')).body['scope'], 'openid')

  const { registration_access_token, registration_client_uri, ...metadata } = client.body
  const at = new URL(String(registration_client_uri)).pathname
  const { client_secret_expires_at: _, client_id_issued_at: __, ...whole } = metadata
  const replaced = await api.put(at, String(registration_access_token), {
    ...whole,
    scope: everything,
  })
  t.is(replaced.body['scope'], 'openid email users:read')
  const { client_id, client_secret } = client.body
  const issued = await api.form('/oauth/token', {
    grant_type: 'client_credentials',
    client_id: String(client_id),
    client_secret: String(client_secret),
    scope: 'users:manage',
  })
  t.is(issued.body['error'], 'invalid_scope')
})

test('a token whose scopes the creator lacks is refused', async (t) => {
  const { token: owner } = await api.workspace()
  const refused = await api.post(TOKENS, owner, { scopes: ['deployment:manage', 'moon'] })
  t.like(refused, { status: 400, body: { error: 'invalid_scope' } })
  t.is((await api.post(TOKENS, owner, { scopes: [] })).status, 400)
})
