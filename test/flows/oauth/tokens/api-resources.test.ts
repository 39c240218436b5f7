/** API resources over HTTP: registration, and tokens for them in every grant (RFC 8707, RFC 9728). */
import test from 'ava'
import { decodeJwt } from 'jose'
import * as oidc from 'openid-client'
import { bootstrapped, type Workspace } from '../../../support/identity/person.js'
import { callAt, type Json, tenantAgent } from '../../../support/identity/tenant-agent.js'
import {
  authorized,
  CALLBACK,
  callbackOf,
  isConsent,
  pathOf,
  type RelyingParty,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { until } from '../../../support/service/watch.js'
import { sharedPair } from '../../../support/service.js'

const RESOURCES = '/api/v1/api-resources'
const FILES = [
  { name: 'files:read', description: 'Read your files', kind: 'read' },
  { name: 'files:write', description: 'Change your files', kind: 'write' },
]
const [running, second] = await sharedPair('clients')
const person = await bootstrapped(running)
const other = await bootstrapped(running)

async function form(
  path: string,
  fields: Record<string, string>,
  headers: Record<string, string> = {},
) {
  return callAt(running.baseUrl, path, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: new URLSearchParams(fields).toString(),
  })
}

const basic = (id: string, secret: string) => ({
  authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
})

async function admin(
  of: Workspace,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
) {
  const credentials = basic(of.clientId, of.clientSecret)
  const scope = 'applications:manage applications:read'
  const grant = { grant_type: 'client_credentials', scope }
  const { body: token } = await form('/oauth/token', grant, credentials)
  return callAt(running.baseUrl, path, {
    method,
    headers: {
      authorization: `Bearer ${String(token['access_token'])}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

async function registered(more: Json = {}): Promise<{ id: string; resource: string }> {
  const resource = `https://${crypto.randomUUID()}.files.test/mcp`
  const answer = await admin(person, 'POST', RESOURCES, {
    resource,
    name: 'Files',
    scopes: FILES,
    ...more,
  })
  if (answer.status !== 201) throw new Error(answer.text)
  return { id: String(answer.body['id']), resource: String(answer.body['resource']) }
}

const party = (more: Parameters<typeof relyingParty>[2] = {}) =>
  relyingParty(running, person, {
    grantTypes: [
      'authorization_code',
      'refresh_token',
      'client_credentials',
      'urn:ietf:params:oauth:grant-type:token-exchange',
      'urn:ietf:params:oauth:grant-type:device_code',
    ],
    ...more,
  })

const ask = (client: RelyingParty, fields: Record<string, string>) =>
  form('/oauth/token', fields, basic(client.clientId, client.secret))

async function isActive(client: RelyingParty, token: unknown): Promise<unknown> {
  const credentials = basic(client.clientId, client.secret)
  const answer = await form('/oauth/introspect', { token: String(token) }, credentials)
  return answer.body['active']
}

test('a resource is created, read, listed, changed and deleted', async (t) => {
  const resource = 'https://crud.files.test/mcp'
  const body = { resource, name: 'Files', scopes: FILES }
  const made = await admin(person, 'POST', RESOURCES, body)
  t.is(made.status, 201, made.text)
  const { id } = made.body
  t.is(made.headers.get('location'), `${RESOURCES}/${String(id)}`)
  t.like(made.body, { resource, name: 'Files', tenant_id: person.tenantId, require_dpop: false })
  t.like(made.body, { allowed_clients: 'any', client_ids: [], scopes: FILES })
  t.false('access_token_lifetime_secs' in made.body)
  const at = `${RESOURCES}/${String(id)}`
  t.deepEqual((await admin(person, 'GET', at)).body, made.body)
  const listed = (await admin(person, 'GET', RESOURCES)).body as unknown as Json[]
  t.true(listed.some((one) => one['id'] === id))
  const change = { name: 'Papers', access_token_lifetime_secs: 120, require_dpop: true }
  const changed = await admin(person, 'PATCH', at, change)
  t.is(changed.status, 200, changed.text)
  t.like(changed.body, { ...change, resource, scopes: FILES })
  const metadata = await admin(person, 'GET', `${at}/protected-resource-metadata`)
  t.deepEqual(metadata.body, {
    resource,
    authorization_servers: [running.issuer],
    scopes_supported: ['files:read', 'files:write'],
    bearer_methods_supported: ['header'],
    resource_name: 'Papers',
    jwks_uri: `${running.baseUrl}/.well-known/jwks.json`,
    dpop_bound_access_tokens_required: true,
  })
  t.is((await admin(other, 'GET', at)).status, 404)
  t.is((await admin(other, 'DELETE', at)).status, 404)
  t.is((await admin(person, 'DELETE', at)).status, 204)
  t.is((await admin(person, 'GET', at)).status, 404)
})

test('a resource belongs to one tenant, in every spelling', async (t) => {
  const body = { resource: 'https://One.files.test', name: 'One', scopes: [] }
  const key = { 'idempotency-key': crypto.randomUUID() }
  const first = await admin(person, 'POST', RESOURCES, body, key)
  t.is(first.status, 201, first.text)
  const again = await admin(person, 'POST', RESOURCES, body, key)
  t.deepEqual([again.status, again.body['id']], [201, first.body['id']])
  for (const resource of ['https://one.files.test/', 'HTTPS://ONE.files.test']) {
    const taken = await admin(other, 'POST', RESOURCES, { ...body, resource })
    t.deepEqual([taken.status, taken.body['error']], [409, 'conflict'])
  }
  const crowd = await Promise.all(
    [person, other, person, other].map((of) =>
      admin(of, 'POST', RESOURCES, { ...body, resource: 'https://race.files.test/' }),
    ),
  )
  t.deepEqual(crowd.map(({ status }) => status).toSorted(), [201, 409, 409, 409])
})

for (const [title, change, status, error] of [
  ['a host of another', { resource: 'https://mcp.example.com/mcp' }, 422, 'domain_not_verified'],
  ['an address', { resource: 'https://10.0.0.1/mcp' }, 422, 'domain_not_verified'],
  ['http on a public host', { resource: 'http://files.test/mcp' }, 400, 'bad_request'],
  ['a fragment', { resource: 'https://files.test/mcp#x' }, 400, 'bad_request'],
  ['a user', { resource: 'https://me@files.test/mcp' }, 400, 'bad_request'],
  ['an empty user', { resource: 'https://:@files.test/mcp' }, 400, 'bad_request'],
  ['an empty name of a user', { resource: 'https://@files.test/mcp' }, 400, 'bad_request'],
  ['no scopes', { scopes: undefined }, 400, 'bad_request'],
  ['null for scopes', { scopes: null }, 400, 'bad_request'],
  ['a relative URI', { resource: '/mcp' }, 400, 'bad_request'],
  ['a scope of this service', { scopes: [{ name: 'vault:read' }] }, 400, 'bad_request'],
  ['a scope twice', { scopes: [FILES[0], FILES[0]] }, 400, 'bad_request'],
] as [string, Json, number, string][]) {
  test(`a resource with ${title} is refused`, async (t) => {
    const resource = `https://${crypto.randomUUID()}.files.test/mcp`
    const body = { resource, name: 'Refused', scopes: [], ...change }
    const refused = await admin(person, 'POST', RESOURCES, body)
    t.deepEqual([refused.status, refused.body['error']], [status, error], refused.text)
  })
}

test('a resource of a loopback host may use http', async (t) => {
  const made = await registered({ resource: 'http://127.0.0.1:39107/mcp' })
  t.is(made.resource, 'http://127.0.0.1:39107/mcp')
})

test('a code gives tokens for the resource alone, and a refresh repeats it', async (t) => {
  const { resource } = await registered({ access_token_lifetime_secs: 90 })
  const client = await party()
  const parameters = { scope: 'openid files:read offline_access', resource }
  const { tokens } = await client.signedIn(person, parameters)
  const claims = decodeJwt(tokens.access_token)
  t.is(claims.aud, resource)
  t.is(claims['scope'], 'openid files:read offline_access')
  t.is(tokens.scope, 'openid files:read offline_access')
  t.is(Number(claims.exp) - Number(claims.iat), 90)
  const refresh_token = tokens.refresh_token!
  const wrong = await ask(client, {
    grant_type: 'refresh_token',
    refresh_token,
    resource: 'https://elsewhere.files.test/',
  })
  t.deepEqual([wrong.status, wrong.body['error']], [400, 'invalid_target'])
  const again = await ask(client, { grant_type: 'refresh_token', refresh_token, resource })
  t.is(again.status, 200, again.text)
  t.is(decodeJwt(String(again.body['access_token'])).aud, resource)
  t.is(again.body['scope'], 'openid files:read offline_access')
  const own = await callAt(running.baseUrl, '/api/v1/applications', {
    headers: { authorization: `Bearer ${String(again.body['access_token'])}` },
  })
  t.is(own.status, 401)
})

test('a resource without a path is the same with and without a slash', async (t) => {
  const host = `${crypto.randomUUID()}.files.test`
  const { resource } = await registered({ resource: `https://${host}` })
  const client = await party()
  const parameters = { scope: 'openid files:read', resource: `https://${host}/` }
  const { tokens } = await client.signedIn(person, parameters, {})
  t.is(decodeJwt(tokens.access_token).aud, resource)
})

test('a grant for two resources can be narrowed to one, and never widened', async (t) => {
  const one = await registered()
  const two = await registered({ scopes: [{ name: 'mail:read', description: '', kind: 'read' }] })
  const client = await party()
  const browser = openBrowser(running)
  const begun = await client.journey({ scope: 'openid files:read mail:read' })
  begun.url.searchParams.append('resource', one.resource)
  begun.url.searchParams.append('resource', two.resource)
  const callback = callbackOf(await authorized(browser, person, begun.url))
  const code = {
    grant_type: 'authorization_code',
    code: callback.searchParams.get('code')!,
    redirect_uri: CALLBACK,
    code_verifier: begun.verifier,
  }
  const three = await registered()
  const wider = await ask(client, { ...code, resource: three.resource })
  t.is(wider.body['error'], 'invalid_target')
  const narrowed = await ask(client, { ...code, resource: one.resource })
  t.is(narrowed.status, 200, narrowed.text)
  t.is(decodeJwt(String(narrowed.body['access_token'])).aud, one.resource)
  t.is(narrowed.body['scope'], 'openid files:read')
  const refresh = { grant_type: 'refresh_token', resource: two.resource }
  const refresh_token = String(narrowed.body['refresh_token'])
  const changed = await ask(client, { ...refresh, refresh_token })
  t.is(decodeJwt(String(changed.body['access_token'])).aud, two.resource)
  t.is(changed.body['scope'], 'openid mail:read')
})

for (const [title, parameters, error] of [
  ['an unknown resource', { resource: 'https://unknown.files.test/', scope: 'files:read' }],
  ['a resource and this service', { audience: 'ISSUER', scope: 'files:read' }],
  ['a relative resource', { resource: 'mcp', scope: 'openid' }],
  ['a scope of this service', { scope: 'openid org:read' }, 'invalid_scope'],
  ['an unknown scope', { scope: 'files:delete' }, 'invalid_scope'],
] as [string, Record<string, string>, string?][]) {
  test(`an authorization and a pushed request with ${title} are refused`, async (t) => {
    const { resource } = await registered()
    const client = await party()
    const asked: Record<string, string> = { resource, ...parameters }
    const named = asked['audience'] === undefined ? asked : { ...asked, audience: running.issuer }
    const { url } = await client.journey(named)
    const page = await openBrowser(running).get(pathOf(url))
    const answer = callbackOf(page).searchParams
    t.is(answer.get('error'), error ?? 'invalid_target')
    t.is(answer.get('iss'), running.issuer)
    const fields = Object.fromEntries(url.searchParams)
    const pushed = await form('/oauth/par', fields, basic(client.clientId, client.secret))
    t.deepEqual([pushed.status, pushed.body['error']], [400, error ?? 'invalid_target'])
  })
}

test('another tenant cannot get tokens for the resource', async (t) => {
  const { resource } = await registered()
  const stranger = await relyingParty(running, other, { grantTypes: ['client_credentials'] })
  const answer = await ask(stranger, { grant_type: 'client_credentials', resource })
  t.deepEqual([answer.status, answer.body['error']], [400, 'invalid_target'])
})

test('a token for a resource alone does not open /userinfo', async (t) => {
  const { resource } = await registered()
  const client = await party()
  const other = await party()
  const scope = 'openid profile email offline_access'
  const userinfo = (token: unknown) =>
    callAt(running.baseUrl, '/userinfo', { headers: { authorization: `Bearer ${String(token)}` } })
  for (const target of [resource, other.audience]) {
    const { tokens } = await client.signedIn(person, { scope, resource: target })
    const refused = await userinfo(tokens.access_token)
    t.is(refused.status, 401, refused.text)
    t.regex(String(refused.headers.get('www-authenticate')), /error="invalid_token"/)
    t.false(refused.text.includes(person.email))
    const { refresh_token } = tokens
    const again = await ask(client, { grant_type: 'refresh_token', refresh_token: refresh_token! })
    t.is((await userinfo(again.body['access_token'])).status, 401)
  }
  for (const target of [client.audience, running.issuer]) {
    const { tokens } = await client.signedIn(person, { scope, resource: target })
    t.is((await userinfo(tokens.access_token)).status, 200, target)
  }
  const { tokens } = await client.signedIn(person, { scope })
  t.is((await userinfo(tokens.access_token)).body['email'], person.email)
})

test('an application cannot have the resource of another tenant as its audience', async (t) => {
  const { resource } = await registered()
  const agent = await tenantAgent(running.baseUrl)
  const body = { name: 'Stranger', audience: resource }
  t.is((await agent.ask('POST', '/api/v1/applications', body)).status, 409)
})

test('client_credentials gives the scopes that the application lists', async (t) => {
  const { id, resource } = await registered()
  const client = await party()
  const fields = { grant_type: 'client_credentials', resource }
  t.is((await ask(client, fields)).body['error'], 'invalid_scope')
  const listed = await party({ scopes: ['openid', 'files:read'] })
  const answer = await ask(listed, fields)
  t.is(answer.body['scope'], 'files:read')
  t.is(decodeJwt(String(answer.body['access_token'])).aud, resource)
  t.is((await ask(listed, { ...fields, scope: 'files:write' })).body['error'], 'invalid_scope')
  await admin(person, 'PATCH', `${RESOURCES}/${id}`, { client_ids: [client.clientId] })
  const all = await ask(client, fields)
  t.is(all.body['scope'], 'files:read files:write')
})

test('an application may list scopes of the resources of its tenant', async (t) => {
  await registered({ scopes: [{ name: 'ledger:read', description: '', kind: 'money' }] })
  const body = { name: 'Ledger', scopes: ['openid', 'ledger:read'] }
  const agent = await tenantAgent(running.baseUrl)
  const refused = await agent.ask('POST', '/api/v1/applications', body)
  t.deepEqual([refused.status, refused.body['error']], [400, 'invalid_scope'])
  const resource = `https://${crypto.randomUUID()}.files.test/`
  const scopes = [{ name: 'ledger:read' }]
  const made = await agent.ask('POST', RESOURCES, { resource, name: 'Ledger', scopes })
  t.is(made.status, 201, made.text)
  t.is((await agent.ask('POST', '/api/v1/applications', body)).status, 201)
})

test('a resource that needs DPoP refuses requests without a proof', async (t) => {
  const { id, resource } = await registered({ require_dpop: true })
  const client = await party({ scopes: ['openid', 'files:read'] })
  const fields = { grant_type: 'client_credentials', resource }
  const refused = await ask(client, fields)
  t.deepEqual([refused.status, refused.body['error']], [401, 'invalid_dpop_proof'])
  const handle = oidc.getDPoPHandle(client.config, await oidc.randomDPoPKeyPair('ES256'))
  const granted = await oidc.clientCredentialsGrant(client.config, { resource }, { DPoP: handle })
  t.is(granted.token_type, 'dpop')
  await admin(person, 'PATCH', `${RESOURCES}/${id}`, { require_dpop: false })
  const { tokens } = await client.signedIn(person, {
    scope: 'openid files:read',
    resource,
  })
  await admin(person, 'PATCH', `${RESOURCES}/${id}`, { require_dpop: true })
  const refresh_token = tokens.refresh_token!
  const refresh = await ask(client, { grant_type: 'refresh_token', refresh_token })
  t.is(refresh.body['error'], 'invalid_dpop_proof')
})

test('a deleted resource ends its tokens and refuses the refresh', async (t) => {
  const { id, resource } = await registered()
  const client = await party()
  const { tokens } = await client.signedIn(person, {
    scope: 'openid files:read',
    resource,
  })
  t.is(await isActive(client, tokens.access_token), true)
  t.is((await admin(person, 'DELETE', `${RESOURCES}/${id}`)).status, 204)
  t.is(await isActive(client, tokens.access_token), false)
  const refresh_token = tokens.refresh_token!
  const refresh = await ask(client, { grant_type: 'refresh_token', refresh_token })
  t.deepEqual([refresh.status, refresh.body['error']], [400, 'invalid_target'])
  // A new resource with the same URI does not revive the old grant.
  await registered({ resource })
  const later = await ask(client, { grant_type: 'refresh_token', refresh_token, resource })
  t.is(later.body['error'], 'invalid_target')
})

test('only listed clients use a resource, and a client that is taken off loses its tokens', async (t) => {
  const client = await party()
  const limits = { allowed_clients: 'listed', client_ids: [client.clientId] }
  const { id, resource } = await registered(limits)
  const stranger = await party()
  const { url } = await stranger.journey({ scope: 'files:read', resource })
  const page = await openBrowser(running).get(pathOf(url))
  t.is(callbackOf(page).searchParams.get('error'), 'invalid_target')
  const { tokens } = await client.signedIn(person, {
    scope: 'openid files:read',
    resource,
  })
  t.is(await isActive(client, tokens.access_token), true)
  await admin(person, 'PATCH', `${RESOURCES}/${id}`, { client_ids: [] })
  t.is(await isActive(client, tokens.access_token), false)
  const refresh_token = tokens.refresh_token!
  const refresh = await ask(client, { grant_type: 'refresh_token', refresh_token })
  t.is(refresh.body['error'], 'invalid_target')
})

test('an exchange gives fewer scopes and never another resource', async (t) => {
  const { resource } = await registered()
  const two = await registered()
  const client = await party({ scopes: ['openid', 'files:read', 'files:write'] })
  const asked = { scope: 'openid files:read files:write', resource }
  const { tokens } = await client.signedIn(person, asked)
  const exchange = {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: tokens.access_token,
    subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
  }
  const fewer = await ask(client, { ...exchange, resource, scope: 'files:read' })
  t.is(fewer.status, 200, fewer.text)
  t.is(decodeJwt(String(fewer.body['access_token'])).aud, resource)
  t.is(fewer.body['scope'], 'files:read')
  for (const target of [two.resource, running.issuer])
    t.is((await ask(client, { ...exchange, resource: target })).body['error'], 'invalid_target')
  const wider = { ...exchange, subject_token: String(fewer.body['access_token']) }
  t.is((await ask(client, { ...wider, scope: 'files:write' })).body['error'], 'invalid_scope')
})

test('the consent page shows the resource and marks new scopes', async (t) => {
  const { resource } = await registered()
  const client = await party()
  const { browser } = await client.signedIn(person, {
    scope: 'openid files:read',
    resource,
  })
  const same = await client.journey({ scope: 'files:read', resource })
  t.is((await browser.get(pathOf(same.url))).status, 302)
  const more = await client.journey({ scope: 'files:read files:write', resource })
  const page = await browser.get(pathOf(more.url))
  t.true(isConsent(page))
  t.true(page.html.includes(`data-resource="${resource}"`))
  t.true(page.html.includes('data-redirect-host="app.example"'))
  t.regex(page.html, /data-scope="files:write" data-new-scope>.*<div>Change your files/)
  t.regex(page.html, /data-scope="files:read">.*<div>Read your files/)
  t.false(page.html.includes('data-loopback-only'))
  // The consent is for one resource.
  const two = await registered()
  const elsewhere = await client.journey({ scope: 'files:read', resource: two.resource })
  t.true(isConsent(await browser.get(pathOf(elsewhere.url))))
})

test('a device code is for its resource', async (t) => {
  const { resource } = await registered()
  const client = await party()
  const credentials = basic(client.clientId, client.secret)
  const fields = { scope: 'openid files:read', resource }
  const started = await form('/oauth/device/code', fields, credentials)
  t.is(started.status, 200, started.text)
  const browser = openBrowser(running)
  const complete = new URL(String(started.body['verification_uri_complete']))
  let page = await browser.follow(await browser.get(pathOf(complete)))
  if (page.path.startsWith('/auth/login'))
    page = await browser.follow(
      await browser.submit(page, { email: person.email, password: person.password }),
    )
  await browser.submit(page, { action: 'approve' })
  const answer = await ask(client, {
    grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
    device_code: String(started.body['device_code']),
    resource,
  })
  t.is(answer.status, 200, answer.text)
  t.is(decodeJwt(String(answer.body['access_token'])).aud, resource)
  t.is(answer.body['scope'], 'openid files:read')
  const unknown = await form('/oauth/device/code', { ...fields, scope: 'vault:list' }, credentials)
  t.is(unknown.body['error'], 'invalid_scope')
})

test('a user withdraws the consent for a resource on the account page', async (t) => {
  const { resource } = await registered()
  const client = await party()
  const asked = { scope: 'openid files:read', resource }
  const { browser, tokens } = await client.signedIn(person, asked)
  const page = await browser.get('/auth/account')
  t.true(page.html.includes('files:read'))
  await browser.submit(page, {}, `/auth/account/consents/${client.clientId}/withdraw`)
  t.is(await isActive(client, tokens.access_token), false)
  const again = await client.journey(asked)
  t.true(isConsent(await browser.get(pathOf(again.url))))
})

test('a code for a resource is redeemed once of 20 concurrent times', async (t) => {
  const { resource } = await registered()
  const client = await party()
  const browser = openBrowser(running)
  const begun = await client.journey({ scope: 'openid files:read', resource })
  const callback = callbackOf(await authorized(browser, person, begun.url))
  const fields = {
    grant_type: 'authorization_code',
    code: callback.searchParams.get('code')!,
    redirect_uri: CALLBACK,
    code_verifier: begun.verifier,
    resource,
  }
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask(client, fields)))
  t.is(answers.filter(({ status }) => status === 200).length, 1)
})

test('another process refuses a deleted resource within a second', async (t) => {
  const { id, resource } = await registered()
  const client = await party({ scopes: ['openid', 'files:read'] })
  const granted = () =>
    callAt(second.baseUrl, '/oauth/token', {
      method: 'POST',
      headers: basic(client.clientId, client.secret),
      body: new URLSearchParams({ grant_type: 'client_credentials', resource }),
    })
  t.is((await granted()).status, 200)
  await admin(person, 'DELETE', `${RESOURCES}/${id}`)
  let error: unknown
  await until('the second process refuses', async () => {
    error = (await granted()).body['error']
    return error !== undefined
  })
  t.is(error, 'invalid_target')
})
