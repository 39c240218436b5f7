/** Agent management, with two services on one database. */
import test from 'ava'
import { decodeJwt } from 'jose'
import { createAgentKey, type AgentKey } from '../../../runtime/clients/client/agent.js'
import type { Answer, Api, Json } from '../../support/api.js'
import { sql } from '../../support/storage/sql.js'
import { sharedTwo } from '../../support/service/two-services.js'

const { first: api, second } = await sharedTwo()
const issuer = api.at.baseUrl

const AGENTS = '/api/v1/agents'
const of = (agentId: string) => `${AGENTS}/${agentId}`

/** A workspace and a logged-in agent of its tenant. */
async function staffed() {
  const owner = await api.workspace()
  const { key, agentId } = await api.register(owner.tenantId)
  const login = () => api.login(key, { agent_id: agentId, tenant_id: owner.tenantId })
  const { body } = await login()
  return { owner, key, agentId, login, ...tokens(body) }
}

function tokens(body: Json) {
  return { token: String(body['access_token']), refreshToken: String(body['refresh_token']) }
}

const refresh = (at: Api, agentId: string, token: string): Promise<Answer> =>
  at.form('/oauth/token', {
    grant_type: 'refresh_token',
    client_id: agentId,
    refresh_token: token,
  })

function newKey(key: AgentKey, tenantId: string): Json {
  const { public_key, key_algorithm, key_ownership_proof } = key.registration({ issuer, tenantId })
  return { public_key, key_algorithm, key_ownership_proof }
}

const me = (at: Api, token: string) => at.get(`${AGENTS}/me`, token)

/** Within 1 s in every process; immediately in the process of the change. */
async function refusedEverywhere(
  token: string,
  expect: (status: number, error: unknown) => void,
): Promise<void> {
  const here = await me(api, token)
  expect(here.status, here.body['error'])
  const endMs = Date.now() + 1000
  let there = await me(second, token)
  while (there.status === 200 && Date.now() < endMs) there = await me(second, token)
  expect(there.status, there.body['error'])
}

test('only an owner changes the agent that owns the tenant', async (t) => {
  const owner = await api.workspace()
  const other = await staffed()
  const made = await api.post('/api/v1/applications', owner.token, {
    name: 'Admin tool',
    grant_types: ['client_credentials'],
    scopes: ['agents:manage', 'vault:list', 'vault:read'],
  })
  t.is(made.status, 201)
  const issued = await api.form(
    '/oauth/token',
    { grant_type: 'client_credentials', scope: 'agents:manage' },
    {
      authorization: `Basic ${Buffer.from(
        `${String(made.body['client_id'])}:${String(made.body['client_secret'])}`,
      ).toString('base64')}`,
    },
  )
  const admin = String(issued.body['access_token'])
  const ownerId = String(decodeJwt(owner.token).sub)
  const keys = (await api.get(of(ownerId), admin)).body['keys'] as Json[]
  const fingerprint = encodeURIComponent(String(keys[0]!['id'] ?? keys[0]!['fingerprint']))
  for (const [method, path, json] of [
    ['POST', '/suspend', undefined],
    ['POST', '/activate', undefined],
    ['PATCH', '', { scopes: [] }],
    ['DELETE', '', undefined],
    ['POST', `/keys/${fingerprint}/deprecate`, undefined],
    ['POST', `/keys/${fingerprint}/revoke`, undefined],
  ] as const) {
    const answer = await api.call(method, of(ownerId) + path, {
      token: admin,
      ...(json === undefined ? {} : { json }),
    })
    t.is(answer.status, 403, `${method} ${path}: ${JSON.stringify(answer.body)}`)
  }
  t.is((await me(api, owner.token)).status, 200)
  const agent = await api.register(owner.tenantId)
  t.is((await api.post(`${of(agent.agentId)}/suspend`, admin)).status, 200)
  t.is((await api.post(`${of(other.agentId)}/suspend`, admin)).status, 404)
})

test('a suspended agent is refused everywhere immediately, and its sessions stay ended', async (t) => {
  const { owner, agentId, token, refreshToken, login } = await staffed()
  t.is((await me(second, token)).status, 200)
  const suspended = await api.post(`${of(agentId)}/suspend`, owner.token)
  t.like(suspended, { status: 200, body: { status: 'suspended' } })
  await refusedEverywhere(token, (status, error) => {
    t.is(status, 401)
    t.is(error, 'token_revoked')
  })
  t.is((await refresh(api, agentId, refreshToken)).status, 401)
  t.is((await refresh(second, agentId, refreshToken)).status, 401)
  t.is((await login()).status, 400)
  t.deepEqual((await api.post(`${of(agentId)}/suspend`, owner.token)).body, suspended.body)

  const active = await api.post(`${of(agentId)}/activate`, owner.token)
  t.is(active.body['status'], 'active')
  t.is((await api.post(`${of(agentId)}/activate`, owner.token)).status, 200)
  await refusedEverywhere(token, (status) => t.is(status, 401))
  t.is((await refresh(api, agentId, refreshToken)).body['error'], 'invalid_grant')
  t.is((await login()).status, 200)
})

test('a tenant suspends a member agent only in itself', async (t) => {
  const owner = await api.workspace()
  const other = await api.workspace()
  await sql(api.at)`
    insert into organization_members (organization_id, member_type, member_id, role, created_at)
    values (${owner.organizationId}, 'agent', ${other.agentId}, 'owner', now())`
  const here = tokens(
    (await api.login(other.key, { agent_id: other.agentId, tenant_id: owner.tenantId })).body,
  )
  const listed = await api.list(AGENTS, owner.token)
  t.deepEqual(
    listed.rows.map(({ id }) => id),
    [other.agentId, owner.agentId],
  )
  const suspended = await api.post(`${of(other.agentId)}/suspend`, owner.token)
  t.is(suspended.body['status'], 'suspended')
  await refusedEverywhere(here.token, (status) => t.is(status, 401))
  t.is((await refresh(second, other.agentId, here.refreshToken)).status, 400)
  const selector = { agent_id: other.agentId, tenant_id: owner.tenantId }
  t.is((await api.login(other.key, selector)).status, 400)
  t.is((await me(api, other.token)).status, 200)
  t.is((await me(api, other.operator)).body['status'], 'active')
  t.is((await api.get(of(other.agentId), other.token)).body['status'], 'active')
  t.is((await api.get(of(other.agentId), owner.token)).body['status'], 'suspended')

  t.is((await api.post(`${of(other.agentId)}/activate`, owner.token)).body['status'], 'active')
  t.is((await api.login(other.key, selector)).status, 200)

  await sql(api.at)`update agents set status = 'suspended' where id = ${other.agentId}`
  t.is((await api.post(`${of(other.agentId)}/activate`, owner.token)).status, 409)
})

test('operations on a member agent that only its home tenant may do', async (t) => {
  const owner = await api.workspace()
  // The owner's home tenant is the control plane.
  const path = of(owner.agentId)
  t.is((await api.delete(path, owner.token)).body['error'], 'policy_denied')
  const change = await api.patch(path, owner.token, { scopes: [] })
  t.is(change.body['error'], 'policy_denied')
  const helper = await api.register(owner.tenantId)
  await api.patch(of(helper.agentId), owner.token, { scopes: ['agents:manage'] }).gives(200)
  const { body } = await api.login(helper.key, {
    agent_id: helper.agentId,
    tenant_id: owner.tenantId,
  })
  const added = await api.post(
    `${path}/keys`,
    tokens(body).token,
    newKey(createAgentKey(), owner.controlPlane),
  )
  t.is(added.body['error'], 'policy_denied')
})

test('deleting an agent deletes everything of it', async (t) => {
  const { owner, agentId, token, refreshToken, login, key } = await staffed()
  t.is((await api.delete(of(agentId), owner.token)).status, 204)
  await refusedEverywhere(token, (status) => t.is(status, 401))
  t.is((await refresh(second, agentId, refreshToken)).status, 401)
  t.is((await login()).status, 400)
  t.is((await api.get(of(agentId), owner.token)).status, 404)
  t.is((await api.delete(of(agentId), owner.token)).status, 404)
  t.is((await api.post(`${of(agentId)}/suspend`, owner.token)).status, 404)
  const rows = await sql(api.at)`select from agent_keys where fingerprint = ${key.fingerprint}`
  t.is(rows.length, 0)
})

test('an agent rotates its keys: add, log in with the new one, deprecate and revoke the old', async (t) => {
  for (const algorithm of ['ed25519', 'es256'] as const) {
    const { owner, key, agentId, token, login } = await staffed()
    const fresh = createAgentKey(algorithm)
    const added = await api.post(`${of(agentId)}/keys`, token, newKey(fresh, owner.tenantId))
    t.is(added.status, 201)
    t.is(added.headers['location'], of(agentId))
    t.deepEqual(added.body, {
      id: fresh.fingerprint,
      algorithm,
      public_key: fresh.publicKey,
      status: 'active',
      created_at: added.body['created_at'],
      revoked_at: null,
    })
    await api.post(`${of(agentId)}/keys`, token, newKey(fresh, owner.tenantId)).gives(409)

    const begun = await api.post('/api/v1/agents/auth/challenge', undefined, {
      key_id: key.fingerprint,
      tenant_id: owner.tenantId,
    })
    const old = `${of(agentId)}/keys/${key.fingerprint}`
    const deprecated = await api.post(`${old}/deprecate`, token)
    t.is(deprecated.body['status'], 'deprecated')
    t.deepEqual((await api.post(`${old}/deprecate`, token)).body, deprecated.body)
    const byKey = { key_id: key.fingerprint, tenant_id: owner.tenantId }
    t.is((await api.login(key, byKey)).status, 400)
    const finished = await api.post('/api/v1/agents/auth/verify', undefined, {
      challenge_id: begun.body['challenge_id'],
      signature: key.signChallenge(String(begun.body['payload'])),
    })
    t.is(finished.status, 200)
    t.is((await me(api, token)).status, 200)

    const renewed = await api.login(fresh, { did: fresh.did, tenant_id: owner.tenantId }).gives(200)
    const kept = tokens(renewed.body)
    const revoked = await api.post(`${old}/revoke`, kept.token)
    t.is(revoked.body['status'], 'revoked')
    t.is(typeof revoked.body['revoked_at'], 'string')
    t.deepEqual((await api.post(`${old}/revoke`, kept.token)).body, revoked.body)
    t.is((await api.post(`${old}/deprecate`, kept.token)).status, 409)
    // Sessions of the old key have ended, sessions of the new key have not.
    for (const ended of [token, tokens(finished.body).token]) {
      await refusedEverywhere(ended, (status) => t.is(status, 401))
    }
    t.is((await refresh(second, agentId, tokens(finished.body).refreshToken)).status, 400)
    t.is((await me(second, kept.token)).status, 200)
    t.is((await refresh(second, agentId, kept.refreshToken)).status, 200)
    t.is((await me(api, kept.token)).body['did'], fresh.did)
    t.is((await login()).status, 400)
  }
})

test('an agent has at most 20 keys that are not revoked, also of concurrent ones', async (t) => {
  const { owner, key, agentId, token } = await staffed()
  const path = `${of(agentId)}/keys`
  const add = (at: Api) => at.post(path, token, newKey(createAgentKey(), owner.tenantId))
  for (let keys = 1; keys < 19; keys += 1) t.is((await add(api)).status, 201)
  const last = await Promise.all([add(api), add(second), add(api), add(second)])
  t.deepEqual(last.map(({ status }) => status).toSorted(), [201, 409, 409, 409])
  t.is((await add(api)).body['error'], 'conflict')
  t.is((await api.post(`${path}/${key.fingerprint}/revoke`, owner.token)).status, 200)
  await api.post(path, owner.token, newKey(createAgentKey(), owner.tenantId)).gives(201)
})

test('of two concurrent revocations of the last two keys by the agent, one is refused', async (t) => {
  for (let round = 0; round < 5; round += 1) {
    const { owner, key, agentId, token } = await staffed()
    const last = `${of(agentId)}/keys/${key.fingerprint}/revoke`
    t.is((await api.post(last, token)).status, 409)
    const fresh = createAgentKey()
    t.is((await api.post(`${of(agentId)}/keys`, token, newKey(fresh, owner.tenantId))).status, 201)
    const revoke = (at: Api, { fingerprint }: AgentKey) =>
      at.post(`${of(agentId)}/keys/${fingerprint}/revoke`, token)
    const statuses = await Promise.all([revoke(api, key), revoke(second, fresh)])
    const kinds = statuses.map(({ status }) => status).toSorted()
    // Revoking the key of its login ends the token, so the other request may fail with 401.
    t.true(kinds[0] === 200 && [401, 409].includes(Number(kinds[1])), JSON.stringify(kinds))
    const [row] = await sql<{ count: number }>(api.at)`
      select count(*) from agent_keys where agent_id = ${agentId} and status = 'active'`
    t.is(row?.count, 1)
  }
})

test('a manager can revoke the last key of an agent; others cannot change its keys', async (t) => {
  const { owner, key, agentId, token } = await staffed()
  const colleague = await api.register(owner.tenantId)
  const theirs = await api.login(colleague.key, {
    agent_id: colleague.agentId,
    tenant_id: owner.tenantId,
  })
  const path = `${of(agentId)}/keys`
  const fresh = newKey(createAgentKey(), owner.tenantId)
  await api.post(path, tokens(theirs.body).token, fresh).gives(403, 'insufficient_scope')
  t.is((await api.post(`${path}/${key.fingerprint}/revoke`, tokens(theirs.body).token)).status, 403)
  t.is((await api.post(`${path}/unknown/revoke`, owner.token)).status, 404)
  t.is((await api.post(`${path}/${key.fingerprint}/revoke`, owner.token)).status, 200)
  await refusedEverywhere(token, (status) => t.is(status, 401))
})

test('a new key needs an ownership proof for the home tenant; an idempotency key adds it once', async (t) => {
  const { owner, agentId, token } = await staffed()
  const path = `${of(agentId)}/keys`
  const fresh = createAgentKey()
  const wrong = await api.post(path, token, newKey(fresh, owner.controlPlane)).gives(400)
  t.truthy(wrong.body['key_ownership_proof'])
  const body = newKey(fresh, owner.tenantId)
  const headers = { 'idempotency-key': 'a-key' }
  const answers = await Promise.all([
    api.post(path, token, body, headers),
    second.post(path, token, body, headers),
  ])
  t.deepEqual(
    answers.map(({ status }) => status),
    [201, 201],
  )
  t.deepEqual(answers[0]?.body, answers[1]?.body)
})

test('a caller grants scopes it holds, and removed scopes end immediately', async (t) => {
  const { owner, agentId, token, login } = await staffed()
  const patch = (json: Json, by = owner.token) => api.patch(of(agentId), by, json)
  const given = await patch({ scopes: ['users:read', 'openid', 'openid'], unknown: 1 })
  t.deepEqual(given.body['scopes'], ['openid', 'users:read'])
  await refusedEverywhere(token, (status) => t.is(status, 401))
  const renewed = tokens((await login()).body)
  await patch({ scopes: ['users:read', 'openid', 'vault:list'] }).gives(200)
  t.is((await me(api, renewed.token)).status, 200)
  t.is((await patch({ scopes: ['nonsense'] })).body['error'], 'invalid_scope')
  t.is((await patch({ scopes: ['org:create'] })).status, 400)
  t.deepEqual((await patch({})).body['scopes'], ['openid', 'users:read', 'vault:list'])

  const manager = await api.register(owner.tenantId)
  await api.patch(of(manager.agentId), owner.token, { scopes: ['agents:manage'] })
  const selector = { agent_id: manager.agentId, tenant_id: owner.tenantId }
  const { body } = await api.login(manager.key, selector)
  t.is(body['scope'], 'agents:manage')
  const beyond = await patch({ scopes: ['users:manage'] }, String(body['access_token']))
  t.like(beyond, { status: 403, body: { error: 'insufficient_scope' } })
})

test('agents are listed in pages and read with the right scopes', async (t) => {
  const owner = await api.workspace()
  const made = []
  for (let n = 0; n < 4; n += 1) made.unshift((await api.register(owner.tenantId)).agentId)
  const first = await api.list(`${AGENTS}?limit=3`, owner.token)
  const next = await api.list(first.next ?? '', owner.token)
  t.deepEqual(
    [...first.rows, ...next.rows].map(({ id }) => id),
    [...made, owner.agentId],
  )
  t.is(next.next, undefined)
  t.deepEqual((await api.get(of(String(made[0])), owner.token)).body, first.rows[0])
  const plain = await staffed()
  t.is((await api.get(AGENTS, plain.token)).status, 403)
  t.is((await api.get(of(plain.agentId), owner.token)).status, 404)
  t.is((await api.get(of('not-a-uuid'), owner.token)).status, 404)
  for (const action of ['suspend', 'activate', 'keys/x/revoke', 'keys/x/deprecate']) {
    t.is((await api.post(`${of(plain.agentId)}/${action}`, owner.token)).status, 404, action)
  }
})

test('a page has at most 200 rows, whatever is asked for', async (t) => {
  const { tenantId, token } = await api.workspace()
  await sql(api.at)`
    with made as (
    insert into agents (tenant_id, id, name, scopes, created_at, updated_at)
    select ${tenantId}, gen_random_uuid(), 'many', '{}', n, n
    from generate_series(1, 205), date_trunc('milliseconds', now()) as n
    returning tenant_id, id)
    insert into agent_anchors (tenant_id, agent_id, type, value, verified_at)
    select tenant_id, id, 'did_key', 'did:key:' || id, now() from made`
  const first = await api.list(`${AGENTS}?limit=1000`, token)
  t.is(first.rows.length, 200)
  t.is((await api.list(first.next ?? '', token)).rows.length, 6)
})

test('changes of agents are audited with their caller', async (t) => {
  const { owner, agentId } = await staffed()
  await api.post(`${of(agentId)}/suspend`, owner.token, undefined, { 'x-request-id': 'susp-1' })
  await api.post(`${of(agentId)}/suspend`, owner.token)
  const rows = await sql<Json>(api.at)`
    select subject, resource, outcome, request_id, ip from audit_events
    where tenant_id = ${owner.tenantId} and type = 'admin.agent.suspended'`
  t.deepEqual(rows, [
    {
      subject: { sub: owner.agentId, subject_type: 'agent' },
      resource: { type: 'agent', id: agentId },
      outcome: 'success',
      request_id: 'susp-1',
      ip: '127.0.0.1',
    },
  ])
})

test('a failed login is audited in its tenant', async (t) => {
  const { owner, key, agentId } = await staffed()
  const selector = { agent_id: agentId, tenant_id: owner.tenantId }
  t.is((await api.login(createAgentKey(), selector)).status, 400)
  const begun = await api.post('/api/v1/agents/auth/challenge', undefined, selector)
  await api.post(`${of(agentId)}/suspend`, owner.token)
  const answer = await api.post('/api/v1/agents/auth/verify', undefined, {
    challenge_id: begun.body['challenge_id'],
    signature: key.signChallenge(String(begun.body['payload'])),
  })
  t.is(answer.status, 400)
  const failures = await api.list('/api/v1/audit-events?type=auth.login.failure', owner.token)
  t.deepEqual(
    failures.rows.map(({ subject, outcome, data }) => [subject, outcome, (data as Json)['reason']]),
    ['not_in_force', 'wrong_signature'].map((reason) => [
      { sub: agentId, subject_type: 'agent' },
      'failure',
      reason,
    ]),
  )
})
