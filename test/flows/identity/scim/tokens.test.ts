/** SCIM tokens, and what they reach (docs/reference/identity.md, SCIM). */
import { randomUUID } from 'node:crypto'
import test from 'ava'
import { apiOf, type Json } from '../../../support/api.js'
import { openDirectory, SCIM_USER } from '../../../support/identity/directory.js'
import { known } from '../../../support/fleet/through.js'
import { sql } from '../../../support/storage/sql.js'
import { sharedService } from '../../../support/service.js'
import { until } from '../../../support/service/watch.js'

const PATH = '/api/v1/scim/tokens'
const running = await sharedService('enterprise')
/** Without groups, and with limits of requests. */
const limited = await sharedService('strict')
const off = await sharedService('plain')
const api = apiOf(running)
const users = apiOf(limited)

test('a token is created, listed without its secret, and deleted', async (t) => {
  const workspace = await api.workspace()
  const json = {
    description: 'Okta',
    expires_at: '2999-01-01T00:00:00Z',
    organization_id: workspace.organizationId,
  }
  const key = { 'idempotency-key': 'one-token' }
  const created = await api.post(PATH, workspace.token, json, key).gives(201)
  const { token, ...record } = created.body
  t.regex(String(token), /^scim_[\w-]{43}$/)
  t.is(created.headers['location'], `${PATH}/${String(record['id'])}`)
  t.like(record, {
    description: 'Okta',
    expires_at: '2999-01-01T00:00:00.000Z',
    organization_id: workspace.organizationId,
    roles: ['admin'],
  })
  const replayed = await api.post(PATH, workspace.token, json, key)
  t.deepEqual(replayed.body, record)
  t.deepEqual((await api.list(PATH, workspace.token)).rows, [record])
  const stored = await sql<{ text: string }>(running)`
    select scim_tokens::text as text from scim_tokens where id = ${record['id']}`
  t.false(stored[0]!.text.includes(String(token)))

  t.is((await api.get('/scim/v2/Users', String(token))).status, 200)
  const at = `${PATH}/${String(record['id'])}`
  t.is((await api.delete(at, workspace.token)).status, 204)
  t.is((await api.delete(at, workspace.token)).status, 404)
  await known(
    'the token is refused',
    async () => (await api.get('/scim/v2/Users', String(token))).status === 401,
  )
  const audit = await sql<{ type: string }>(running)`
    select type from audit_events where tenant_id = ${workspace.tenantId}
    and type like 'admin.scim%' order by sequence`
  t.deepEqual(
    audit.map(({ type }) => type),
    ['admin.scim_token.created', 'admin.scim_token.deleted'],
  )
})

test('a token needs nothing but a caller with users:manage', async (t) => {
  const workspace = await api.workspace()
  const plain = await api.post(PATH, workspace.token, {}).gives(201)
  t.like(plain.body, { description: null, expires_at: null, organization_id: null })
  const refused = async (json: Json, status: number) =>
    t.is((await api.post(PATH, workspace.token, json)).status, status, JSON.stringify(json))
  await refused({ expires_at: '2001-01-01T00:00:00Z' }, 400)
  await refused({ expires_at: 'tomorrow' }, 400)
  await refused({ organization_id: randomUUID() }, 404)
  await refused({ organization_id: (await api.workspace()).organizationId }, 404)
  await refused({ roles: ['root'] }, 400)
  const login = await api.login(
    workspace.key,
    { tenant_id: workspace.tenantId, agent_id: workspace.agentId },
    'users:manage',
  )
  const narrow = String(login.body['access_token'])
  t.is((await api.post(PATH, narrow, { roles: ['admin'] })).status, 403)
  t.deepEqual((await api.post(PATH, narrow, {})).body['roles'], [])
  const reader = await api.login(
    workspace.key,
    { tenant_id: workspace.tenantId, agent_id: workspace.agentId },
    'users:read',
  )
  t.is((await api.post(PATH, String(reader.body['access_token']), {})).status, 403)
})

test('other tokens are refused below /scim/v2, and SCIM tokens elsewhere', async (t) => {
  const { workspace, token } = await openDirectory(api)
  const paths = [
    '/Users',
    `/Users/${randomUUID()}`,
    '/ServiceProviderConfig',
    '/Schemas',
    '/ResourceTypes',
  ]
  for (const path of paths) {
    for (const other of [
      undefined,
      workspace.token,
      workspace.operator,
      'scim_unknown',
      `${token}x`,
    ]) {
      const { status, headers, body } = await api.get(`/scim/v2${path}`, other)
      t.is(status, 401, path)
      t.is(headers['content-type'], 'application/scim+json')
      t.is(body['status'], '401')
      t.regex(String(headers['www-authenticate']), /^Bearer realm="scim"/)
    }
  }
  for (const path of ['/api/v1/tenant-users', PATH, '/userinfo', '/api/v1/agents'])
    t.is((await api.get(path, token)).status, 401, path)
})

test('a token ends with its time and with its tenant', async (t) => {
  const inAnHour = new Date(Date.now() + 3_600_000).toISOString()
  for (const end of [
    `update scim_tokens set expires_at = now() - interval '1 second' where tenant_id = $1`,
    'update tenants set suspended_at = now() where id = $1',
  ]) {
    const { workspace, send } = await openDirectory(api, { expires_at: inAnHour })
    t.is((await send('GET', '/Users')).status, 200)
    await sql(running.db.database, end, [workspace.tenantId])
    const isRefused = async () => (await send('GET', '/Users')).status === 401
    await t.notThrowsAsync(until(end, isRefused))
  }
})

test('the documents of the service say what it supports', async (t) => {
  const { send } = await openDirectory(users)
  const config = await send('GET', '/ServiceProviderConfig')
  t.like(config.body, {
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig'],
    patch: { supported: true },
    bulk: { supported: false, maxOperations: 0, maxPayloadSize: 0 },
    filter: { supported: true, maxResults: 200 },
    changePassword: { supported: false },
    sort: { supported: false },
    etag: { supported: true },
  })
  const [scheme] = config.body['authenticationSchemes'] as Json[]
  t.is(scheme?.['type'], 'oauthbearertoken')
  const schemas = await send('GET', '/Schemas')
  const ids = (schemas.body['Resources'] as Json[]).map(({ id }) => id)
  t.is(ids[0], SCIM_USER)
  t.is(ids.length, 2)
  const one = await send('GET', `/Schemas/${SCIM_USER}`)
  t.deepEqual(one.body, (schemas.body['Resources'] as Json[])[0])
  t.is((await send('GET', '/Schemas/urn:unknown')).status, 404)
  const types = await send('GET', '/ResourceTypes')
  t.deepEqual(
    (types.body['Resources'] as Json[]).map(({ id }) => id),
    ['User'],
  )
  t.is((await send('GET', '/ResourceTypes/User')).body['endpoint'], '/Users')
  t.is((await send('GET', '/ResourceTypes/Group')).status, 404)
})

test('everything else below /scim/v2 is a SCIM error', async (t) => {
  const { send } = await openDirectory(users)
  for (const [method, path, status] of [
    ['GET', '/Groups', 404],
    ['POST', '/Groups', 404],
    ['GET', '/Me', 404],
    ['GET', '/nothing/there', 404],
    ['GET', '', 404],
    ['DELETE', '/Users', 405],
    ['POST', '/Schemas', 405],
    ['POST', '/Bulk', 501],
  ] as const) {
    const { status: found, headers, body } = await send(method, path)
    t.is(found, status, `${method} ${path}`)
    t.is(headers['content-type'], 'application/scim+json')
    t.deepEqual(body['schemas'], ['urn:ietf:params:scim:api:messages:2.0:Error'])
    t.is(body['status'], String(status))
  }
})

test('a token without requests left gets a SCIM error with Retry-After', async (t) => {
  const { send, tokenId } = await openDirectory(users)
  const first = await send('GET', '/ServiceProviderConfig')
  t.is(first.status, 200)
  t.regex(String(first.headers['ratelimit-policy']), /"scim";q=600;w=60/)
  // As after all requests of the minute but one. Another coordination backend counts up to there.
  await sql(limited)`
    update coordination_counters set used = 599 where key like ${'%scim%'} and used between 1
    and 599`
  let last = first
  for (let sent = 0; sent < 620 && last.status === 200; sent += 1)
    last = await send('GET', '/ServiceProviderConfig')
  t.is(last.status, 429, tokenId)
  t.is(last.headers['content-type'], 'application/scim+json')
  t.is(last.body['status'], '429')
  t.true(Number(last.headers['retry-after']) >= 1)
})

test('without scim.enabled there is nothing of it', async (t) => {
  const there = apiOf(off)
  const [workspace, { token }] = [await there.workspace(), await openDirectory(api)]
  const at = await there.get('/scim/v2/Users', token).gives(404)
  t.is(at.headers['content-type'], 'application/problem+json')
  t.is((await there.get(PATH, workspace.token)).status, 404)
  const named = async (one: typeof api) =>
    ((await one.get('/api/v1/capabilities')).body['capabilities'] as string[]).includes('scim')
  t.false(await named(there))
  t.true(await named(api))
})
