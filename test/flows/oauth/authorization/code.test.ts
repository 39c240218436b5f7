/** The authorization code flow, from sign-in to logout. */
import test from 'ava'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import * as oidc from 'openid-client'
import { freshKeyPair } from '../../../../runtime/kernel/key-pair.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { bootstrapped, SESSION_COOKIE } from '../../../support/identity/person.js'
import {
  authorized,
  CALLBACK,
  callbackOf,
  isConsent,
  pathOf,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { sharedService } from '../../../support/service.js'

const running = await sharedService('plain')
const person = await bootstrapped(running)

const userinfo = (accessToken: string, init: RequestInit = {}) =>
  fetch(`${running.baseUrl}/userinfo`, {
    ...init,
    headers: { authorization: `Bearer ${accessToken}`, ...(init.headers as object) },
  })

test('a user signs in and consents once, and the application gets the requested grant', async (t) => {
  const party = await relyingParty(running, person)
  const { browser, tokens, claims, callback } = await party.signedIn(person)
  t.is(callback.searchParams.get('iss'), running.baseUrl)
  t.is(tokens.token_type, 'bearer')
  t.is(tokens.expires_in, 900)
  t.is(tokens.scope, 'openid profile email')
  t.truthy(tokens.refresh_token)

  t.like(claims, { iss: running.baseUrl, aud: party.clientId, azp: party.clientId, acr: 'aal1' })
  t.deepEqual(claims['amr'], ['pwd'])
  t.is(claims['tenant_id'], person.tenantId)
  t.is(claims.exp - claims.iat, 300)
  const access = decodeJwt(tokens.access_token)
  t.is(decodeProtectedHeader(tokens.access_token).typ, 'at+jwt')
  t.like(access, {
    sub: claims.sub,
    sid: claims['sid'],
    subject_type: 'human',
    aud: party.audience,
    acr: 'aal1',
    aal: 1,
    client_id: party.clientId,
    auth_time: claims.auth_time,
  })

  const told = await oidc.fetchUserInfo(party.config, tokens.access_token, claims.sub)
  t.like(told, { sub: claims.sub, email: person.email, tenant_id: person.tenantId })
  t.is(typeof told.updated_at, 'number')

  const again = await party.journey()
  const silent = await browser.get(pathOf(again.url))
  t.truthy(callbackOf(silent).searchParams.get('code'), 'signed in and allowed: immediately')
  const none = await browser.get(pathOf((await party.journey({ prompt: 'none' })).url))
  t.truthy(callbackOf(none).searchParams.get('code'))
})

test('a form of another site brings no cookie: the redirect finds the session', async (t) => {
  const party = await relyingParty(running, person)
  const { browser } = await party.signedIn(person)
  const form = async (parameters: Record<string, string> = {}) => {
    const { url } = await party.journey({ prompt: 'none', ...parameters })
    const sent = await fetch(`${running.baseUrl}/oauth/authorize`, {
      method: 'POST',
      redirect: 'manual',
      headers: { 'sec-fetch-site': 'cross-site', origin: 'https://app.example' },
      body: url.searchParams,
    })
    t.deepEqual(sent.headers.getSetCookie(), [], 'the cookie of the browser stays')
    return new URL(sent.headers.get('location')!, running.baseUrl)
  }
  const resumed = await form()
  t.true(resumed.pathname.startsWith('/oauth/authorize/resume/'))
  const silent = await browser.get(resumed.pathname)
  t.truthy(callbackOf(silent).searchParams.get('code'))
  const stranger = openBrowser(running)
  const unknown = await stranger.get((await form()).pathname)
  t.is(callbackOf(unknown).searchParams.get('error'), 'login_required')
  t.is((await form({ scope: 'nonsense' })).searchParams.get('error'), 'invalid_scope')
})

test('a public client needs no secret, and refreshes with its id', async (t) => {
  const party = await relyingParty(running, person, { clientType: 'public' })
  const { tokens, claims } = await party.signedIn(person)
  const next = await oidc.refreshTokenGrant(party.config, tokens.refresh_token!)
  t.not(next.refresh_token, tokens.refresh_token)
  t.is(next.claims()!.sub, claims.sub)
  t.is(next.claims()!.auth_time, claims.auth_time)
  t.false('nonce' in next.claims()!)
  t.is((await userinfo(next.access_token)).status, 200)
  const bundle = await oidc.refreshTokenGrant(party.config, next.refresh_token!, {
    scope: 'openid',
  })
  t.is(bundle.scope, 'openid')
})

test('a request is pushed, and used by its request_uri alone', async (t) => {
  const party = await relyingParty(running, person, { requirePushedAuthorizationRequests: true })
  const browser = openBrowser(running)
  const begun = await party.journey()
  const refused = await browser.get(pathOf(begun.url))
  t.is(callbackOf(refused).searchParams.get('error'), 'invalid_request')

  const parameters = Object.fromEntries(begun.url.searchParams)
  const url = await oidc.buildAuthorizationUrlWithPAR(party.config, parameters)
  t.deepEqual([...url.searchParams.keys()].toSorted(), ['client_id', 'request_uri'])
  t.is((await browser.get(pathOf(url))).status, 303)
  const answer = await authorized(browser, person, url)
  const tokens = await oidc.authorizationCodeGrant(party.config, callbackOf(answer), begun.checks)
  t.truthy(tokens.id_token)
  const reused = await browser.get(pathOf(url)).gives(400)
  t.true(reused.html.includes('invalid_request_uri'))
})

for (const binding of ['dpop_jkt', 'par'] as const) {
  test(`tokens are bound to a key, and so is the code (${binding})`, async (t) => {
    const party = await relyingParty(running, person, {
      clientType: 'public',
      dpopBoundAccessTokens: true,
    })
    const keys = await oidc.randomDPoPKeyPair('ES256')
    const DPoP = oidc.getDPoPHandle(party.config, keys)
    const browser = openBrowser(running)
    const begun = await party.journey()
    const parameters = Object.fromEntries(begun.url.searchParams)
    if (binding === 'dpop_jkt')
      begun.url.searchParams.set('dpop_jkt', await DPoP.calculateThumbprint())
    const url =
      binding === 'par'
        ? await oidc.buildAuthorizationUrlWithPAR(party.config, parameters, { DPoP })
        : begun.url
    const callback = callbackOf(await authorized(browser, person, url))
    const checks = begun.checks
    const other = oidc.getDPoPHandle(party.config, await oidc.randomDPoPKeyPair('ES256'))
    const grant = (options: oidc.AuthorizationCodeGrantOptions) =>
      oidc.authorizationCodeGrant(party.config, callback, checks, undefined, options)
    await t.throwsAsync(grant({}), { message: /.*/ }, 'no proof')
    await t.throwsAsync(grant({ DPoP: other }), { message: /.*/ }, 'another key')
    const tokens = await grant({ DPoP })
    t.is(tokens.token_type, 'dpop')
    const { sub } = tokens.claims()!
    const told = await oidc.fetchUserInfo(party.config, tokens.access_token, sub, { DPoP })
    t.is(told.sub, sub)
    t.is((await userinfo(tokens.access_token)).status, 401, 'not as a bearer token')
    const refresh = (options: oidc.DPoPOptions) =>
      oidc.refreshTokenGrant(party.config, tokens.refresh_token!, undefined, options)
    await t.throwsAsync(refresh({ DPoP: other }))
    t.is((await refresh({ DPoP })).token_type, 'dpop')
  })
}

test('a client authenticates with its key', async (t) => {
  const { publicKey, privateKey } = freshKeyPair('P-256')
  const keys = [{ ...publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'ES256' }]
  const key = await crypto.subtle.importKey(
    'pkcs8',
    privateKey.export({ format: 'der', type: 'pkcs8' }),
    { name: 'ECDSA', namedCurve: 'P-256' },
    false,
    ['sign'],
  )
  const party = await relyingParty(
    running,
    person,
    {
      tokenEndpointAuthMethod: 'private_key_jwt',
      jwks: { keys: keys as unknown as Record<string, unknown>[] },
      secretSha256: null,
      idTokenSignedResponseAlg: 'EdDSA',
    },
    oidc.PrivateKeyJwt({ key, kid: 'one' }),
  )
  const { tokens, claims } = await party.signedIn(person)
  t.is(decodeProtectedHeader(tokens.id_token!).alg, 'EdDSA')
  t.truthy(claims['at_hash'])
})

test('a denial is returned to the application, and the user is asked again the next time', async (t) => {
  const party = await relyingParty(running, person)
  const browser = openBrowser(running)
  const { url, state } = await party.journey()
  const login = await browser.follow(await browser.get(pathOf(url)))
  t.true(login.html.includes('Lighthouse'), 'the page names the application')
  const consent = await browser.follow(
    await browser.submit(login, { email: person.email, password: person.password }),
  )
  t.true(isConsent(consent))
  t.true(consent.html.includes('app.example'))
  t.true(consent.html.includes('data-scope="email"'))
  t.regex(consent.headers['content-security-policy']!, /form-action 'self' https:;/)
  const answer = await browser.submit(consent, { action: 'deny' })
  const { searchParams } = callbackOf(answer)
  t.is(searchParams.get('error'), 'access_denied')
  t.is(searchParams.get('state'), state)
  t.is(searchParams.get('iss'), running.baseUrl)
  const late = callbackOf(await browser.submit(consent, { action: 'allow' })).searchParams
  t.is(late.get('error'), 'access_denied', 'the request is answered')
  t.true(isConsent(await browser.get(pathOf((await party.journey()).url))))
  const none = await browser.get(pathOf((await party.journey({ prompt: 'none' })).url))
  t.is(callbackOf(none).searchParams.get('error'), 'consent_required')
})

test('a form of another site cannot consent', async (t) => {
  const party = await relyingParty(running, person)
  const browser = openBrowser(running)
  const login = await browser.follow(await browser.get(pathOf((await party.journey()).url)))
  const consent = await browser.follow(
    await browser.submit(login, { email: person.email, password: person.password }),
  )
  const { action, fields } = consent.forms[0]!
  const { csrf_token: _, ...rest } = fields
  t.is((await browser.post(action, { ...rest, action: 'allow' })).status, 403)
  const foreign = { ...fields, action: 'allow' }
  t.is((await browser.post(action, foreign, { origin: 'https://evil.example' })).status, 403)
  const elsewhere = await browser.submit(consent, { action: 'allow', session: 'another' })
  t.true(isConsent(elsewhere), 'a consent in another session is asked again')
  t.is((await browser.submit(elsewhere, { action: 'allow' })).status, 302)
})

test('authorization details are shown, granted and returned for every request', async (t) => {
  const details = [{ type: 'payment', amount: '12.50', creditor: '<b>Harbour</b>' }]
  const party = await relyingParty(running, person, { authorizationDetailsTypes: ['payment'] })
  const parameters = { authorization_details: JSON.stringify(details) }
  const { browser, tokens } = await party.signedIn(person, parameters)
  t.deepEqual(tokens['authorization_details'] as unknown, details)
  t.deepEqual(decodeJwt(tokens.access_token)['authorization_details'], details)
  const again = await browser.get(pathOf((await party.journey(parameters)).url))
  t.true(isConsent(again))
  t.true(again.html.includes('&lt;b&gt;Harbour'))
  t.false(again.html.includes('<b>Harbour'))
})

test('a user signs out at the application, and all tokens of the session end', async (t) => {
  const party = await relyingParty(running, person)
  const { browser, tokens } = await party.signedIn(person)
  const url = oidc.buildEndSessionUrl(party.config, {
    id_token_hint: tokens.id_token!,
    post_logout_redirect_uri: 'https://app.example/bye',
    state: 'x y',
  })
  t.is((await userinfo(tokens.access_token)).status, 200)
  const out = await browser.get(pathOf(url)).gives(302)
  t.is(out.location, 'https://app.example/bye?state=x+y')
  t.false(browser.cookies.has(SESSION_COOKIE))
  const refused = await userinfo(tokens.access_token)
  t.is(refused.status, 401)
  t.is(((await refused.json()) as { error: string }).error, 'token_revoked')
  await t.throwsAsync(oidc.refreshTokenGrant(party.config, tokens.refresh_token!))
  const none = await browser.get(pathOf((await party.journey({ prompt: 'none' })).url))
  t.is(callbackOf(none).searchParams.get('error'), 'login_required')
})

test('withdrawing a consent on the account page revokes its tokens', async (t) => {
  const party = await relyingParty(running, person)
  const { browser, tokens } = await party.signedIn(person)
  const account = await browser.get('/auth/account')
  t.true(account.html.includes('Lighthouse'))
  const withdraw = `/auth/account/consents/${party.clientId}/withdraw`
  t.is((await userinfo(tokens.access_token)).status, 200)
  t.is((await browser.submit(account, {}, withdraw)).location, '/auth/account')
  t.is((await userinfo(tokens.access_token)).status, 401)
  await t.throwsAsync(oidc.refreshTokenGrant(party.config, tokens.refresh_token!))
  t.is((await browser.submit(account, {}, withdraw)).status, 404, 'there is no consent any more')
  t.true(isConsent(await browser.get(pathOf((await party.journey()).url))))
})

test('errors that cannot be redirected are a page for browsers and JSON for others', async (t) => {
  const party = await relyingParty(running, person, { clientType: 'public' })
  const { url } = await party.journey()
  url.searchParams.delete('code_challenge')
  url.searchParams.delete('code_challenge_method')
  const asked = (accept: string) => fetch(url, { headers: { accept }, redirect: 'manual' })
  const page = await asked('text/html')
  t.is(page.status, 400)
  t.regex(page.headers.get('content-type')!, /^text\/html/)
  t.true((await page.text()).includes('pkce_required'))
  const json = await asked('application/json')
  t.is(json.status, 400)
  t.is(((await json.json()) as { error: string }).error, 'pkce_required')
  t.is(json.headers.get('cache-control'), 'no-store')
  const par = await fetch(`${running.baseUrl}/oauth/par`, {
    method: 'POST',
    body: new URLSearchParams({ client_id: party.clientId, redirect_uri: CALLBACK }),
  })
  t.is(par.status, 400)
  t.is(((await par.json()) as { error: string }).error, 'pkce_required')
})

test('a web page of the application reads userinfo from its own origin, other origins cannot', async (t) => {
  const own = 'https://spa.example'
  const party = await relyingParty(running, person, {
    clientType: 'public',
    allowedOrigins: [own],
  })
  const { tokens } = await party.signedIn(person)
  for (const [origin, allowed] of [
    [own, own],
    ['https://other.example', null],
  ] as const) {
    const answer = await userinfo(tokens.access_token, { headers: { origin } })
    t.is(answer.status, 200)
    t.is(answer.headers.get('access-control-allow-origin'), allowed)
    const byForm = await fetch(`${running.baseUrl}/userinfo`, {
      method: 'POST',
      headers: { origin },
      body: new URLSearchParams({ access_token: tokens.access_token }),
    })
    t.is(byForm.status, 200)
    t.is(byForm.headers.get('access-control-allow-origin'), allowed)
  }
})

test('a web page of the application pushes its request, other origins cannot read the response', async (t) => {
  const own = 'https://spa.example'
  const party = await relyingParty(running, person, {
    clientType: 'public',
    requirePushedAuthorizationRequests: true,
    allowedOrigins: [own],
  })
  const { url } = await party.journey()
  const path = `${running.baseUrl}/oauth/par`
  for (const [origin, allowed] of [
    [own, own],
    ['https://other.example', null],
  ] as const) {
    const preflight = await fetch(path, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'dpop',
      },
    })
    t.is(preflight.headers.get('access-control-allow-origin'), allowed)
    if (allowed !== null)
      t.regex(preflight.headers.get('access-control-allow-headers') ?? '', /\bdpop\b/)
    const pushed = await fetch(path, {
      method: 'POST',
      headers: { origin },
      body: url.searchParams,
    })
    t.is(pushed.status, 201)
    t.is(pushed.headers.get('access-control-allow-origin'), allowed)
    t.regex(pushed.headers.get('vary') ?? '', /\borigin\b/)
    const refused = await fetch(path, {
      method: 'POST',
      headers: { origin },
      body: new URLSearchParams({ client_id: party.clientId }),
    })
    t.is(refused.status, 400)
    t.is(refused.headers.get('access-control-allow-origin'), allowed, 'the reason can be read')
  }
})

test('claims with unencoded braces, as browsers send them', async (t) => {
  const party = await relyingParty(running, person)
  const { url } = await party.journey({ prompt: 'none' })
  const claims = '{"userinfo":{"name":{"values":["a|b^c`d\\\\e"]}}}'
  const answer = await fetch(`${url.href}&claims=${claims}`, { redirect: 'manual' })
  t.is(answer.status, 302)
  const location = new URL(answer.headers.get('location')!)
  t.is(location.searchParams.get('error'), 'login_required')
})

test('the error page uses the language of the request', async (t) => {
  const party = await relyingParty(running, person)
  const browser = openBrowser(running)
  const { url } = await party.journey({
    ui_locales: 'nl de',
    redirect_uri: 'https://evil.example/',
  })
  const refused = await browser.get(pathOf(url)).gives(400)
  t.regex(refused.html, /<html lang="de"/)
  const signedOut = (id_token_hint: string) =>
    browser.get(`/oauth/end-session?${new URLSearchParams({ id_token_hint, ui_locales: 'de' })}`)
  const { tokens } = await party.signedIn(person)
  const page = await signedOut(tokens.id_token!).gives(200)
  t.regex(page.html, /<html lang="de"/)
  const forged = await signedOut('forged').gives(400)
  t.regex(forged.html, /<html lang="de"/)
})
