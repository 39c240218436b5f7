/**
 * OpenID Connect Back-Channel Logout 1.0, the other way round: logout tokens of identity providers end the sessions that they
 * opened, and the applications of these get logout tokens.
 */
import { randomUUID } from 'node:crypto'
import test, { type ExecutionContext } from 'ava'
import * as oidc from 'openid-client'
import { fixtureOf } from '../../../support/agents/delegation.js'
import { apiOf } from '../../../support/api.js'
import { hostileProvider } from '../../../support/identity/hostile-provider.js'
import {
  authorized,
  callbackOf,
  pathOf,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { openBrowser, type Page, type TestBrowser } from '../../../support/pages/browser.js'
import { testService } from '../../../support/service.js'
import { sql } from '../../../support/storage/sql.js'
import { departed, FROM_OUR_PAGE, linkTo, reachable } from '../../../support/vault/upstream.js'
import { startReceiver } from '../../../support/webhooks/receiver.js'

const provider = await hostileProvider()
const way = await reachable([provider.pem])
const running = await testService({
  environment: {
    ...way.environment,
    SVC_GENERIC_OAUTH__ENABLED: 'true',
    SVC_GENERIC_OAUTH__ISSUER: provider.issuer,
    SVC_GENERIC_OAUTH__CLIENT_ID: 'rp',
    SVC_GENERIC_OAUTH__CLIENT_SECRET: 'the client secret of the relying party',
    SVC_ENTERPRISE_SSO__ENABLED: 'true',
  },
})
const api = apiOf(running)
const workspace = await api.workspace()
const person = fixtureOf(workspace)
const [tenant] = await sql<{ tenantSlug: string }>(running)`
  update tenants set settings = ${JSON.stringify({ social: { provision: true } })}
  where id = ${workspace.tenantId} returning slug as "tenantSlug"`
const receiver = await startReceiver(() => 200, provider.certificate)
const party = await relyingParty(running, workspace, {
  backchannelLogoutUri: `${receiver.origin}/logout`,
})
test.after.always(async () => {
  await provider.close()
  await receiver.close()
})

type Claims = Readonly<Record<string, unknown>>

/** The provider signs a user in. */
async function signIn(claims: Claims = {}, id = 'oidc') {
  const browser = openBrowser(running)
  return returned(browser, await departed(browser, tenant!, id), claims, id)
}

/** The provider signs the user of a browser in again. */
async function signInAgain({ browser }: SignedIn, claims: Claims) {
  const { url } = await party.journey({ prompt: 'login' })
  const page = await browser.follow(await browser.get(pathOf(url)))
  return returned(browser, await browser.get(linkTo(page, 'oidc'), FROM_OUR_PAGE), claims)
}

async function returned(browser: TestBrowser, { location }: Page, claims: Claims, id = 'oidc') {
  const subject = String(claims['sub'] ?? randomUUID())
  provider.mood = { claims: { sub: subject, email: `${subject}@evil.example`, ...claims } }
  const url = new URL(location!)
  provider.nonce = url.searchParams.get('nonce')!
  const query = { code: 'abc', state: url.searchParams.get('state')!, iss: provider.issuer }
  await browser.get(`/auth/sso/callback/${id}?${new URLSearchParams(query).toString()}`).gives(200)
  provider.mood = {}
  return {
    subject,
    browser,
    isOpen: async () => (await browser.get('/auth/account')).status === 200,
  }
}
type SignedIn = Awaited<ReturnType<typeof signIn>>

/** The tokens of the application, in this browser. */
async function tokensIn({ browser }: SignedIn) {
  const { url, checks } = await party.journey()
  const callback = callbackOf(await authorized(browser, person, url))
  return oidc.authorizationCodeGrant(party.config, callback, checks)
}
const userinfo = async (token: string) => (await api.get('/userinfo', token)).status

const post = (token: string, id = 'oidc') =>
  api.form(`/auth/sso/${id}/backchannel-logout`, { logout_token: token })

async function loggedOut(t: ExecutionContext, claims: Claims, id?: string) {
  const answer = await post(await provider.logoutToken(claims), id)
  t.like(answer, { status: 200, headers: { 'cache-control': 'no-store' } })
}

test.serial(
  'a logout token with sub ends every session of the user, with all that hangs on it',
  async (t) => {
    const first = await signIn()
    const { access_token: token } = await tokensIn(first)
    const second = await signIn({ sub: first.subject, sid: 'two' })
    const other = await signIn()
    t.is(await userinfo(token), 200)
    await loggedOut(t, { sub: first.subject })
    t.false(await first.isOpen())
    t.false(await second.isOpen())
    t.true(await other.isOpen())
    t.is(await userinfo(token), 401)
    t.is((await receiver.until('/logout', 1)).length, 1)
    const events = await sql(running)`
    select data from all_events where type = 'auth.logout' and data ->> 'reason' = 'provider_logout'`
    t.is(events.length, 2)
  },
)

test.serial('a logout token with sid ends that session alone', async (t) => {
  const sub = randomUUID()
  const first = await signIn({ sub, sid: 'first' })
  const second = await signIn({ sub, sid: 'second' })
  await loggedOut(t, { sub: 'another', sid: 'first' })
  t.true(await first.isOpen())
  await loggedOut(t, { sub: undefined, sid: 'first' })
  t.false(await first.isOpen())
  t.true(await second.isOpen())
  await loggedOut(t, { sub, sid: 'second' })
  t.false(await second.isOpen())
})

test.serial('a session whose sid is unknown ends with its user', async (t) => {
  const [unnamed, earlier] = [await signIn(), await signIn()]
  // As a process of the last release opens it.
  await sql(running)`
    update browser_sessions set upstream_subject = null where upstream_subject = ${earlier.subject}`
  for (const { subject, isOpen } of [unnamed, earlier]) {
    await loggedOut(t, { sub: undefined, sid: 'unknown' })
    t.true(await isOpen())
    await loggedOut(t, { sub: subject, sid: 'unknown' })
    t.false(await isOpen())
  }
})

test.serial('the tokens of a session that another one replaced end with its own', async (t) => {
  const sub = randomUUID()
  const first = await signIn({ sub, sid: 'before' })
  const { access_token: token } = await tokensIn(first)
  const second = await signInAgain(first, { sub, sid: 'after' })
  t.is(await userinfo(token), 200)
  await loggedOut(t, { sub, sid: 'before' })
  t.is(await userinfo(token), 401)
  t.true(await second.isOpen())
})

test.serial('a provider of a tenant ends its own sessions', async (t) => {
  const { token, tenantId } = workspace
  const draft = { name: 'Own', issuer: provider.issuer, client_id: 'rp', client_secret: 'secret' }
  const made = await api.post('/api/v1/sso/providers', token, draft).gives(201)
  const id = String(made.body['id'])
  await sql(running)`update accounts set email_verified = true where email = ${person.email}`
  const subject = randomUUID()
  await sql(running)`
    insert into upstream_identities (account_id, id, provider, tenant_id, issuer, subject, created_at, last_used_at)
    select id, gen_random_uuid(), ${id}, ${tenantId}, ${provider.issuer}, ${subject}, now(), now()
    from accounts where email = ${person.email}`
  const own = await signIn({ sub: subject }, id)
  t.true(await own.isOpen())
  await loggedOut(t, { sub: subject })
  t.true(await own.isOpen(), 'another provider')
  await loggedOut(t, { sub: subject }, id)
  t.false(await own.isOpen())
  // The secret is not opened for a logout.
  const sealed = Buffer.from([0])
  await sql(running)`update sso_providers set client_secret_sealed = ${sealed} where id = ${id}`
  await loggedOut(t, { sub: subject }, id)
  await sql(running)`update sso_providers set active = false where id = ${id}`
  t.is((await post(await provider.logoutToken({ sub: subject }), id)).status, 400)
})

for (const [what, fault, claims, mood] of [
  ['a nonce', 'nonce is forbidden', { nonce: 'n' }, {}],
  ['another key', 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED', {}, { foreignKey: true }],
] as const)
  test.serial(`a logout token with ${what} is refused, and ends nothing`, async (t) => {
    const { subject, isOpen } = await signIn()
    provider.mood = mood
    const token = await provider.logoutToken({ sub: subject, ...claims })
    provider.mood = {}
    t.like(await post(token), {
      status: 400,
      headers: { 'cache-control': 'no-store' },
      body: { error: 'invalid_request', error_description: fault },
    })
    t.true(await isOpen())
    await loggedOut(t, { sub: subject })
    t.false(await isOpen())
  })

test.serial('a logout token is used once, and at its provider alone', async (t) => {
  const { subject, isOpen } = await signIn()
  const token = await provider.logoutToken({ sub: subject })
  for (const id of ['google', randomUUID(), 'unknown']) t.is((await post(token, id)).status, 400)
  t.true(await isOpen())
  t.is((await post(token)).status, 200)
  t.false(await isOpen())
  const again = await signIn({ sub: subject })
  t.is((await post(token)).body['error_description'], 'jti was used before')
  t.true(await again.isOpen())
  const empty = await api.form('/auth/sso/oidc/backchannel-logout', {})
  t.like(empty, { status: 400, body: { error: 'invalid_request' } })
})

test.serial('tokens with an unknown key make one request for keys', async (t) => {
  const { subject } = await signIn()
  await loggedOut(t, { sub: subject })
  const asked = () => provider.asked.filter((one) => one === 'jwks').length
  const before = asked()
  provider.mood = { turnedKey: true }
  for (let nth = 0; nth < 5; nth += 1)
    t.is((await post(await provider.logoutToken({ sub: subject }))).status, 400)
  provider.mood = {}
  t.true(asked() - before <= 1, String(asked() - before))
})
