/** API keys of tenants: what they may do, how they end, and that their secret is kept nowhere. */
import test from 'ava'
import { request } from 'undici'
import { apiOf, type Json, type Workspace } from '../../../support/api.js'
import { SERVING_PROCESSES } from '../../../support/fleet/through.js'
import { owned } from '../../../support/identity/owner.js'
import { sql } from '../../../support/storage/sql.js'
import { sharedPair, testService } from '../../../support/service.js'

const [running, second] = await sharedPair('people')
const api = apiOf(running)
const elsewhere = apiOf(second)

const KEYS = '/api/v1/api-keys'
const DAY_MS = 86_400_000

async function made(
  token: string,
  json: Json,
): Promise<{ id: string; secret: string; body: Json }> {
  const { body } = await api.post(KEYS, token, json).gives(201)
  return { id: String(body['id']), secret: String(body['secret']), body }
}

const READER = { name: 'Reader', scopes: ['users:read'] }
const users = (at: typeof api, token: string, headers = {}) =>
  at.call('GET', '/api/v1/tenant-users', { token, headers })

/** Asks until another process, too, refuses the key. The limit is one second. */
async function isRefusedSoon(token: string): Promise<boolean> {
  for (let turn = 0; turn < 100; turn += 1) {
    if ((await users(elsewhere, token)).status === 401) return true
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return false
}

test('a key has no streams of security events', async (t) => {
  const workspace = await api.workspace()
  const { secret } = await made(workspace.token, { name: 'Receiver', scopes: ['ssf.manage'] })
  const refused = await api.post('/ssf/streams', secret, {})
  t.like(refused, { status: 403, body: { error: 'forbidden' } })
  await api.post('/ssf/streams', workspace.token, {}).gives(201)
})

test('a stream of calls ends with its key', async (t) => {
  const workspace = await api.workspace()
  const { id, secret } = await made(workspace.token, { name: 'Reader', scopes: ['audit:read'] })
  const { statusCode, body } = await request(
    new URL('/api/v1/egress/calls/stream', running.baseUrl),
    { headers: { authorization: `Bearer ${secret}` } },
  )
  t.is(statusCode, 200)
  const text = body.text()
  await api.delete(`${KEYS}/${id}`, workspace.token).gives(204)
  t.true((await text).startsWith('retry: 2000'))
})

test('a key is shown once, is stored as a hash, and reads what its scopes permit', async (t) => {
  const workspace = await api.workspace()
  const { id, secret, body } = await made(workspace.token, READER)
  t.regex(secret, /^svc_key_[A-Za-z0-9_-]{49}$/)
  t.like(body, {
    name: 'Reader',
    scopes: ['users:read'],
    allowed_addresses: [],
    created_by: { type: 'agent', id: workspace.agentId },
    parent_id: null,
    status: 'active',
    last_used_at: null,
  })
  const lifetime = Date.parse(String(body['expires_at'])) - Date.parse(String(body['created_at']))
  t.is(lifetime, 90 * DAY_MS)
  for (const at of [api, elsewhere]) t.is((await users(at, secret)).status, 200)
  const refused = await api.post('/api/v1/tenant-users', secret, { email: 'a@harbour.test' })
  t.like(refused, { status: 403, body: { error: 'insufficient_scope' } })
  const read = await api.get(`${KEYS}/${id}`, workspace.token).gives(200)
  t.false('secret' in read.body)
  const { rows } = await api.list(KEYS, workspace.token)
  t.deepEqual(
    rows.map((row) => row['id']),
    [id],
  )
  const stored = await sql<{ text: string }>(running)`
    select api_keys::text as text from api_keys where id = ${id}`
  t.false(stored[0]!.text.includes(secret.slice(8)))
  const used = await sql<{ at: Date | null }>(running)`
    select last_used_at as at from api_keys where id = ${id}`
  t.not(used[0]!.at, null)
})

test('texts that are not keys are refused', async (t) => {
  const { secret } = await made((await api.workspace()).token, READER)
  const last = secret.endsWith('A') ? 'B' : 'A'
  for (const token of [secret.slice(0, -1) + last, `${secret}A`, 'svc_key_', secret.slice(8)]) {
    const { status, headers } = await users(api, token)
    t.is(status, 401, token)
    t.regex(headers['www-authenticate'] ?? '', /invalid_token/)
  }
  const answer = await api.call('GET', '/api/v1/tenant-users', {
    headers: { authorization: `DPoP ${secret}` },
  })
  t.is(answer.status, 401)
})

test('a key has at most the scopes of its creator, never scopes of the deployment', async (t) => {
  const workspace = await api.workspace()
  const weak = await made(workspace.token, {
    name: 'Weak',
    scopes: ['applications:manage', 'users:read'],
  })
  const beyond = await api.post(KEYS, weak.secret, { name: 'Strong', scopes: ['users:manage'] })
  t.like(beyond, { status: 403, body: { error: 'insufficient_scope' } })
  for (const scope of ['deployment:manage', 'signing_keys:manage', 'openid', 'vault:read']) {
    t.is((await api.post(KEYS, workspace.token, { name: 'Key', scopes: [scope] })).status, 400)
  }
  t.is((await api.post(KEYS, workspace.operator, READER)).status, 403, 'the control plane')
  const child = await made(weak.secret, { name: 'Child', scopes: ['users:read'] })
  t.like(child.body, { parent_id: weak.id, created_by: { id: workspace.agentId } })
  t.true(String(child.body['expires_at']) <= String(weak.body['expires_at']))
  await api.post(KEYS, weak.secret, { ...READER, expires_in_secs: 100 * 86_400 }).gives(400)
  const strong = await made(workspace.token, { name: 'Strong', scopes: ['users:read'] })
  t.is((await api.post(`${KEYS}/${strong.id}/rotate`, weak.secret)).status, 403)
  t.is((await users(api, child.secret)).status, 200)
  await api.delete(`${KEYS}/${weak.id}`, workspace.token).gives(204)
  t.is((await users(api, weak.secret)).status, 401)
  t.true(await isRefusedSoon(child.secret), 'the keys that a key made end with it')
  t.is((await api.get(`${KEYS}/${child.id}`, workspace.token)).status, 404)
})

test('a key loses what its creator loses', async (t) => {
  const { made: workspace, token } = await owned(api, {
    scope: 'openid tenant:manage users:manage users:read applications:manage',
  })
  const { secret } = await made(token, { name: 'Owner', scopes: ['users:read', 'tenant:manage'] })
  t.is((await api.get('/api/v1/tenant/settings', secret)).status, 200)
  await sql(running)`
    update tenant_users set roles = '{admin}' where tenant_id = ${workspace.tenantId}
    and 'owner' = any(roles)`
  // Nothing announces this change, so each process serves what it has read for up to a second.
  let refusals = 0
  for (let turn = 0; turn < 200 && refusals < 20 * SERVING_PROCESSES; turn += 1) {
    const { status } = await api.get('/api/v1/tenant/settings', secret)
    refusals = status === 403 ? refusals + 1 : 0
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  t.true(refusals >= 20 * SERVING_PROCESSES)
  t.is((await users(api, secret)).status, 200)
  await sql(running)`
    update tenant_users set status = 'suspended' where tenant_id = ${workspace.tenantId}
    and 'admin' = any(roles)`
  t.true(await isRefusedSoon(secret))
})

test('a revoked key is refused immediately here, and within a second elsewhere', async (t) => {
  const workspace = await api.workspace()
  const { id, secret } = await made(workspace.token, READER)
  t.is((await users(elsewhere, secret)).status, 200)
  const path = `${KEYS}/${id}`
  t.is((await api.delete(path, workspace.token)).status, 204)
  t.is((await users(api, secret)).status, 401)
  t.true(await isRefusedSoon(secret))
  t.is((await api.delete(path, workspace.token)).status, 404)
})

test('after a rotation both secrets work until the overlap ends', async (t) => {
  const workspace = await api.workspace()
  const { id, secret } = await made(workspace.token, READER)
  const path = `${KEYS}/${id}/rotate`
  const rotated = await api.post(path, workspace.token, { overlap_secs: 3600 }).gives(200)
  const next = String(rotated.body['secret'])
  t.not(next, secret)
  for (const each of [secret, next]) t.is((await users(api, each)).status, 200)
  const again = await api.post(path, workspace.token, { overlap_secs: 0 })
  const last = String(again.body['secret'])
  t.is((await users(api, secret)).status, 401, 'a secret from before the last but one ends')
  t.is((await users(api, next)).status, 401, 'no overlap')
  t.is((await users(api, last)).status, 200)
  const own = await made(workspace.token, { name: 'Own', scopes: ['applications:manage'] })
  await api.post(`${KEYS}/${own.id}/rotate`, own.secret, {}).gives(200)
  const extended = await api.post(`${KEYS}/${own.id}/rotate`, own.secret, {
    expires_in_secs: 86_400,
  })
  t.is(extended.status, 400, 'a key does not extend itself')
})

test('a key works only from its addresses', async (t) => {
  const workspace = await api.workspace()
  const allowed = (allowed_addresses: string[]) => ({ ...READER, allowed_addresses })
  const far = await made(workspace.token, allowed(['203.0.113.0/24']))
  const refused = await users(api, far.secret)
  t.like(refused, { status: 403, body: { error: 'policy_denied' } })
  const near = await made(workspace.token, allowed(['203.0.113.0/24', '127.0.0.0/8', '::1/128']))
  t.is((await users(api, near.secret)).status, 200)
  for (const text of ['127.0.0.1', '10.0.0.1/8', 'anywhere', '::1/200']) {
    const { status, body } = await api.post(KEYS, workspace.token, allowed([text]))
    t.is(status, 400, text)
    t.is((body['errors'] as Json[])[0]!['pointer'], '#/allowed_addresses/0')
  }
  const limited = await made(workspace.token, {
    name: 'Limited',
    scopes: ['applications:manage', 'users:read'],
    allowed_addresses: ['127.0.0.0/8', '::1/128'],
  })
  t.is((await api.post(KEYS, limited.secret, allowed(['0.0.0.0/0']))).status, 400)
  const child = await made(limited.secret, READER)
  t.deepEqual(child.body['allowed_addresses'], ['127.0.0.0/8', '::1/128'])
})

test('lifetimes and numbers are limited, and a replay leaves the secret out', async (t) => {
  const workspace = await api.workspace()
  await api.post(KEYS, workspace.token, { ...READER, expires_in_secs: 366 * 86_400 }).gives(400)
  const headers = { 'idempotency-key': crypto.randomUUID() }
  const first = await api.post(KEYS, workspace.token, READER, headers).gives(201)
  const replay = await api.post(KEYS, workspace.token, READER, headers)
  t.is(replay.headers['idempotency-replayed'], 'true')
  t.is(replay.body['id'], first.body['id'])
  t.false('secret' in replay.body)
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => api.post(KEYS, workspace.token, READER)),
  )
  t.deepEqual(
    answers.map(({ status }) => status).toSorted(),
    [201, 201, 201, 201, 201, 409, 409, 409],
  )
})

test('introspection describes a key, to its own tenant only', async (t) => {
  const workspace = await api.workspace()
  const { id, secret } = await made(workspace.token, READER)
  const asked = async ({ token }: Workspace) =>
    (await api.form('/oauth/introspect', { token: secret }, { authorization: `Bearer ${token}` }))
      .body
  t.like(await asked(workspace), {
    active: true,
    token_type: 'Bearer',
    scope: 'users:read',
    client_id: id,
    sub: id,
    subject_type: 'service',
    tenant_id: workspace.tenantId,
  })
  t.deepEqual(await asked(await api.workspace('Elsewhere')), { active: false })
  t.is((await users(api, (await api.workspace('Third')).token)).status, 200)
  await api.delete(`${KEYS}/${id}`, workspace.token)
  t.deepEqual(await asked(workspace), { active: false })
})

test('every change is an event and an audit event', async (t) => {
  const workspace = await api.workspace()
  const { id, secret } = await made(workspace.token, READER)
  const rotated = await api.post(`${KEYS}/${id}/rotate`, workspace.token)
  await api.delete(`${KEYS}/${id}`, workspace.token)
  const { rows } = await api.list('/api/v1/audit-events?limit=50', workspace.token)
  const own = rows.filter(({ resource }) => (resource as Json)['id'] === id)
  t.deepEqual(own.map(({ type }) => type).toSorted(), [
    'api_key.created',
    'api_key.revoked',
    'api_key.rotated',
  ])
  const text = JSON.stringify(rows)
  for (const each of [secret, String(rotated.body['secret'])]) t.false(text.includes(each))
})

test('without the feature there are no routes, no capability, no event types and no keys', async (t) => {
  const plain = await testService({ peerOf: running })
  t.teardown(() => plain.end())
  const other = apiOf(plain)
  const workspace = await api.workspace()
  const { secret } = await made(workspace.token, READER)
  t.is((await users(other, secret)).status, 401)
  t.is((await other.get(KEYS, workspace.token)).status, 404)
  const { body } = await other.get('/api/v1/capabilities')
  t.false((body['capabilities'] as string[]).includes('api_keys'))
  const hook = { url: 'https://receiver.example/in', event_types: ['api_key.created'] }
  t.is((await other.post('/api/v1/webhooks', workspace.token, hook)).status, 400)
})
