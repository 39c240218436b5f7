/** Credentials, grants and leases over HTTP. */
import test from 'ava'
import { apiOf, type Json } from '../../support/api.js'
import { sql } from '../../support/storage/sql.js'
import { REPEATED_OVER, sharedApi, sharedService } from '../../support/service.js'

const PATH = '/api/v1/vault/credentials'
/** Must not occur in any response, except an export. */
const CANARY = 'canary-5f1c2e7b90'

const { api, running } = await sharedApi('plain')

const apiKey = (more: Json = {}): Json => ({
  provider: 'openai',
  credential_type: 'api_key',
  label: 'Production key',
  auth_scheme: 'bearer',
  allowed_hosts: ['API.OpenAI.com.', 'bücher.example'],
  secret: CANARY,
  metadata: { team: 'search' },
  ...more,
})
async function made(token: string, more: Json = {}): Promise<string> {
  const { body } = await api.post(PATH, token, apiKey(more)).gives(201)
  return String(body['id'])
}

for (const transport of REPEATED_OVER) {
  test(`a credential is created, read, changed, rotated and revoked (${transport})`, async (t) => {
    const other = transport === 'plain_http' ? running : await sharedService('plain', { transport })
    const api = apiOf(other)
    t.teardown(async () => {
      if (other !== running) await other.end()
    })
    const { token, tenantId } = await api.workspace()
    const created = await api.post(PATH, token, apiKey()).gives(201)
    const { id, created_at, tenant_name } = created.body
    t.is(created.headers['location'], `${PATH}/${String(id)}`)
    t.deepEqual(created.body, {
      id,
      tenant_id: tenantId,
      tenant_name,
      provider: 'openai',
      credential_type: 'api_key',
      label: 'Production key',
      auth_scheme: 'bearer',
      allowed_hosts: ['api.openai.com', 'xn--bcher-kva.example'],
      non_exportable: true,
      status: 'active',
      metadata: { team: 'search' },
      created_at,
      updated_at: created_at,
      last_used_at: null,
    })
    t.truthy(tenant_name)
    const at = `${PATH}/${String(id)}`
    t.deepEqual((await api.get(at, token)).body, created.body)

    const patch = {
      label: 'New',
      allowed_hosts: ['a.example'],
      metadata: {},
      auth_scheme: 'bearer',
    }
    const patched = await api.patch(at, token, patch).gives(200)
    t.like(patched.body, { label: 'New', allowed_hosts: ['a.example'], metadata: {} })
    await api.patch(at, token, { auth_scheme: 'basic' }).gives(400)

    const [before] = await secretsOf(other, id)
    t.is((await api.post(`${at}/rotate`, token, { secret: 'another' })).status, 200)
    const [after] = await secretsOf(other, id)
    t.notDeepEqual(before?.secret, after?.secret)

    const revoked = await api.post(`${at}/revoke`, token)
    t.is(revoked.body['status'], 'revoked')
    t.deepEqual(await secretsOf(other, id), [{ secret: null }])
    t.deepEqual((await api.post(`${at}/revoke`, token)).body, revoked.body)
    t.is((await api.post(`${at}/rotate`, token, { secret: 'x' })).status, 409)
    t.is((await api.patch(at, token, { label: 'x' })).status, 409)
    const grant = { grantee_type: 'agent', grantee_id: tenantId }
    t.is((await api.post(`${at}/grants`, token, grant)).status, 409)
  })
}

const secretsOf = ({ db }: typeof running, id: unknown) =>
  sql<{ secret: Buffer | null }>(db.database)`select secret from vault_credentials where id = ${id}`

test('a secret is stored sealed, bound to its row, and never returned', async (t) => {
  const { token } = await api.workspace()
  const id = await made(token)
  const [row] = await secretsOf(running, id)
  t.false(row!.secret!.includes(CANARY))
  const seen = [
    await api.get(`${PATH}/${id}`, token),
    await api.post(PATH, token, apiKey({ allowed_hosts: ['*'] })),
    await api.post(PATH, token, apiKey({ secret: `${CANARY}\n` })),
    await api.post(PATH, token, apiKey({ secret: [CANARY] })),
  ]
  t.deepEqual(
    seen.map(({ status }) => status),
    [200, 400, 400, 400],
  )
  const told = await sql<{ text: string }>(running)`
    select data::text as text from all_events
    union all select data::text from audit_events
    union all select encode(answer, 'escape') from idempotency_keys`
  t.false(JSON.stringify([seen, told]).includes(CANARY))

  // In another row it cannot be unsealed.
  const other = await made(token, { non_exportable: false, secret: 'plain' })
  t.is((await api.get(`${PATH}/${other}/secret`, token)).body['secret'], 'plain')
  await sql(running)`
    update vault_credentials v set secret = o.secret, secret_stamp = o.secret_stamp
    from vault_credentials o where o.id = ${id} and v.id = ${other}`
  const moved = await api.get(`${PATH}/${other}/secret`, token)
  t.true(moved.status >= 500)
  t.false(JSON.stringify(moved).includes(CANARY))
})

test('a replaced secret that is put back into its row does not open', async (t) => {
  const { token } = await api.workspace()
  const id = await made(token, { non_exportable: false, secret: 'first' })
  const read = () => api.get(`${PATH}/${id}/secret`, token)
  t.is((await read()).body['secret'], 'first')
  const putsBack = async (columns: string) => {
    const [old] = await sql<{ copy: object }>(running)`
      select to_jsonb(v) as copy from vault_credentials v where id = ${id}`
    await api.post(`${PATH}/${id}/rotate`, token, { secret: 'second' }).gives(200)
    await sql(
      running,
      `update vault_credentials v set (${columns}) = (
         select ${columns} from jsonb_populate_record(null::vault_credentials, $2))
       where id = $1`,
      [id, JSON.stringify(old!.copy)],
    )
  }
  await putsBack('secret, secret_stamp')
  t.is((await read()).body['secret'], 'first', 'the row as it was')
  await putsBack('secret, label')
  const refused = await read()
  t.true(refused.status >= 500)
  t.false(JSON.stringify(refused).includes('first'))
  // As it was before stamps.
  await sql(running)`update vault_credentials set secret_stamp = null where id = ${id}`
  t.true((await read()).status >= 500)
  await api.post(`${PATH}/${id}/rotate`, token, { secret: 'third' }).gives(200)
  t.is((await read()).body['secret'], 'third')
})

test('validation of credentials', async (t) => {
  const { token } = await api.workspace()
  const oauth = (more: Json = {}) => ({
    credential_type: 'oauth2',
    auth_scheme: undefined,
    secret: JSON.stringify({ token_url: 'https://id.example/token', client_id: 'c', ...more }),
  })
  const good: Json[] = [
    { auth_scheme: 'basic', secret: 'user:pass' },
    { auth_scheme: 'header:X-Api-Key' },
    { auth_scheme: 'query:api_key', credential_type: 'custom' },
    { allowed_hosts: [] },
    { allowed_hosts: ['a.example', 'A.EXAMPLE'] },
    oauth(),
    oauth({ refresh_token: 'r', scope: 's', client_secret: 'x' }),
  ]
  for (const more of good) {
    const { status, body } = await api.post(PATH, token, apiKey(more))
    t.is(status, 201, JSON.stringify([more, body]))
    if (String(more['auth_scheme']).startsWith('header'))
      t.is(body['auth_scheme'], 'header:x-api-key')
  }
  const bad: Json[] = [
    { auth_scheme: undefined },
    { auth_scheme: 'digest' },
    { auth_scheme: 'header:' },
    { auth_scheme: 'header:Host' },
    { auth_scheme: 'header:X-Svc-Url' },
    { auth_scheme: 'header:a b' },
    { auth_scheme: 'query:a=b' },
    { auth_scheme: 'basic', secret: 'no colon' },
    { secret: undefined },
    { secret: '' },
    { secret: 'a\r\nx: y' },
    { credential_type: 'password' },
    { credential_type: 'ssh_key', secret: 'not a key' },
    { secret: ' spaced' },
    { auth_scheme: 'header:x-key', secret: 'spaced\t' },
    { credential_type: 'ssh_ca', auth_scheme: 'bearer' },
    { allowed_hosts: ['https://a.example'] },
    { allowed_hosts: ['a.example:443'] },
    { allowed_hosts: ['10.0.0.1'] },
    { allowed_hosts: ['0x7f.1'] },
    { allowed_hosts: ['[::1]'] },
    { allowed_hosts: ['*.example'] },
    { label: 'Key \u202eyek' },
    { provider: 'a\u2066b' },
    { metadata: { long: 'x'.repeat(9_000) } },
    oauth({ token_url: 'http://id.example/token' }),
    oauth({ client_id: 1 }),
    oauth({ surprise: 'x' }),
  ]
  for (const more of bad) {
    t.is((await api.post(PATH, token, apiKey(more))).status, 400, JSON.stringify(more))
  }
})

test('only the owner reads an exportable secret', async (t) => {
  const owner = await api.workspace()
  const kept = await made(owner.token)
  const open = await made(owner.token, { non_exportable: false })
  const read = await api.get(`${PATH}/${open}/secret`, owner.token).gives(200)
  t.deepEqual(read.body, { id: open, secret: CANARY })
  t.is(read.headers['cache-control'], 'no-store')
  t.is((await api.get(`${PATH}/${kept}/secret`, owner.token)).body['error'], 'policy_denied')
  const [event] = await sql<{ data: Json }>(running)`
    select data from all_events where type = 'vault.credential.accessed'
    and data #>> '{resource,id}' = ${open}`
  t.is(event?.data['access'], 'secret_read')

  const second = await api.register(owner.tenantId)
  await sql(running)`update agents set scopes = ${['vault:manage']} where id = ${second.agentId}`
  const { body } = await api.login(second.key, { agent_id: second.agentId })
  const token = String(body['access_token'])
  t.is((await api.get(`${PATH}/${open}`, token)).status, 200)
  t.is((await api.get(`${PATH}/${open}/secret`, token)).body['error'], 'policy_denied')
})

test("another tenant's credentials, grants and leases do not exist", async (t) => {
  const mine = await api.workspace()
  const { token } = await api.workspace()
  const id = await made(mine.token)
  const grantee = { grantee_type: 'agent', grantee_id: mine.agentId }
  const grant = await api.post(`${PATH}/${id}/grants`, mine.token, grantee)
  const lending = { recipient_id: mine.agentId, byte_budget: 10 }
  const lease = await api.post(`${PATH}/${id}/leases`, mine.token, lending)
  t.is(grant.status, 201)
  t.is(lease.status, 201)
  for (const credential of [id, '00000000-0000-7000-8000-000000000000', 'x']) {
    const at = `${PATH}/${credential}`
    t.is((await api.get(at, token)).status, 404)
    t.is((await api.get(`${at}/secret`, token)).status, 404)
    t.is((await api.get(`${at}/grants`, token)).status, 404)
    t.is((await api.get(`${at}/leases`, token)).status, 404)
    t.is((await api.get(`${at}/krl`, token)).status, 404)
    t.is((await api.patch(at, token, { label: 'x' })).status, 404)
    t.is((await api.post(`${at}/rotate`, token, { secret: 'x' })).status, 404)
    t.is((await api.post(`${at}/revoke`, token)).status, 404)
    t.is((await api.post(`${at}/grants`, token, grantee)).status, 404)
    t.is((await api.post(`${at}/leases`, token, lending)).status, 404)
    t.is((await api.post(`${at}/revoke-certificate`, token, { serial: '1' })).status, 404)
  }
  const revoke = (kind: string, of: Json) => `/api/v1/vault/${kind}/${String(of['id'])}/revoke`
  t.is((await api.post(revoke('grants', grant.body), token)).status, 404)
  t.is((await api.post(revoke('leases', lease.body), token)).status, 404)
  t.is((await api.get(`${PATH}/${id}`, mine.token)).body['status'], 'active')
})

test('grants and leases are created, listed in pages, limited and revoked', async (t) => {
  const { token, tenantId } = await api.workspace()
  const { agentId } = await api.register(tenantId)
  const id = await made(token)
  const grants = `${PATH}/${id}/grants`
  const grant = (more: Json = {}) =>
    api.post(grants, token, { grantee_type: 'agent', grantee_id: agentId, ...more })
  const first = await grant().gives(201)
  t.deepEqual(first.body, {
    id: first.body['id'],
    credential_id: id,
    grantee_type: 'agent',
    grantee_id: agentId,
    capabilities: ['list', 'use'],
    allow_range: false,
    approval: 'none',
    status: 'active',
    expires_at: null,
    created_at: first.body['created_at'],
    revoked_at: null,
  })
  const limits = {
    capabilities: ['use'],
    methods: ['GET'],
    path_prefixes: ['/v1/models'],
    max_requests: 5,
    max_bytes: 100,
    expires_at: '2999-01-01T00:00:00.000Z',
  }
  const limited = await grant(limits)
  t.like(limited.body, limits)
  const bad: Json[] = [
    { grantee_id: '00000000-0000-7000-8000-000000000000' },
    { grantee_id: 'x' },
    { grantee_type: 'delegation' },
    { capabilities: ['sign'] },
    { capabilities: [] },
    { methods: [] },
    { path_prefixes: ['v1'] },
    { path_prefixes: ['/a/../b'] },
    { path_prefixes: ['/a%2fb'] },
    { max_requests: 0 },
    { expires_at: '2000-01-01T00:00:00Z' },
  ]
  for (const more of bad) t.is((await grant(more)).status, 400, JSON.stringify(more))
  const pageOne = await api.list(`${grants}?limit=1`, token)
  const pageTwo = await api.list(pageOne.next ?? '', token)
  t.deepEqual([...pageOne.rows, ...pageTwo.rows], [limited.body, first.body])
  t.is(pageTwo.next, undefined)

  const leases = `${PATH}/${id}/leases`
  const lease = await api.post(leases, token, { recipient_id: agentId, byte_budget: 1_000 })
  t.deepEqual(lease.body, {
    id: lease.body['id'],
    credential_id: id,
    recipient_id: agentId,
    byte_budget: 1_000,
    bytes_used: 0,
    status: 'active',
    expires_at: null,
    created_at: lease.body['created_at'],
    revoked_at: null,
  })
  t.is((await api.post(leases, token, { recipient_id: agentId, byte_budget: 0 })).status, 400)

  const revoke = `/api/v1/vault/grants/${String(first.body['id'])}/revoke`
  const ended = await api.post(revoke, token)
  t.is(ended.body['status'], 'revoked')
  t.truthy(ended.body['revoked_at'])
  t.deepEqual((await api.post(revoke, token)).body, ended.body)
  await api.post(`${PATH}/${id}/revoke`, token)
  const rows = [...(await api.list(grants, token)).rows, ...(await api.list(leases, token)).rows]
  t.deepEqual([...new Set(rows.map(({ status }) => status))], ['revoked'])
  const events = await sql<{ id: string }>(running)`
    select data #>> '{resource,id}' as id from all_events
    where type = 'vault.grant.revoked' and data ->> 'credential_id' = ${id} order by sequence`
  t.deepEqual(
    events.map((event) => event.id),
    [first.body['id'], limited.body['id']] as string[],
  )
})

test('an idempotency key creates once', async (t) => {
  const { token, tenantId, agentId } = await api.workspace()
  const headers = { 'idempotency-key': 'once' }
  const id = await made(token)
  const bodies: [string, Json][] = [
    [PATH, apiKey()],
    [`${PATH}/${id}/grants`, { grantee_type: 'agent', grantee_id: agentId }],
    [`${PATH}/${id}/leases`, { recipient_id: agentId, byte_budget: 7 }],
  ]
  for (const [path, body] of bodies) {
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => api.post(path, token, body, headers)),
    )
    t.deepEqual([...new Set(answers.map(({ status }) => status))], [201])
    t.is(new Set(answers.map((answer) => answer.body['id'])).size, 1)
    t.is(answers.filter(({ headers }) => headers['idempotency-replayed'] === 'true').length, 3)
    await api.post(path, token, { ...body, label: 'x' }, headers).gives(422)
  }
  const [count] = await sql<{ count: number }>(running)`
    select count(*) as count from all_events where type = 'vault.credential.created'
    and tenant_id = ${tenantId}`
  t.is(count?.count, 2)
})

test('required scopes and tokens', async (t) => {
  const { token, tenantId } = await api.workspace()
  const id = await made(token)
  const { key, agentId } = await api.register(tenantId)
  const { body } = await api.login(key, { agent_id: agentId })
  const plain = String(body['access_token'])
  t.is((await api.post(PATH, plain, apiKey())).body['error'], 'insufficient_scope')
  t.is((await api.get(`${PATH}/${id}`, plain)).body['error'], 'insufficient_scope')
  t.is((await api.get(PATH)).status, 401)
  // The list needs a delegated token.
  await api.get(PATH, plain).gives(403, 'forbidden')
})

test('the features are in the capabilities', async (t) => {
  const { body } = await api.get('/api/v1/capabilities')
  const names = body['capabilities'] as string[]
  t.true(names.includes('vault') && names.includes('vault.ssh_ca'))
})
