/** A scope that is taken from an application or a person is not granted again (RFC 6749 section 6). */
import test from 'ava'
import { claimsOf } from '../../support/api.js'
import { openBrowser } from '../../support/pages/browser.js'
import { fixtureOf } from '../../support/agents/delegation.js'
import {
  authorized,
  CALLBACK,
  callbackOf,
  type RelyingParty,
  relyingParty,
} from '../../support/oauth/relying-party.js'
import { sharedApi } from '../../support/service.js'

const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'
const { api, running } = await sharedApi('plain')
const workspace = await api.workspace()

const refresh = ({ clientId, secret }: RelyingParty, refreshToken: unknown, scope?: string) =>
  api.form('/oauth/token', {
    grant_type: 'refresh_token',
    refresh_token: String(refreshToken),
    client_id: clientId,
    client_secret: secret,
    ...(scope === undefined ? {} : { scope }),
  })

const holding = (party: RelyingParty, scopes: readonly string[], ...grants: string[]) =>
  api.put(`/api/v1/applications/${party.clientId}`, workspace.token, {
    name: 'Lighthouse',
    redirect_uris: [CALLBACK],
    grant_types: ['authorization_code', 'refresh_token', ...grants],
    scopes,
  })

async function granted() {
  const party = await relyingParty(running, workspace, {
    scopes: ['openid', 'email', 'vault:list'],
  })
  const asked = { scope: 'openid email vault:list' }
  const { tokens } = await party.signedIn(fixtureOf(workspace), asked)
  return { party, refreshToken: tokens.refresh_token }
}

test.serial('a removed scope of an application is not in refreshed tokens', async (t) => {
  const { party, refreshToken } = await granted()
  t.is((await holding(party, ['openid', 'email'])).status, 200)
  await refresh(party, refreshToken, 'vault:list').gives(400, 'invalid_scope')
  const less = await refresh(party, refreshToken)
  t.is(less.status, 200, 'the other scopes are granted')
  t.is(less.body['scope'], 'openid email')
  t.is(claimsOf(less.body['access_token'])['scope'], 'openid email')

  t.is((await holding(party, ['openid', 'email', 'vault:list'])).status, 200)
  const again = await refresh(party, less.body['refresh_token'])
  t.is(again.body['scope'], 'openid email vault:list', 'the consent still has it')
})

test.serial('a code and an approval do not grant scopes that were removed since', async (t) => {
  const party = await relyingParty(running, workspace, {
    scopes: ['openid', 'email', 'vault:list'],
    grantTypes: ['authorization_code', 'refresh_token', DEVICE],
  })
  const client = { client_id: party.clientId, client_secret: party.secret }
  const person = fixtureOf(workspace)
  const browser = openBrowser(running)
  const asked = { scope: 'openid email vault:list' }
  const { url, verifier } = await party.journey(asked)
  const code = callbackOf(await authorized(browser, person, url)).searchParams.get('code')!
  const begun = await api.form('/oauth/device/code', { ...client, ...asked })
  const path = `/oauth/device/verify?user_code=${String(begun.body['user_code'])}`
  const page = await browser.follow(await browser.get(path))
  t.is((await browser.submit(page, { action: 'approve' })).status, 200)

  t.is((await holding(party, ['openid', 'email'], DEVICE)).status, 200)
  const redeemed = await api.form('/oauth/token', {
    ...client,
    grant_type: 'authorization_code',
    code,
    code_verifier: verifier,
    redirect_uri: CALLBACK,
  })
  const polled = await api.form('/oauth/token', {
    ...client,
    grant_type: DEVICE,
    device_code: String(begun.body['device_code']),
  })
  for (const { status, body } of [redeemed, polled]) {
    t.is(status, 200, JSON.stringify(body))
    t.is(body['scope'], 'openid email')
    t.is(claimsOf(body['access_token'])['scope'], 'openid email')
  }
})

test.serial('individually requested claims end with their scope', async (t) => {
  const party = await relyingParty(running, workspace, { scopes: ['openid', 'email'] })
  const claims = JSON.stringify({ id_token: { email: null }, userinfo: { email: null } })
  const person = fixtureOf(workspace)
  const { tokens } = await party.signedIn(person, { scope: 'openid', claims })
  const told = async ({ body }: { readonly body: Readonly<Record<string, unknown>> }) => ({
    token: claimsOf(body['id_token'])['email'],
    userinfo: (await api.get('/userinfo', String(body['access_token']))).body['email'],
  })
  const kept = await refresh(party, tokens.refresh_token)
  t.deepEqual(await told(kept), { token: person.email, userinfo: person.email })

  t.is((await holding(party, ['openid'])).status, 200)
  const less = await refresh(party, kept.body['refresh_token']).gives(200)
  t.deepEqual(await told(less), { token: undefined, userinfo: undefined })

  t.is((await holding(party, ['openid', 'email'])).status, 200)
  const again = await refresh(party, less.body['refresh_token'])
  t.deepEqual(await told(again), { token: person.email, userinfo: person.email })
})

test.serial('an application without any granted scope gets no token', async (t) => {
  const { party, refreshToken } = await granted()
  t.is((await holding(party, ['profile'])).status, 200)
  await refresh(party, refreshToken).gives(400, 'invalid_scope')
})

test.serial('a person who lost a role keeps none of its scopes', async (t) => {
  const { rows } = await api.list('/api/v1/tenant-users', workspace.token)
  const path = `/api/v1/tenant-users/${String(rows[0]!['id'])}`
  const giving = (roles: readonly string[]) => api.patch(path, workspace.token, { roles })
  t.is((await giving(['admin'])).status, 200)
  const party = await relyingParty(running, workspace, { scopes: ['openid', 'users:manage'] })
  const asked = { scope: 'openid users:manage' }
  const { tokens } = await party.signedIn(fixtureOf(workspace), asked)
  t.is(tokens.scope, 'openid users:manage')
  t.is((await giving(['admin', 'pilot'])).status, 200)
  const kept = await refresh(party, tokens.refresh_token)
  t.is(kept.status, 200, 'more roles end nothing')

  t.is((await giving(['member', 'pilot'])).status, 200)
  await refresh(party, kept.body['refresh_token']).gives(400, 'invalid_grant')
  const used = await api.get('/api/v1/tenant-users', String(kept.body['access_token']))
  t.is(used.status, 401, 'the access token too')
})
