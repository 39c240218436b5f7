/** Metadata as clients send it: empty strings of form libraries, and the private schemes of desktop applications. */
import test from 'ava'
import { apiOf } from '../../../support/api.js'
import { registering } from '../../../support/identity/registering.js'
import { CALLBACK, isConsent } from '../../../support/oauth/relying-party.js'
import { dataIn, openBrowser } from '../../../support/pages/browser.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { sharedService } from '../../../support/service.js'
import { type Json, tenantAgent } from '../../../support/identity/tenant-agent.js'

const running = await sharedService('clients')
const client = registering(running.baseUrl, await tenantAgent(running.baseUrl))

const register = async (metadata: Json) =>
  client.register(await client.initialToken(), { redirect_uris: [CALLBACK], ...metadata })

const OPTIONAL = [
  'client_uri',
  'logo_uri',
  'tos_uri',
  'policy_uri',
  'jwks_uri',
  'jwks',
  'software_id',
  'software_version',
  'client_name',
  'scope',
  'contacts',
  'application_type',
  'token_endpoint_auth_signing_alg',
  'id_token_signed_response_alg',
  'require_pushed_authorization_requests',
  'default_max_age',
]
for (const member of OPTIONAL)
  test(`${member} as an empty string counts as absent`, async (t) => {
    const [empty, absent] = [await register({ [member]: '' }), await register({})]
    t.is(empty.status, 201, empty.text)
    t.deepEqual(empty.body[member], absent.body[member])
  })

test('empty members of lists count as absent, and white space does not', async (t) => {
  const made = await register({ contacts: ['', 'a@app.example'], redirect_uris: ['', CALLBACK] })
  t.is(made.status, 201, made.text)
  t.deepEqual(made.body['contacts'], ['a@app.example'])
  t.deepEqual(made.body['redirect_uris'], [CALLBACK])
  t.is((await register({ redirect_uris: [''] })).status, 400)
  t.is((await register({ client_uri: ' ' })).status, 400)
})

test('addresses of a client in development are left out', async (t) => {
  const shown = ['client_uri', 'logo_uri', 'tos_uri', 'policy_uri']
  for (const uri of ['http://localhost:8080', 'http://app.example/about', 'HTTP://127.0.0.1/']) {
    const made = await register(Object.fromEntries(shown.map((member) => [member, uri])))
    t.is(made.status, 201, made.text)
    for (const member of shown) t.false(member in made.body, member)
  }
  for (const uri of [
    'javascript:alert(1)',
    '/about',
    'https://:@app.example/',
    'ftp://app.example',
  ])
    t.is((await register({ client_uri: uri })).body['error'], 'invalid_client_metadata', uri)
  t.is((await register({ jwks_uri: 'http://app.example/jwks' })).status, 400, 'not for users only')
})

const PUBLIC = { token_endpoint_auth_method: 'none' }
for (const uri of [
  'cursor://anysphere.cursor-retrieval/oauth/user-abc/callback',
  'vscode://ms-vscode.app/callback',
  'myapp:/callback',
  'zed-editor://oauth',
  'Windsurf://cb?x=1',
])
  test(`a public client may use ${uri}`, async (t) => {
    const redirect_uris = [uri, 'http://localhost:8123/callback']
    const made = await register({ ...PUBLIC, redirect_uris })
    t.is(made.status, 201, made.text)
    t.deepEqual(made.body['redirect_uris'], redirect_uris)
    t.is((await register({ redirect_uris })).body['error'], 'invalid_redirect_uri', 'with a secret')
  })

for (const scheme of [
  'javascript',
  'JavaScript',
  'vbscript',
  'data',
  'file',
  'blob',
  'about',
  'filesystem',
  'view-source',
  'ws',
  'wss',
  'ftp',
  'mailto',
  'tel',
  'sms',
  'intent',
  'search-ms',
  'ms-settings',
  'ms-word',
  'chrome-extension',
  'moz-extension',
  'urn',
])
  test(`the scheme ${scheme} is refused`, async (t) => {
    for (const rest of ['//host/callback', 'alert(1)', '/callback']) {
      const made = await register({ ...PUBLIC, redirect_uris: [`${scheme}:${rest}`] })
      t.is(made.body['error'], 'invalid_redirect_uri', rest)
    }
  })

for (const uri of ['https://:@app.example/cb', 'https://@app.example/', 'cursor://a@b/cb'])
  test(`an address with a user is refused: ${uri}`, async (t) => {
    const made = await register({ ...PUBLIC, redirect_uris: [uri] })
    t.is(made.body['error'], 'invalid_redirect_uri')
  })

test('the consent page names the private scheme, and PKCE is required', async (t) => {
  const open = await sharedService('hosts', { transport: 'plain_http' })
  const api = apiOf(open)
  t.teardown(async () => {
    await open.end()
  })
  const person = await bootstrapped(open)
  const redirect_uri = 'cursor://anysphere.cursor-retrieval/callback'
  const made = await api.call('POST', '/oauth/register', {
    headers: { host: `${person.tenantSlug}.svc.example` },
    json: { ...PUBLIC, redirect_uris: [redirect_uri] },
  })
  t.is(made.status, 201)
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: String(made.body['client_id']),
    redirect_uri,
    scope: 'openid',
  })
  const browser = openBrowser(open)
  const refused = await browser.get(`/oauth/authorize?${query.toString()}`)
  t.is(refused.location, null)
  t.is(refused.status, 400)
  query.set('code_challenge', 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM')
  query.set('code_challenge_method', 'S256')
  const login = await browser.follow(await browser.get(`/oauth/authorize?${query.toString()}`))
  const consent = await browser.follow(await browser.submit(login, person))
  t.true(isConsent(consent))
  t.deepEqual(dataIn(consent.html, 'redirect-host'), ['cursor'])
  const done = await browser.submit(consent, { action: 'allow' })
  t.true(done.location?.startsWith(`${redirect_uri}?code=`), String(done.location))
})
