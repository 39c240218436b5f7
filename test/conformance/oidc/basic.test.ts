/**
 * Modules of the OpenID conformance suite that fit this service, under their names
 * (oidcc-basic-certification-test-plan).
 */
import test from 'ava'
import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose'
import * as oidc from 'openid-client'
import { openBrowser } from '../../support/pages/browser.js'
import { sql } from '../../support/storage/sql.js'
import { bootstrapped } from '../../support/identity/person.js'
import {
  authorized,
  CALLBACK,
  callbackOf,
  pathOf,
  relyingParty,
  signedIn,
} from '../../support/oauth/relying-party.js'
import { sharedService } from '../../support/service.js'

/** Signs in and grants `party` everything it requests. */
const running = await sharedService('plain')
const person = await bootstrapped(running)
const party = await relyingParty(running, person)
const first = await party.signedIn(person)
const browser = first.browser

type Parameters = Readonly<Record<string, string>>
/** The response to a browser that is signed in and has consented. */
const silently = async (parameters: Parameters = {}, of = browser) => {
  const begun = await party.journey(parameters)
  return { ...begun, callback: callbackOf(await authorized(of, person, begun.url)) }
}
const redeem = ({ callback, checks }: Awaited<ReturnType<typeof silently>>) =>
  oidc.authorizationCodeGrant(party.config, callback, checks)
const errorOf = async (parameters: Parameters, of = browser) => {
  const { url } = await party.journey(parameters)
  return callbackOf(await of.get(pathOf(url))).searchParams.get('error')
}
/** `auth_time` and `max_age` are in whole seconds. */
const aSecond = () => new Promise((resolve) => setTimeout(resolve, 1_050))
const userinfo = (init: RequestInit) => fetch(`${running.baseUrl}/userinfo`, init)

test('oidcc-server', (t) => {
  t.like(first.claims, { iss: running.baseUrl, aud: party.clientId, nonce: first.nonce })
  t.is(first.callback.searchParams.get('state'), first.state)
})

test('oidcc-discovery-endpoint-verification', async (t) => {
  const answer = await fetch(`${running.baseUrl}/.well-known/openid-configuration`)
  const metadata = (await answer.json()) as Record<string, unknown>
  t.like(metadata, {
    issuer: running.baseUrl,
    authorization_endpoint: `${running.baseUrl}/oauth/authorize`,
    userinfo_endpoint: `${running.baseUrl}/userinfo`,
    end_session_endpoint: `${running.baseUrl}/oauth/end-session`,
    pushed_authorization_request_endpoint: `${running.baseUrl}/oauth/par`,
    authorization_response_iss_parameter_supported: true,
    claims_parameter_supported: true,
    request_parameter_supported: false,
    jwks_uri: `${running.baseUrl}/.well-known/jwks.json`,
    token_endpoint: `${running.baseUrl}/oauth/token`,
  })
  const includes = (name: string, ...values: string[]) => {
    for (const value of values) t.true((metadata[name] as string[]).includes(value), name)
  }
  includes('scopes_supported', 'openid')
  includes('subject_types_supported', 'pairwise')
  includes('grant_types_supported', 'authorization_code')
  includes('claims_supported', 'sub', 'iss', 'name', 'email')
  includes('id_token_signing_alg_values_supported', 'ES256', 'EdDSA', 'RS256')
  includes('dpop_signing_alg_values_supported', 'ES256')
  includes('token_endpoint_auth_methods_supported', 'private_key_jwt')
  includes('token_endpoint_auth_signing_alg_values_supported', 'ES256')
  t.is((await fetch(metadata['jwks_uri'] as string)).status, 200)
  t.deepEqual(metadata['response_types_supported'], ['code'])
  t.deepEqual(metadata['response_modes_supported'], [
    'query',
    'form_post',
    'jwt',
    'query.jwt',
    'form_post.jwt',
  ])
  t.deepEqual(metadata['code_challenge_methods_supported'], ['S256'])
  t.deepEqual(metadata['prompt_values_supported'], ['none', 'login', 'consent', 'select_account'])
  const capabilities = (await (await fetch(`${running.baseUrl}/api/v1/capabilities`)).json()) as {
    capabilities: string[]
  }
  for (const name of ['oauth.authorization_code', 'oauth.par', 'oauth.rar', 'oidc.end_session'])
    t.true(capabilities.capabilities.includes(name), name)
})

test('oidcc-response-type-missing', async (t) => {
  const { url } = await party.journey()
  url.searchParams.delete('response_type')
  const answer = callbackOf(await browser.get(pathOf(url)))
  t.is(answer.searchParams.get('error'), 'invalid_request')
})

test('oidcc-userinfo-get, -post-header and -post-body', async (t) => {
  const { access_token } = first.tokens
  const authorization = `Bearer ${access_token}`
  const answers = await Promise.all([
    userinfo({ headers: { authorization } }),
    userinfo({ method: 'POST', headers: { authorization } }),
    userinfo({ method: 'POST', body: new URLSearchParams({ access_token }) }),
  ])
  for (const answer of answers) {
    t.is(answer.status, 200)
    t.like(await answer.json(), { sub: first.claims.sub, tenant_id: person.tenantId })
  }
  const twice = await userinfo({
    method: 'POST',
    headers: { authorization },
    body: new URLSearchParams({ access_token }),
  })
  t.is(twice.status, 400)
  const anonymous = await userinfo({})
  t.is(anonymous.status, 401)
  // RFC 6750 section 3.1: no error code without credentials. RFC 9728 section 5.1: the metadata URL.
  const hints =
    `resource_metadata="${running.baseUrl}/.well-known/oauth-protected-resource", ` +
    'scope="openid"'
  t.is(anonymous.headers.get('www-authenticate'), `Bearer ${hints}`)
  const wrong = await userinfo({ headers: { authorization: 'Bearer wrong' } })
  t.is(wrong.status, 401)
  const challenge = wrong.headers.get('www-authenticate') ?? ''
  t.true(challenge.startsWith('Bearer error="invalid_token", '), challenge)
  t.true(challenge.endsWith(hints), challenge)
})

test('oidcc-userinfo-rs256', async (t) => {
  const signed = await relyingParty(running, person, { userinfoSignedResponseAlg: 'RS256' })
  const { tokens } = await signed.signedIn(person)
  const answer = await fetch(`${running.baseUrl}/userinfo`, {
    headers: { authorization: `Bearer ${tokens.access_token}` },
  })
  t.is(answer.status, 200)
  t.is(answer.headers.get('content-type'), 'application/jwt')
  const jwt = await answer.text()
  const keys = createRemoteJWKSet(new URL(`${running.baseUrl}/.well-known/jwks.json`))
  const { payload, protectedHeader } = await jwtVerify(jwt, keys, {
    issuer: running.baseUrl,
    audience: signed.clientId,
  })
  t.is(protectedHeader.alg, 'RS256')
  t.like(payload, { sub: tokens.claims()!.sub, email: person.email })
  // It stands for no ID token and for no access token.
  const out = `${running.baseUrl}/oauth/end-session?id_token_hint=${jwt}`
  t.is((await fetch(out)).status, 400)
  const headers = { authorization: `Bearer ${jwt}` }
  t.is((await fetch(`${running.baseUrl}/userinfo`, { headers })).status, 401)
})

test('oidcc-ensure-request-without-nonce-succeeds-for-code-flow', async (t) => {
  const { url, verifier, state } = await party.journey()
  url.searchParams.delete('nonce')
  const callback = callbackOf(await browser.get(pathOf(url)))
  const checks = { pkceCodeVerifier: verifier, expectedState: state }
  const tokens = await oidc.authorizationCodeGrant(party.config, callback, checks)
  t.false('nonce' in tokens.claims()!)
})

for (const [name, scope, claims, absent] of [
  ['oidcc-scope-profile', 'openid profile', ['name', 'preferred_username'], ['email']],
  ['oidcc-scope-email', 'openid email', ['email', 'email_verified'], ['name']],
  ['several scopes in one request', 'openid profile email', ['name', 'email'], ['organizations']],
  ['org:read, after its example', 'openid org:read', ['organizations'], ['email']],
] as const) {
  test(name, async (t) => {
    const own = await relyingParty(running, person)
    const { tokens, claims: id } = await own.signedIn(person, { scope })
    t.is(tokens.scope, scope)
    const told = await oidc.fetchUserInfo(own.config, tokens.access_token, id.sub)
    for (const claim of claims) t.true(claim in told, claim)
    for (const claim of absent) t.false(claim in told, claim)
  })
}

test('oidcc-prompt-login', async (t) => {
  const other = openBrowser(running)
  const before = await redeem(await silently({}, other))
  await aSecond()
  const { url } = await party.journey({ prompt: 'login' })
  const asked = await other.follow(await other.get(pathOf(url)))
  t.true(asked.path.startsWith('/auth/login'), 'signed in, and asked all the same')
  const after = await redeem(await silently({ prompt: 'login' }, other))
  t.true(after.claims()!.auth_time! > before.claims()!.auth_time!)
  t.not(after.claims()!['sid'], before.claims()!['sid'])
})

test('oidcc-prompt-none-not-logged-in', async (t) => {
  const other = openBrowser(running)
  t.is(await errorOf({ prompt: 'none' }, other), 'login_required')
})

test('oidcc-prompt-none-logged-in', async (t) => {
  const { url, ...begun } = await party.journey({ prompt: 'none' })
  const callback = callbackOf(await browser.get(pathOf(url)))
  const tokens = await redeem({ ...begun, url, callback })
  t.is(tokens.claims()!.sub, first.claims.sub)
  t.is(tokens.claims()!.auth_time, first.claims.auth_time)
})

test('oidcc-max-age-1', async (t) => {
  const other = openBrowser(running)
  const before = await redeem(await silently({}, other))
  await aSecond()
  for (const max_age of ['0', '1']) {
    t.is(await errorOf({ prompt: 'none', max_age }, other), 'login_required')
    const { url } = await party.journey({ max_age })
    t.true((await other.follow(await other.get(pathOf(url)))).path.startsWith('/auth/login'))
  }
  const tokens = await redeem(await silently({ max_age: '1' }, other))
  t.true(tokens.claims()!.auth_time! > before.claims()!.auth_time!)
})

test('oidcc-max-age-10000', async (t) => {
  for (const max_age of ['15000', '10000']) {
    const tokens = await redeem(await silently({ max_age, prompt: 'none' }))
    t.is(tokens.claims()!.auth_time, first.claims.auth_time)
    t.is(tokens.claims()!.sub, first.claims.sub)
  }
})

test('oidcc-ensure-request-with-unknown-parameter-succeeds, -display, -ui-locales and -claims-locales', async (t) => {
  for (const display of ['page', 'popup']) {
    const more = { extra: 'foobar', display, ui_locales: 'se', claims_locales: 'se' }
    t.truthy((await redeem(await silently(more))).id_token)
    const other = openBrowser(running)
    const { url } = await party.journey(more)
    t.true((await other.follow(await other.get(pathOf(url)))).path.startsWith('/auth/login'))
  }
})

test('oidcc-alternate-happy-flow', async (t) => {
  const begun = await party.journey({ scope: 'email profile openid' })
  const reversed = [...begun.url.searchParams].toReversed()
  const path = `${begun.url.pathname}?${new URLSearchParams(reversed).toString()}`
  const callback = callbackOf(await browser.get(path))
  const tokens = await redeem({ ...begun, callback })
  t.deepEqual(tokens.scope?.split(' ').toSorted(), ['email', 'openid', 'profile'])
})

test('oidcc-id-token-hint', async (t) => {
  const hint = { prompt: 'none', id_token_hint: first.tokens.id_token! }
  const tokens = await redeem(await silently(hint))
  t.is(tokens.claims()!.sub, first.claims.sub)
  t.is(await errorOf({ ...hint, id_token_hint: `${hint.id_token_hint}x` }), 'invalid_request')
  const stranger = await bootstrapped(running)
  const theirs = await relyingParty(running, stranger)
  const { tokens: foreign } = await theirs.signedIn(stranger)
  t.is(await errorOf({ ...hint, id_token_hint: foreign.id_token! }), 'invalid_request')
})

test('oidcc-login-hint', async (t) => {
  const other = openBrowser(running)
  const { url } = await party.journey({ login_hint: person.email })
  const page = await other.follow(await other.get(pathOf(url)))
  t.is(page.forms[0]?.fields['email'], person.email)
  const { password } = person
  const end = await other.follow(await other.submit(page, { password }))
  t.truthy(callbackOf(end).searchParams.get('code'), 'as the person of the hint')
})

test('oidcc-ensure-request-with-acr-values-succeeds', async (t) => {
  // All advertised values, and values that no one knows.
  for (const acr_values of ['aal1', 'aal1 aal2', '1 2']) {
    const tokens = await redeem(await silently({ acr_values }))
    t.is(tokens.claims()!['acr'], 'aal1')
  }
  const error = await errorOf({ acr_values: 'aal2', prompt: 'none' })
  t.is(error, 'unmet_authentication_requirements')
  const { url } = await party.journey({ acr_values: 'aal2' })
  t.regex((await browser.get(pathOf(url))).location ?? '', /^\/auth\/(login|mfa)/)
  t.is(await errorOf({ acr_values: 'aal3' }), 'unmet_authentication_requirements')
})

test('oidcc-codereuse', async (t) => {
  const begun = await silently()
  const tokens = await redeem(begun)
  const authorization = `Bearer ${tokens.access_token}`
  t.is((await userinfo({ headers: { authorization } })).status, 200)
  const reuse = await t.throwsAsync<oidc.ResponseBodyError>(redeem(begun))
  t.is(reuse?.error, 'invalid_grant')
  t.is((await userinfo({ headers: { authorization } })).status, 401)
  await t.throwsAsync(oidc.refreshTokenGrant(party.config, tokens.refresh_token!))
})

test('oidcc-codereuse-30seconds', async (t) => {
  const begun = await silently()
  const tokens = await redeem(begun)
  const authorization = `Bearer ${tokens.access_token}`
  const earlier = (column: string) => `${column} = ${column} - interval '30 seconds'`
  const { length } = await sql(
    running.db.database,
    `update authorization_codes
     set ${['created_at', 'expires_at', 'redeemed_at'].map(earlier).join(', ')}
     where code_sha256 = sha256($1::bytea) returning id`,
    [Buffer.from(begun.callback.searchParams.get('code') ?? '')],
  )
  t.is(length, 1)
  const reuse = await t.throwsAsync<oidc.ResponseBodyError>(redeem(begun))
  t.is(reuse?.error, 'invalid_grant')
  t.is((await userinfo({ headers: { authorization } })).status, 401)
  await t.throwsAsync(oidc.refreshTokenGrant(party.config, tokens.refresh_token!))
})

test('oidcc-ensure-registered-redirect-uri', async (t) => {
  for (const redirect_uri of [`${CALLBACK}/`, `${CALLBACK}?x=1`, 'https://evil.example/callback']) {
    const { url } = await party.journey({ redirect_uri })
    const page = await browser.get(pathOf(url)).gives(400)
    t.is(page.location, null)
    t.true(page.html.includes('invalid_redirect_uri'))
  }
})

test('oidcc-ensure-post-request-succeeds', async (t) => {
  const { url, ...begun } = await party.journey()
  const answer = await browser.post('/oauth/authorize', Object.fromEntries(url.searchParams), {
    origin: 'https://app.example',
    'sec-fetch-site': 'cross-site',
  })
  t.truthy((await redeem({ ...begun, url, callback: callbackOf(answer) })).id_token)
})

test('oidcc-unsigned-request-object-… and oidcc-request-uri-unsigned-… are rejected as unsupported', async (t) => {
  t.is(await errorOf({ request: 'eyJhbGciOiJub25lIn0.e30.' }), 'request_not_supported')
  t.is(await errorOf({ request_uri: 'https://app.example/r' }), 'request_uri_not_supported')
  t.is(await errorOf({ registration: '{}' }), 'registration_not_supported')
})

test('oidcc-ensure-request-object-with-redirect-uri is rejected as unsupported', async (t) => {
  const claims = { client_id: party.clientId, redirect_uri: 'https://evil.example/callback' }
  const request = `eyJhbGciOiJub25lIn0.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.`
  // Only parameters outside of the request object are read, so the error is returned to their redirect URI.
  t.is(await errorOf({ request }), 'request_not_supported')
  const { url } = await party.journey({ request })
  url.searchParams.delete('redirect_uri')
  const page = await browser.get(pathOf(url)).gives(400)
  t.is(page.location, null)
})

test('oidcc-claims-essential', async (t) => {
  const own = await relyingParty(running, person)
  const claims = JSON.stringify({
    userinfo: { name: { essential: true } },
    id_token: { email: { essential: true } },
  })
  const asked = { scope: 'openid', claims }
  const { tokens, claims: id } = await own.signedIn(person, asked)
  t.is(id['email'], person.email)
  const told = await oidc.fetchUserInfo(own.config, tokens.access_token, id.sub)
  t.true('name' in told)
  t.false('email' in told)
})

test('oidcc-refresh-token', async (t) => {
  const tokens = await redeem(await silently())
  const stranger = await relyingParty(running, person)
  const stolen = oidc.refreshTokenGrant(stranger.config, tokens.refresh_token!)
  t.is((await t.throwsAsync<oidc.ResponseBodyError>(stolen))?.error, 'invalid_grant')
  const next = await oidc.refreshTokenGrant(party.config, tokens.refresh_token!)
  for (const claim of ['iss', 'sub', 'aud', 'azp', 'auth_time', 'acr', 'sid'])
    t.deepEqual(next.claims()![claim], tokens.claims()![claim], claim)
  t.is(decodeJwt(next.access_token)['acr'], 'aal1')
})

test('oidcc-server, client_secret_post', async (t) => {
  const own = await relyingParty(running, person, {
    tokenEndpointAuthMethod: 'client_secret_post',
  })
  const config = new oidc.Configuration(
    own.config.serverMetadata(),
    own.clientId,
    { id_token_signed_response_alg: 'ES256' },
    oidc.ClientSecretPost(own.secret),
  )
  oidc.allowInsecureRequests(config)
  const { claims } = await signedIn(running, { ...own, config }, person)
  t.is(claims.aud, own.clientId)
})
