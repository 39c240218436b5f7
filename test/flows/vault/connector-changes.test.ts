/** Who manages connectors gets nothing that people or other managers gave for other addresses. */
import test from 'ava'
import { sql } from '../../support/storage/sql.js'
import { egressHouse } from '../../support/vault/egress.js'
import {
  approve,
  connecting,
  connectorFor,
  CONNECTIONS,
  CONNECTORS,
  openConnect,
  provider,
} from '../../support/vault/connect.js'

const house = await egressHouse()
const { api, running } = house
const { setting, start, read, connected, call, outdate, eventsOf } = connecting(house)
type Setting = Awaited<ReturnType<typeof setting>>

/** Another provider, to which a manager moves an endpoint. */
async function moved(made: Setting, change: (origin: string) => Readonly<Record<string, unknown>>) {
  const elsewhere = await provider()
  const path = `${CONNECTORS}/${String(made.connector['id'])}`
  await api.patch(path, made.workspace.token, change(elsewhere.upstream.origin)).gives(200)
  return elsewhere
}

const heard = ({ upstream }: Pick<Setting['at'], 'upstream'>) => ({
  tokens: upstream.tokenRequests.length,
  calls: upstream.apiRequests.length,
})
const NOTHING = { tokens: 0, calls: 0 }

for (const [name, change] of Object.entries({
  revocation_endpoint: (origin: string) => ({ revocation_endpoint: `${origin}/revoke` }),
  token_endpoint: (origin: string) => ({ token_endpoint: `${origin}/token` }),
  'every endpoint': (origin: string) => ({
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    revocation_endpoint: `${origin}/revoke`,
    client_secret: 'other secret',
  }),
})) {
  test(`a moved ${name} gets no token of connected accounts`, async (t) => {
    const made = await setting()
    const { at, lent, connector, workspace } = made
    const first = await connected(made)
    const second = await connected(made)
    const elsewhere = await moved(made, change)
    const { connection } = first
    t.is((await read(made, connection['id']))['status'], 'needs_reauthorization')
    await outdate(connection['credential_id'])
    const refused = await call(made, lent.token, connection['credential_id']).gives(403)
    t.is(refused.body['error'], 'reauthorization_required')

    // Both are revoked where they were connected, with the secret that was given for it.
    await api.delete(`${CONNECTIONS}/${String(connection['id'])}`, lent.token).gives(204)
    await api.delete(`${CONNECTORS}/${String(connector['id'])}`, workspace.token).gives(204)
    t.is((await read(made, second.connection['id']))['status'], 'revoked')
    t.deepEqual(heard(elsewhere), NOTHING)
    t.deepEqual(at.revoked, ['rt-0', 'rt-0'])
    const revocations = at.upstream.tokenRequests.filter(({ path }) => path === '/revoke')
    for (const { form } of revocations) t.is(form['client_secret'], 'client secret')
  })
}

test('a moved endpoint gets no client secret that was given before', async (t) => {
  const made = await setting()
  const { person } = made
  const asked = await start(made)
  const elsewhere = await moved(made, (origin) => ({ token_endpoint: `${origin}/token` }))
  elsewhere.answer(() => ({ status: 401, body: { error: 'invalid_client' } }))
  const location = await approve(person, await openConnect(person, asked['connect_url']))
  const failed = await person.browser.get(elsewhere.agree(location))
  t.true(failed.html.includes('data-connection="failed"'), failed.html)
  t.is(elsewhere.codes.length, 1)
  t.false(elsewhere.codes[0]!.text.includes('secret'), elsewhere.codes[0]!.text)
  t.is(elsewhere.codes[0]!.headers.authorization, undefined)

  elsewhere.answer(null)
  await moved(made, () => ({ client_secret: 'new secret' }))
  const again = await approve(person, await openConnect(person, asked['connect_url']))
  await person.browser.get(elsewhere.agree(again))
  t.is((await read(made, asked['id']))['status'], 'active')
  t.is(elsewhere.codes.at(-1)!.form['client_secret'], 'new secret')
})

test('a first revocation endpoint keeps connections and secret at the origin of the token endpoint only', async (t) => {
  const made = await setting({ revocation_endpoint: null })
  const { at, lent } = made
  const { connection } = await connected(made)
  await moved(made, () => ({ revocation_endpoint: `${at.upstream.origin}/revoke` }))
  t.is((await read(made, connection['id']))['status'], 'active')
  await outdate(connection['credential_id'])
  await call(made, lent.token, connection['credential_id']).gives(200)
  await moved(made, (origin) => ({ revocation_endpoint: `${origin}/revoke` }))
  t.is((await read(made, connection['id']))['status'], 'needs_reauthorization')
  t.deepEqual(await eventsOf(made), ['requested', 'activated', 'needs_reauthorization'])
})

test('a code is not sent after the connector has changed, and a changed page is shown again', async (t) => {
  const made = await setting()
  const { at, person } = made
  const asked = await start(made)
  const open = () => openConnect(person, asked['connect_url'])
  const away = at.agree(await approve(person, await open()))
  const elsewhere = await moved(made, (origin) => ({
    token_endpoint: `${origin}/token`,
    client_secret: 'other secret',
  }))
  const failed = await person.browser.get(away)
  t.true(failed.html.includes('data-connection="failed"'), failed.html)

  const page = await open()
  await moved(made, () => ({ allowed_hosts: ['api.upstream.example', 'more.example'] }))
  const again = await person.browser.submit(page, {}, /approve$/)
  t.is(new URL(String(again.headers['location']), running.issuer).pathname, page.path)
  t.deepEqual(heard(elsewhere), NOTHING)
  t.is(at.codes.length, 0)
  const hosts = await open()
  t.true(hosts.html.includes('more.example'))
  await person.browser.get(elsewhere.agree(await approve(person, hosts)))
  t.is((await read(made, asked['id']))['status'], 'active')
})

test('the name of an account is read on allowed hosts only', async (t) => {
  const made = await setting()
  const { token } = made.workspace
  const path = `${CONNECTORS}/${String(made.connector['id'])}`
  const label = { url: 'https://elsewhere.example/me', pointer: '/login' }
  const refused = await api.patch(path, token, { account_label: label }).gives(400)
  t.like(refused.body, { errors: [{ pointer: '#/account_label/url' }] })
  await api.patch(path, token, { allowed_hosts: ['other.example'] }).gives(400)
  const client = { client_id: 'x', client_secret: 'y', allowed_hosts: ['gmail.googleapis.com'] }
  const { body } = await api
    .post(CONNECTORS, token, { name: 'google', template: 'google', ...client })
    .gives(201)
  t.false('account_label' in body, 'the host of the template is not among the hosts')
})

test('a revoked credential ends its connection, also at the provider', async (t) => {
  const made = await setting()
  const { at, workspace } = made
  const { connection } = await connected(made)
  const path = `/api/v1/vault/credentials/${String(connection['credential_id'])}`
  await api.post(`${path}/revoke`, workspace.token).gives(200)
  t.is((await read(made, connection['id']))['status'], 'revoked')
  t.deepEqual(at.revoked, ['rt-0'])
  t.deepEqual(await eventsOf(made), ['requested', 'activated', 'revoked'])
  // Again it changes nothing.
  await api.post(`${path}/revoke`, workspace.token).gives(200)
  await api.delete(`${CONNECTIONS}/${String(connection['id'])}`, workspace.token).gives(204)
  t.deepEqual(at.revoked, ['rt-0'])
  t.deepEqual(await eventsOf(made), ['requested', 'activated', 'revoked'])
})

test('a revocation that the provider does not answer is sent again, and a refused one is not', async (t) => {
  const made = await setting()
  const { at, lent, workspace } = made
  const waiting = () => sql<{ tries: number }>(running)`
    select tries from vault_revocations where tenant_id = ${workspace.tenantId}`
  const ended = async () => {
    const { connection } = await connected(made)
    await api.delete(`${CONNECTIONS}/${String(connection['id'])}`, lent.token).gives(204)
  }
  at.confirm(503)
  await ended()
  t.deepEqual(await waiting(), [{ tries: 1 }])
  await sql(running)`
    update vault_revocations set due_at = now() where tenant_id = ${workspace.tenantId}`
  at.confirm(200)
  await ended()
  t.deepEqual(at.revoked, ['rt-0', 'rt-0', 'rt-0'])
  t.deepEqual(await waiting(), [])
  at.confirm(400)
  await ended()
  t.deepEqual(await waiting(), [])
})

test('a code that is redeemed while its connector or request ends leaves no token behind', async (t) => {
  for (const end of ['connector', 'connection'] as const) {
    const made = await setting()
    const { at, person, workspace, connector } = made
    const asked = await start(made)
    const back = at.agree(await approve(person, await openConnect(person, asked['connect_url'])))
    const path = {
      connector: `${CONNECTORS}/${String(connector['id'])}`,
      connection: `${CONNECTIONS}/${String(asked['id'])}`,
    }[end]
    at.answer(async () => {
      await api.delete(path, workspace.token).gives(204)
      return { body: { access_token: 'late', refresh_token: 'rt-late', token_type: 'bearer' } }
    })
    const done = await person.browser.get(back)
    t.true(done.html.includes('data-connection="over"'), done.html)
    t.deepEqual(at.revoked, ['rt-late'])
    t.is((await read(made, asked['id']))['status'], 'revoked')
  }
})

test('a deleted connector ends all its connections, and its name is free', async (t) => {
  const made = await setting()
  const { workspace, connector, at } = made
  const { connection } = await connected(made)
  const { id } = await start(made)
  await sql(running)`
    insert into vault_connections (tenant_id, id, connector_id, connector, user_id, subject, requester_type, requester_id,
      agent_id, status, scopes, code_expires_at, created_at, updated_at)
    select tenant_id, gen_random_uuid(), connector_id, connector, user_id, subject, requester_type, requester_id,
      agent_id, status, scopes, code_expires_at, created_at, updated_at
    from vault_connections, generate_series(1, 120) where id = ${String(id)}`
  const path = `${CONNECTORS}/${String(connector['id'])}`
  await api.delete(path, workspace.token).gives(204)
  await api.get(path, workspace.token).gives(404)
  await api.patch(path, workspace.token, { scopes: ['read'] }).gives(404)
  await api.delete(path, workspace.token).gives(404)
  t.deepEqual((await api.get(CONNECTORS, workspace.token).gives(200)).body, [] as unknown)
  const counts = await sql<{ status: string; count: number }>(running)`
    select status, count(*)::integer as count from vault_connections
    where tenant_id = ${workspace.tenantId} group by status`
  t.deepEqual(counts, [{ status: 'revoked', count: 122 }])
  t.is((await read(made, connection['id']))['connector'], 'tracker')
  t.deepEqual(at.revoked, ['rt-0'])
  await connectorFor(api, workspace, at)
})

test('what people authorize at a known provider goes nowhere else', async (t) => {
  const { token } = await api.workspace()
  const github = { template: 'github', name: 'code', client_id: 'of-another', client_secret: 'x' }
  const pointerOf = async (change: Readonly<Record<string, unknown>>) => {
    const { status, body } = await api.post(CONNECTORS, token, { ...github, ...change })
    return status === 400 ? (body['errors'] as { pointer: string }[])[0]!.pointer : status
  }
  const token_endpoint = 'https://elsewhere.example/token'
  t.is(await pointerOf({ token_endpoint }), '#/token_endpoint')
  t.is(await pointerOf({ revocation_endpoint: token_endpoint }), '#/revocation_endpoint')
  t.is(await pointerOf({ pkce: false }), '#/pkce')
  for (const name of ['scope', 'request_uri', 'include_granted_scopes'])
    t.is(
      await pointerOf({ authorization_parameters: { [name]: 'x' } }),
      '#/authorization_parameters',
    )
  const authorization_endpoint = 'https://github.com/login/oauth/authorize?x=1'
  const byHand = { template: 'custom', allowed_hosts: ['api.github.com'], authorization_endpoint }
  t.is(await pointerOf({ ...byHand, token_endpoint }), '#/token_endpoint')
  t.is(await pointerOf({ authorization_endpoint }), 201)
})

test('an agent asks for a scope where the connector has some', async (t) => {
  const { lent } = await setting()
  const asked = await api.post(CONNECTIONS, lent.token, { connector: 'tracker', scopes: [] })
  t.is(asked.status, 400)
  t.is((asked.body['errors'] as { pointer: string }[])[0]!.pointer, '#/scopes')
})
