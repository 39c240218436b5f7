/** Connected accounts over HTTP, with a provider that the test runs. */
import test from 'ava'
import type { Json } from '../../support/api.js'
import { connectAccount, httpClient } from '../../../runtime/clients/client/exports.js'
import { delegate, newFixture, present } from '../../support/agents/delegation.js'
import { sql } from '../../support/storage/sql.js'
import { until } from '../../support/service/watch.js'
import { egressHouse } from '../../support/vault/egress.js'
import {
  approve,
  connecting,
  CONNECTIONS,
  CONNECTORS,
  DELEGATED,
  openConnect,
} from '../../support/vault/connect.js'

const house = await egressHouse()
const { api, running } = house
const { setting, start, read, connected, call, outdate, eventsOf } = connecting(house)
type Setting = Awaited<ReturnType<typeof setting>>

const end = async ({ person: { browser } }: Setting, delegationId: string) =>
  browser.submit(
    await browser.get('/auth/account'),
    {},
    `/auth/account/delegations/${delegationId}/revoke`,
  )

test('an agent asks, the person connects, and egress uses and refreshes the token', async (t) => {
  const made = await setting()
  const { at, lent, person } = made
  const asked = await start(made, { reason: 'To file the bug', max_bytes: 5_000_000 })
  t.like(asked, { status: 'pending', expires_in: 600, interval: 5 })
  t.true(String(asked['connect_url']).startsWith(`${running.issuer}/connect/`))
  await api.get(`${CONNECTIONS}/${String(asked['id'])}`, lent.token).gives(200)
  await api.get(`${CONNECTIONS}/${String(asked['id'])}`, lent.token).gives(429)

  const page = await openConnect(person, asked['connect_url'])
  t.is(page.status, 200, page.html)
  for (const text of ['tracker', 'read', 'write', 'api.upstream.example', 'To file the bug'])
    t.true(page.html.includes(text), text)
  t.regex(String(page.headers['content-security-policy']), /form-action 'self' https:/)

  const location = await approve(person, page, { lasts: '3600', max_bytes: '4000000' })
  const query = new URL(location).searchParams
  t.like(Object.fromEntries(query), {
    own: '1',
    response_type: 'code',
    client_id: 'client-1',
    scope: 'read write',
    redirect_uri: `${running.issuer}/connect/callback`,
    code_challenge_method: 'S256',
  })
  const back = at.agree(location)
  const shown = await person.browser.get(back)
  const done = await person.browser.follow(shown)
  t.is(done.status, 200, done.html)
  const reloaded = await person.browser.get(String(shown.headers['location']))
  t.true(reloaded.html.includes('data-connection="active"'), 'a reload shows it again')
  t.true(done.html.includes('data-connection="active"'))
  t.is((await person.browser.get(back)).status, 404, 'the state is used once')
  t.is(at.codes.length, 1)
  t.like(at.codes[0]!.form, { client_secret: 'client secret', grant_type: 'authorization_code' })

  const { body: connection } = await api
    .get(`${CONNECTIONS}/${String(asked['id'])}`, lent.token)
    .gives(200)
  t.like(connection, {
    status: 'active',
    connector: 'tracker',
    account_label: 'octo/cat',
    max_bytes: 4_000_000,
    scopes: ['read', 'write'],
  })
  const ends = Date.parse(String(connection['expires_at']))
  t.true(ends > Date.now() + 3_000_000 && ends < Date.now() + 3_700_000)
  const credentialId = connection['credential_id']
  const { body: credential } = await api
    .get(`/api/v1/vault/credentials/${String(credentialId)}`, made.workspace.token)
    .gives(200)
  t.like(credential, {
    auth_scheme: 'oauth2_refresh',
    credential_type: 'custom',
    non_exportable: true,
  })

  const first = await call(made, lent.token, credentialId).gives(200)
  t.is(at.upstream.apiRequests[0]!.authorization, 'Bearer first-access')
  t.false(JSON.stringify(first.body).includes('first-access'))
  await outdate(credentialId)
  await call(made, lent.token, credentialId).gives(200)
  t.is(at.upstream.apiRequests[1]!.authorization, 'Bearer at-1')
  const again = await person.browser.get(new URL(String(asked['connect_url'])).pathname)
  t.true(again.html.includes('data-connection="active"'), 'a used code shows the result')
  t.deepEqual(await eventsOf(made), ['requested', 'activated'])
})

test('a refused refresh token asks the person again, and the connection stays', async (t) => {
  const made = await setting()
  const { at, lent, person } = made
  const { connection } = await connected(made)
  const credentialId = connection['credential_id']
  at.refuse('invalid_grant')
  await outdate(credentialId)
  const refused = await call(made, lent.token, credentialId).gives(403)
  t.is(refused.body['error'], 'reauthorization_required')
  const second = await call(made, lent.token, credentialId).gives(403)
  t.is(second.body['connect_url'], refused.body['connect_url'], 'one open request')
  t.is((await read(made, connection['id']))['status'], 'needs_reauthorization')

  at.refuse(null)
  const page = await openConnect(person, refused.body['connect_url'])
  await person.browser.get(at.agree(await approve(person, page)))
  const renewed = await read(made, connection['id'])
  t.like(renewed, { status: 'active', credential_id: credentialId })
  await call(made, lent.token, credentialId).gives(200)
  t.deepEqual(await eventsOf(made), [
    'requested',
    'activated',
    'needs_reauthorization',
    'requested',
    'activated',
  ])
})

test('the client library prints the link and waits', async (t) => {
  const made = await setting()
  const { person, at, lent } = made
  const http = httpClient(running.baseUrl, running.ca)
  t.teardown(() => http.close())
  let link = Promise.resolve()
  const account = await connectAccount({
    http,
    token: async () => lent.token,
    connector: 'tracker',
    onLink: (url) => {
      link = openConnect(person, url)
        .then((page) => approve(person, page))
        .then((location) => person.browser.get(at.agree(location)))
        .then(() => undefined)
    },
  })
  await link
  t.like(account, { status: 'active', accountLabel: 'octo/cat' })
  await call(made, lent.token, account.credentialId).gives(200)
})

test('DELETE revokes at the provider and ends the grant', async (t) => {
  const made = await setting()
  const { at, lent } = made
  const { connection } = await connected(made)
  await api.delete(`${CONNECTIONS}/${String(connection['id'])}`, lent.token).gives(204)
  t.deepEqual(at.revoked, ['rt-0'])
  t.is((await read(made, connection['id']))['status'], 'revoked')
  await call(made, lent.token, connection['credential_id']).gives(403)
  t.deepEqual(await eventsOf(made), ['requested', 'activated', 'revoked'])
})

test('sloppy answers of real providers', async (t) => {
  const made = await setting({ pkce: false, token_endpoint_auth_method: 'client_secret_basic' })
  const { at, lent } = made
  at.answer(() => ({
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: 'access_token=gho_form&scope=read%2Cwrite&token_type=bearer',
  }))
  const form = await connected(made)
  t.true(form.done.html.includes('data-connection="active"'), form.done.html)
  t.deepEqual(form.connection['scopes'], ['read', 'write'])
  t.regex(String(at.codes[0]!.headers.authorization), /^Basic /)
  const id = form.connection['credential_id']
  await call(made, lent.token, id).gives(200)
  t.is(at.upstream.apiRequests.at(-1)!.authorization, 'Bearer gho_form')
  // There is no refresh token: a rejected token needs the person.
  at.upstream.reject('gho_form')
  await call(made, lent.token, id).gives(403)

  at.answer(() => ({ body: { ok: false, error: 'invalid_code' } }))
  const failed = await connected(made)
  t.true(failed.done.html.includes('data-connection="failed"'))
  t.is(failed.connection['status'], 'pending')

  at.answer(() => ({
    body: {
      ok: true,
      authed_user: { id: 'U1', access_token: 'xoxp-1', scope: 'read', token_type: 'user' },
    },
  }))
  const slack = await connected(made)
  t.is(slack.connection['status'], 'active')
  t.deepEqual(slack.connection['scopes'], ['read'])
})

test('iss, errors of the provider, and no', async (t) => {
  const made = await setting()
  const { at, person } = made
  const asked = await start(made)
  const open = () => openConnect(person, asked['connect_url'])
  const wrong = at.agree(await approve(person, await open()), {
    code: 'c',
    iss: 'https://evil.example',
  })
  t.true((await person.browser.get(wrong)).html.includes('data-connection="failed"'))
  t.is(at.codes.length, 0, 'the code is not sent')
  for (const more of [{}, { code: '' }, { code: 'c' }]) {
    const members = { error: 'server_error', ...more }
    const fault = at.agree(await approve(person, await open()), members)
    t.true((await person.browser.get(fault)).html.includes('data-connection="failed"'))
  }
  const empty = at.agree(await approve(person, await open()), { code: '', error: '' })
  t.true((await person.browser.get(empty)).html.includes('data-connection="failed"'))
  t.is(at.codes.length, 0, 'no code is sent')
  t.is((await read(made, asked['id']))['status'], 'pending')
  const no = at.agree(await approve(person, await open()), {
    error: 'access_denied',
    iss: at.upstream.origin,
  })
  const refused = await person.browser.follow(await person.browser.get(no))
  t.true(refused.html.includes('data-connection="denied"'))
  t.is((await read(made, asked['id']))['status'], 'denied')

  const second = await start(made)
  const page = await openConnect(person, second['connect_url'])
  const denied = await person.browser.submit(page, {}, /deny$/)
  t.true(denied.html.includes('data-connection="denied"'))
  t.deepEqual(await eventsOf(made), ['requested', 'denied', 'requested', 'denied'])
})

test('another person, another session and an unknown code get nothing', async (t) => {
  const made = await setting()
  const other = await present(api, await newFixture(api, made.workspace))
  const asked = await start(made)
  const path = new URL(String(asked['connect_url'])).pathname
  t.is((await other.browser.get(path)).status, 403)
  t.is((await other.browser.get('/connect/unknown')).status, 404)
  const location = await approve(made.person, await openConnect(made.person, asked['connect_url']))
  const back = made.at.agree(location)
  t.is((await other.browser.get(back)).status, 404)
  t.is((await made.person.browser.get(back)).status, 303, 'the state is still there')
})

test('the grant is never for another person, and ends with the last delegation', async (t) => {
  const made = await setting()
  const { workspace, lent } = made
  const { connection } = await connected(made)
  const id = connection['credential_id']
  const other = await present(api, await newFixture(api, workspace))
  const theirs = await delegate(api, workspace.token, other, { scope: DELEGATED })
  await call(made, theirs.token, id).gives(404)
  const again = await delegate(api, workspace.token, made.person, { scope: DELEGATED })
  await end(made, lent.delegationId)
  await call(made, again.token, id).gives(200)
  await end(made, again.delegationId)
  const later = await delegate(api, workspace.token, made.person, { scope: DELEGATED })
  await call(made, later.token, id).gives(404)
  t.is((await read(made, connection['id']))['status'], 'active')
})

test('a silent provider holds few places, and a person beyond them tries again', async (t) => {
  const made = await setting()
  const { at, person } = made
  const backs: string[] = []
  const ids: unknown[] = []
  for (let nth = 0; nth < 9; nth += 1) {
    const asked = await start(made)
    ids.push(asked['id'])
    backs.push(at.agree(await approve(person, await openConnect(person, asked['connect_url']))))
  }
  let answer = () => {}
  const answered = new Promise<void>((resolve) => {
    answer = resolve
  })
  at.answer(async () => {
    await answered
    return { body: { access_token: 'late', token_type: 'bearer' } }
  })
  const waiting = backs.slice(0, 8).map((back) => person.browser.get(back).then((page) => page))
  await until('eight codes wait', () => at.codes.length === 8)
  const busy = await person.browser.get(backs[8]!)
  t.is(busy.status, 503)
  t.is(busy.headers['retry-after'], '5')
  // Another tenant is served.
  const other = await setting()
  t.is((await connected(other)).connection['status'], 'active')
  answer()
  for (const page of await Promise.all(waiting)) t.is(page.status, 303)
  t.is((await person.browser.get(backs[8]!)).status, 303, 'the state is still there')
  for (const id of ids) t.is((await read(made, id))['status'], 'active')
})

test('a name that does not come keeps no account from being connected', async (t) => {
  const made = await setting()
  made.at.name(() => new Promise(() => {}))
  const { connection } = await connected(made)
  t.is(connection['status'], 'active')
  t.false('account_label' in connection)
})

test('an agent asks a bounded number of times in a day', async (t) => {
  const made = await setting()
  const { lent } = made
  const { id } = await start(made)
  await api.delete(`${CONNECTIONS}/${String(id)}`, lent.token).gives(204)
  await sql(running)`
    insert into vault_connections (tenant_id, id, connector_id, connector, user_id, subject, requester_type, requester_id,
      agent_id, status, scopes, created_at, updated_at)
    select tenant_id, gen_random_uuid(), connector_id, connector, user_id, subject, requester_type, requester_id,
      agent_id, status, scopes, created_at, updated_at
    from vault_connections, generate_series(1, 198) where id = ${String(id)}`
  await start(made)
  const { headers } = await api.post(CONNECTIONS, lent.token, { connector: 'tracker' }).gives(429)
  t.is(headers['retry-after'], '600')
})

test('connectors: templates, conflicts, secrets and requests that do not fit', async (t) => {
  const { token, tenantId } = await api.workspace()
  const { body: created } = await api
    .post(CONNECTORS, token, {
      name: 'github',
      template: 'github',
      client_id: 'Iv1.x',
      client_secret: 'the secret',
    })
    .gives(201)
  t.like(created, {
    tenant_id: tenantId,
    template: 'github',
    token_endpoint: 'https://github.com/login/oauth/access_token',
    allowed_hosts: ['api.github.com'],
    callback_url: `${running.issuer}/connect/callback`,
    pkce: true,
  })
  t.false('client_secret' in created)
  const again = { name: 'github', template: 'github', client_id: 'x', client_secret: 'y' }
  await api.post(CONNECTORS, token, again).gives(409)
  await api.post(CONNECTORS, token, { name: 'own', client_id: 'x', client_secret: 'y' }).gives(400)
  const path = `${CONNECTORS}/${String(created['id'])}`
  const { body: changed } = await api.patch(path, token, { scopes: ['repo'] }).gives(200)
  t.deepEqual(changed['scopes'], ['repo'])
  const { body: listed } = await api.get('/api/v1/vault/connector-templates', token).gives(200)
  t.is((listed['templates'] as readonly Json[]).length, 8)
  await api.post(CONNECTIONS, token, { connector: 'github' }).gives(403)
  await api.delete(path, token).gives(204)
  await api.get(path, token).gives(404)
})
