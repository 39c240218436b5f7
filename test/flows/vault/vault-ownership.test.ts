/**
 * Operations of the owner of a credential, attacked by agents with vault:manage and by agents that
 * act for the owner (docs/reference/vault.md).
 */
import { readFile } from 'node:fs/promises'
import test from 'ava'
import type { Answer, Json } from '../../support/api.js'
import { delegate } from '../../support/agents/delegation.js'
import { CREDENTIALS, egressHouse, SECRET, UPSTREAM_NAME } from '../../support/vault/egress.js'
import { sql } from '../../support/storage/sql.js'
import { owned } from '../../support/identity/owner.js'
import { tokenUpstream } from '../../support/vault/token-upstream.js'

const OTHER_NAME = 'other.upstream.example'

const resources = await egressHouse()
const { api, upstream } = resources

const refusedAs = ({ status, body }: Answer) => [status, body['error']]
const REFUSED = [403, 'policy_denied']

/** An agent with vault:manage that owns no credential. */
async function manager(tenantId: string, by: string, scopes = 'vault:read vault:manage') {
  const { key, agentId } = await api.register(tenantId)
  const path = `/api/v1/agents/${agentId}`
  await api.patch(path, by, { scopes: scopes.split(' ') }).gives(200)
  const { body } = await api.login(key, { tenant_id: tenantId, agent_id: agentId })
  return { agentId, token: String(body['access_token']) }
}

const apiKey = (more: Json = {}): Json => ({
  provider: 'upstream',
  credential_type: 'api_key',
  label: 'Key',
  auth_scheme: 'bearer',
  allowed_hosts: [UPSTREAM_NAME],
  secret: SECRET,
  ...more,
})

async function made(token: string, json: Json): Promise<string> {
  const { body } = await api.post(CREDENTIALS, token, json).gives(201)
  return String(body['id'])
}

const patch = (token: string, id: string, json: Json) =>
  api.patch(`${CREDENTIALS}/${id}`, token, json)
const hostsOf = async (token: string, id: string) =>
  (await api.get(`${CREDENTIALS}/${id}`, token)).body['allowed_hosts']
const callTo = (token: string, credentialId: string, host: string) =>
  resources.send('/v1/proxy/body', {
    token,
    headers: {
      'x-svc-credential-id': credentialId,
      'x-svc-url': upstream.origin.replace(UPSTREAM_NAME, host) + '/headers',
      'x-svc-method': 'GET',
    },
  })

test('an agent with vault:manage cannot add its own host to a credential of another owner', async (t) => {
  const owner = await api.workspace()
  const { agentId, token } = await manager(owner.tenantId, owner.token)
  const id = await made(owner.token, apiKey())
  const before = upstream.requests.length

  t.deepEqual(refusedAs(await api.get(`${CREDENTIALS}/${id}/secret`, token)), REFUSED)
  const widened = await patch(token, id, { allowed_hosts: [UPSTREAM_NAME, OTHER_NAME] })
  t.deepEqual(refusedAs(widened), REFUSED)
  t.deepEqual(await hostsOf(owner.token, id), [UPSTREAM_NAME])
  const grant = { grantee_type: 'agent', grantee_id: agentId }
  t.deepEqual(refusedAs(await api.post(`${CREDENTIALS}/${id}/grants`, token, grant)), REFUSED)
  const lease = { recipient_id: agentId, byte_budget: 1_000 }
  t.deepEqual(refusedAs(await api.post(`${CREDENTIALS}/${id}/leases`, token, lease)), REFUSED)
  const rotated = await api.post(`${CREDENTIALS}/${id}/rotate`, token, { secret: 'known' })
  t.deepEqual(refusedAs(rotated), REFUSED)
  for (const host of [UPSTREAM_NAME, OTHER_NAME]) {
    const answer = await callTo(token, id, host)
    t.is(answer.statusCode, 404)
    await answer.body.dump()
  }
  t.is(upstream.requests.length, before, 'nothing was sent')

  // It can narrow, label and revoke.
  t.is((await patch(token, id, { label: 'Seen', metadata: { seen: true } })).status, 200)
  t.is((await patch(token, id, { allowed_hosts: [] })).status, 200)
  const back = await patch(token, id, { allowed_hosts: [UPSTREAM_NAME] })
  t.deepEqual(refusedAs(back), REFUSED, 'a removed host cannot be added again')
  t.is((await patch(owner.token, id, { allowed_hosts: [UPSTREAM_NAME] })).status, 200)
  t.is((await api.post(`${CREDENTIALS}/${id}/revoke`, token)).body['status'], 'revoked')
})

test('an agent with vault:manage cannot refer to the token of another owner', async (t) => {
  const endpoint = await tokenUpstream()
  t.teardown(() => endpoint.close())
  endpoint.adorn({ access_token: 'canary-token-of-the-owner' })
  const owner = await api.workspace()
  const { token } = await manager(owner.tenantId, owner.token)
  const secret = JSON.stringify({ token_url: endpoint.url, client_id: 'c', refresh_token: 'rt-0' })
  const account = await made(owner.token, {
    provider: 'upstream',
    credential_type: 'oauth2',
    label: 'Account',
    allowed_hosts: [UPSTREAM_NAME],
    secret,
  })
  const carrying = (hosts: string[]) =>
    apiKey({ secret: undefined, token_of: account, allowed_hosts: hosts })
  for (const hosts of [[OTHER_NAME], [UPSTREAM_NAME], []]) {
    t.deepEqual(refusedAs(await api.post(CREDENTIALS, token, carrying(hosts))), REFUSED)
  }
  t.is(endpoint.tokenRequests.length, 0)

  // The owner can, within the hosts of the account.
  const beyond = await api.post(CREDENTIALS, owner.token, carrying([UPSTREAM_NAME, OTHER_NAME]))
  t.is(beyond.status, 400)
  t.is((beyond.body['errors'] as Json[])[0]!['pointer'], '#/allowed_hosts/1')
  const carrier = await made(owner.token, carrying([UPSTREAM_NAME]))
  await patch(owner.token, carrier, { allowed_hosts: [OTHER_NAME] }).gives(400)

  // Narrowing the account narrows the dependent credential, which cannot be widened alone.
  t.is((await patch(token, account, { allowed_hosts: [] })).status, 200)
  t.deepEqual(await hostsOf(owner.token, carrier), [])
  t.is((await patch(owner.token, carrier, { allowed_hosts: [UPSTREAM_NAME] })).status, 400)
})

test('hosts of dependent credentials stay within the hosts of the account, under concurrency', async (t) => {
  const { token } = await api.workspace()
  const names = Array.from({ length: 6 }, (_, nth) => `h${nth}.upstream.example`)
  const account = await made(token, {
    provider: 'upstream',
    credential_type: 'oauth2',
    label: 'Account',
    allowed_hosts: names,
    secret: JSON.stringify({ token_url: 'https://id.example/token', client_id: 'c' }),
  })
  const carrying = apiKey({ secret: undefined, token_of: account, allowed_hosts: names })
  const carriers = await Promise.all(Array.from({ length: 3 }, () => made(token, carrying)))
  for (let round = 0; round < 8; round += 1) {
    t.is((await patch(token, account, { allowed_hosts: names })).status, 200)
    const kept = names.slice(0, round % names.length)
    const answers = await Promise.all([
      ...carriers.map((id) => patch(token, id, { allowed_hosts: names })),
      patch(token, account, { allowed_hosts: kept }),
      ...carriers.map((id) => patch(token, id, { allowed_hosts: names })),
      api.post(CREDENTIALS, token, carrying),
    ])
    for (const { status, body } of answers) {
      t.true([200, 201, 400].includes(status), JSON.stringify(body))
    }
    const { rows } = await api.list(`${CREDENTIALS}?limit=200`, token)
    const within = rows.filter((row) => row['token_of'] === account)
    t.true(within.length >= carriers.length)
    for (const { allowed_hosts: hosts } of within) {
      t.true(
        (hosts as string[]).every((host) => kept.includes(host)),
        JSON.stringify([hosts, kept]),
      )
    }
  }
})

test('older dependent credentials are narrowed to their account', async (t) => {
  const [first, second] = [await api.workspace(), await api.workspace()]
  const file = new URL('../../../../migrations/0041_carried_hosts.sql', import.meta.url)
  const statements = (await readFile(file, 'utf8'))
    .split(/;\n/)
    .filter((text) => text.trim() !== '')
  const secret = JSON.stringify({ token_url: 'https://id.example/token', client_id: 'c' })
  const pair = async (token: string) => {
    const account = await made(token, {
      provider: 'upstream',
      credential_type: 'oauth2',
      label: 'Account',
      secret,
    })
    return [
      account,
      await made(token, apiKey({ secret: undefined, token_of: account, allowed_hosts: [] })),
    ] as const
  }
  const { database } = resources.running.db
  const set = (id: string, hosts: string[]) =>
    sql(database)`update vault_credentials set allowed_hosts = ${hosts} where id = ${id}`
  const [silent, silentCarrier] = await pair(first.token)
  await set(silentCarrier, ['b.example', 'a.example'])
  const [named, namedCarrier] = await pair(second.token)
  await set(named, ['a.example'])
  await set(namedCarrier, ['b.example', 'a.example'])
  const [stolen, stolenCarrier] = await pair(second.token)
  await set(stolenCarrier, ['b.example'])
  await sql(database)`update vault_credentials set owner_id = 'another' where id = ${stolenCarrier}`
  // The statements change all tenants, so they are not committed: other tests use the database too.
  const seen: Record<string, string[]> = {}
  const kept = database.system(async (tx) => {
    for (const text of statements) await tx.query({ name: 'test.carried_hosts', text, values: [] })
    const { rows } = await tx.query<{ id: string; hosts: string[] }>({
      name: 'test.hosts',
      text: 'select id, allowed_hosts as hosts from vault_credentials where id = any($1::uuid[])',
      values: [[silent, silentCarrier, namedCarrier, stolen, stolenCarrier]],
    })
    for (const { id, hosts } of rows) seen[id] = hosts
    throw new Error('rolled back')
  })
  await t.throwsAsync(kept, { message: 'rolled back' })
  t.deepEqual(seen, {
    [silent]: ['a.example', 'b.example'],
    [silentCarrier]: ['b.example', 'a.example'],
    [namedCarrier]: ['a.example'],
    [stolen]: [],
    [stolenCarrier]: [],
  })
})

test('others can narrow hosts and source addresses of an authority, not widen them', async (t) => {
  const owner = await api.workspace()
  const { token } = await manager(owner.tenantId, owner.token)
  const authority = (more: Json) =>
    made(owner.token, { provider: 'ssh', credential_type: 'ssh_ca', label: 'CA', ...more })
  const id = await authority({
    allowed_hosts: ['db1.example.com'],
    metadata: { source_addresses: ['10.1.0.0/16'] },
  })
  const wider: Json[] = [
    // An empty host list allows any host, an empty network list any address.
    { allowed_hosts: [] },
    { allowed_hosts: ['db1.example.com', 'db2.example.com'] },
    { metadata: {} },
    { metadata: { source_addresses: ['10.0.0.0/8'] } },
    { metadata: { source_addresses: ['10.1.2.0/24', '192.168.0.0/16'] } },
  ]
  for (const json of wider) {
    t.deepEqual(refusedAs(await patch(token, id, json)), REFUSED, JSON.stringify(json))
  }
  const narrower = { metadata: { source_addresses: ['10.1.2.0/24'], note: 'x' } }
  t.is((await patch(token, id, narrower)).status, 200)
  const open = await authority({ allowed_hosts: [] })
  const bound = { allowed_hosts: ['db1.example.com'], ...narrower }
  t.is((await patch(token, open, bound)).status, 200)
  t.is((await patch(owner.token, open, { allowed_hosts: [], metadata: {} })).status, 200)
  t.deepEqual(refusedAs(await api.post(`${CREDENTIALS}/${id}/rotate`, token, {})), REFUSED)
})

test('a person needs a direct token of a recent two-factor sign-in', async (t) => {
  const scope = 'openid vault:list vault:read vault:manage agents:manage'
  const strong = await owned(api, { scope })
  const weak = await owned(api, { factor: false, scope })
  const own = async (token: string) => made(token, apiKey({ non_exportable: false }))
  const sensitive = (token: string, id: string): Promise<Answer>[] => [
    patch(token, id, { allowed_hosts: [UPSTREAM_NAME, OTHER_NAME] }),
    api.post(`${CREDENTIALS}/${id}/rotate`, token, { secret: 'other' }),
    api.get(`${CREDENTIALS}/${id}/secret`, token),
  ]

  const once = await own(weak.token)
  for (const answer of await Promise.all(sensitive(weak.token, once))) {
    t.like(answer, { status: 401, body: { error: 'insufficient_user_authentication' } })
    t.regex(answer.headers['www-authenticate'] ?? '', /acr_values="aal3 aal2", max_age="300"/)
  }

  const id = await own(strong.token)
  const { agentId, token: agentToken } = await manager(strong.made.tenantId, strong.token)
  const { token: delegated } = await delegate(api, agentToken, strong.person, { scope })
  for (const answer of await Promise.all(sensitive(delegated, id))) {
    t.deepEqual(refusedAs(answer), [403, 'forbidden'])
  }
  // A grant of an exportable credential equals an export.
  const grant = { grantee_type: 'agent', grantee_id: agentId }
  const self = await api.post(`${CREDENTIALS}/${id}/grants`, delegated, grant)
  t.deepEqual(refusedAs(self), [403, 'forbidden'])
  const kept = await made(strong.token, apiKey())
  t.is((await api.post(`${CREDENTIALS}/${kept}/grants`, delegated, grant)).status, 201)
  t.is((await patch(delegated, id, { allowed_hosts: [] })).status, 200)
  for (const answer of await Promise.all(sensitive(strong.token, id))) t.is(answer.status, 200)
})

test('organization owners act for the credentials of their agents, not of people', async (t) => {
  const scope = 'openid vault:read vault:manage agents:manage'
  const { made: at, token } = await owned(api, { scope })
  const helper = await manager(at.tenantId, token)
  const id = await made(helper.token, apiKey({ non_exportable: false }))
  t.is((await patch(token, id, { allowed_hosts: [UPSTREAM_NAME, OTHER_NAME] })).status, 200)
  t.is((await api.get(`${CREDENTIALS}/${id}/secret`, token)).body['secret'], SECRET)
  t.is((await api.post(`${CREDENTIALS}/${id}/rotate`, token, { secret: 'new' })).status, 200)
  const grant = { grantee_type: 'agent', grantee_id: helper.agentId }
  t.is((await api.post(`${CREDENTIALS}/${id}/grants`, token, grant)).status, 201)

  // Not the other way round, and not between agents.
  const theirs = await made(token, apiKey())
  const second = await manager(at.tenantId, token)
  for (const [other, credential] of [
    [helper.token, theirs],
    [second.token, id],
  ] as const) {
    const wider = { allowed_hosts: [UPSTREAM_NAME, OTHER_NAME, 'third.upstream.example'] }
    t.deepEqual(refusedAs(await patch(other, credential, wider)), REFUSED)
  }
})

test('a direct token with vault:manage lists the credentials of its tenant, without secrets', async (t) => {
  const [owner, stranger] = [await api.workspace(), await api.workspace()]
  const { token } = await manager(owner.tenantId, owner.token)
  const first = await made(owner.token, apiKey())
  const second = await made(token, apiKey())
  await made(stranger.token, apiKey())
  await api.post(`${CREDENTIALS}/${first}/revoke`, token)
  for (const each of [owner.token, token]) {
    const one = await api.list(`${CREDENTIALS}?limit=1`, each)
    t.is(one.status, 200)
    const two = await api.list(one.next ?? '', each)
    t.is(two.next, undefined)
    const rows = [...one.rows, ...two.rows]
    t.deepEqual(
      rows.map(({ id, status }) => [id, status]),
      [
        [second, 'active'],
        [first, 'revoked'],
      ],
    )
    t.false(JSON.stringify(rows).includes(SECRET))
  }
  const reader = await manager(owner.tenantId, owner.token, 'vault:list vault:read')
  t.deepEqual(refusedAs(await api.get(CREDENTIALS, reader.token)), [403, 'forbidden'])
})
