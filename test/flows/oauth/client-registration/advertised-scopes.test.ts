/** Every scope that a metadata document lists can be registered and used by a client that registers itself. */
import test from 'ava'
import * as oidc from 'openid-client'
import { fixtureOf } from '../../../support/agents/delegation.js'
import { TOKENS } from '../../../support/identity/registering.js'
import { CALLBACK, signedIn } from '../../../support/oauth/relying-party.js'
import { sharedApi } from '../../../support/service.js'

const DOMAIN = 'svc.example'
const DOCUMENTS = ['openid-configuration', 'oauth-authorization-server', 'oauth-protected-resource']
/** Scopes of no self-registered client: of administrators, of operators, unknown ones. */
const FOREIGN = ['tenant:manage', 'deployment:manage', 'credentials:issue', 'moon', '"', '']

// The test sets the Host header, which a client cannot do over HTTP/2.
const { api, running } = await sharedApi('hosts', { transport: 'plain_http' })
const workspace = await api.workspace()
const person = fixtureOf(workspace)

/** The host of the deployment needs an initial access token, which says the tenant. */
const ROOT = new URL(running.baseUrl).host
const TENANT = `${String(workspace.body['tenant_slug'])}.${DOMAIN}`
const register = (host: string, scope: string, more: object = {}, token?: string) =>
  api.call('POST', '/oauth/register', {
    headers: { host },
    token,
    json: {
      redirect_uris: [CALLBACK],
      grant_types: ['authorization_code', 'refresh_token'],
      scope,
      ...more,
    },
  })

for (const name of DOCUMENTS) {
  test(`a client registers and uses every scope of ${name}`, async (t) => {
    const initial = await api.post(TOKENS, workspace.token, {})
    for (const [host, token] of [
      [ROOT, String(initial.body['token'])],
      [TENANT, undefined],
    ] as const) {
      const { body: document } = await api.call('GET', `/.well-known/${name}`, {
        headers: { host },
      })
      const scope = (document['scopes_supported'] as string[]).join(' ')
      const made = await register(host, scope, {}, token).gives(201)
      t.is(made.body['scope'], scope, host)
      const clientId = String(made.body['client_id'])
      const secret = String(made.body['client_secret'])
      const config = await oidc.discovery(
        new URL(running.baseUrl),
        clientId,
        { id_token_signed_response_alg: 'ES256' },
        oidc.ClientSecretBasic(secret),
        { execute: [oidc.allowInsecureRequests] },
      )
      const party = { config, clientId, secret, audience: '' }
      const { browser, tokens } = await signedIn(running, party, person, { scope })
      browser.close()
      t.deepEqual(new Set(tokens.scope!.split(' ')), new Set(scope.split(' ')), host)
    }
  })
}

test('other scopes are left out, and the response says what is left', async (t) => {
  for (const [scope, left] of [
    [`openid ${FOREIGN.join(' ')} phone`, 'openid phone'],
    [FOREIGN.join(' '), 'openid'],
  ] as const) {
    const made = await register(TENANT, scope).gives(201)
    t.is(made.body['scope'], left)
    const path = new URL(String(made.body['registration_client_uri'])).pathname
    const token = String(made.body['registration_access_token'])
    const json = {
      client_id: made.body['client_id'],
      redirect_uris: [CALLBACK],
      scope: `email ${FOREIGN.join(' ')}`,
    }
    const replaced = await api.put(path, token, json).gives(200)
    t.is(replaced.body['scope'], 'email')
    t.is((await api.get(path, token)).body['scope'], 'email', 'what is stored')
  }
})

test('a narrowed client has no token of a scope that was left out', async (t) => {
  const machine = { redirect_uris: [], grant_types: ['client_credentials'], response_types: [] }
  const made = await register(TENANT, 'users:manage deployment:manage', machine)
  t.is(made.body['scope'], 'openid')
  const ask = (scope: string) =>
    api.form('/oauth/token', {
      grant_type: 'client_credentials',
      client_id: String(made.body['client_id']),
      client_secret: String(made.body['client_secret']),
      scope,
    })
  for (const scope of ['users:manage', 'deployment:manage', 'openid users:manage'])
    t.is((await ask(scope)).body['error'], 'invalid_scope', scope)
})
