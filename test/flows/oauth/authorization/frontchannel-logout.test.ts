/** OpenID Connect Front-Channel Logout 1.0: the page of RP-initiated logout tells applications in frames. */
import test from 'ava'
import { decodeJwt } from 'jose'
import * as oidc from 'openid-client'
import type { NewApplication } from '../../../../storage/oauth/applications.js'
import { apiOf } from '../../../support/api.js'
import { bootstrapped } from '../../../support/identity/person.js'
import {
  authorized,
  callbackOf,
  pathOf,
  type RelyingParty,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import {
  openBrowser,
  type Page,
  type TestBrowser,
  unescaped,
} from '../../../support/pages/browser.js'
import { sharedService } from '../../../support/service.js'
import { sql } from '../../../support/storage/sql.js'

const BYE = 'https://app.example/bye'
const URI = 'https://app.example/frontchannel_logout'
const running = await sharedService('plain')
const api = apiOf(running)
const person = await bootstrapped(running)

const application = (more: Partial<NewApplication> = {}) =>
  relyingParty(running, person, { frontchannelLogoutUri: URI, ...more })

/** Signs in to an application in a browser. */
async function joined(browser: TestBrowser, party: RelyingParty, parameters = {}) {
  const { url, checks } = await party.journey(parameters)
  const callback = callbackOf(await authorized(browser, person, url))
  const { id_token: idToken } = await oidc.authorizationCodeGrant(party.config, callback, checks)
  return { idToken: idToken!, sid: String(decodeJwt(idToken!)['sid']) }
}

const signOut = (browser: TestBrowser, idToken: string, more: Record<string, string> = {}) =>
  browser.get(`/oauth/end-session?${new URLSearchParams({ id_token_hint: idToken, ...more })}`)

const framesOf = ({ html }: Page) =>
  [...html.matchAll(/<iframe [^>]*src="([^"]*)"/g)].map(([, src]) => unescaped(src!))
const framePolicyOf = ({ headers }: Page) =>
  /frame-src ([^;]*);/.exec(String(headers['content-security-policy']))?.[1] ?? null
const frameOf = (uri: string, sid: string) =>
  `${uri}${uri.includes('?') ? '&' : '?'}${new URLSearchParams({ iss: running.issuer, sid })}`

test('oidcc-frontchannel-rp-initiated-logout: a frame with iss and sid, then the redirect, and prompt=none fails', async (t) => {
  const party = await application()
  const browser = openBrowser(running)
  const { idToken, sid } = await joined(browser, party)
  const state = 'user@xn--bcher-kva.example'
  const page = await signOut(browser, idToken, { post_logout_redirect_uri: BYE, state }).gives(200)
  t.deepEqual(framesOf(page), [frameOf(URI, sid)])
  t.is(framePolicyOf(page), 'https://app.example')
  // The page leads on with its last frame, and the script does so earlier if one is silent.
  const location = `${BYE}?${new URLSearchParams({ state })}`
  const [, onward] = /http-equiv="refresh" content="0;url=([^"]*)"/.exec(page.html)!
  t.is(unescaped(onward!), location)
  const [, link] = /href="([^"]*)" data-onward-within="3000"/.exec(page.html)!
  t.is(unescaped(link!), location)
  t.regex(page.html, /<script src="\/auth\/script\//)
  t.is((await party.journey({ prompt: 'none' })).url.pathname, '/oauth/authorize')
  const again = await browser.get(pathOf((await party.journey({ prompt: 'none' })).url))
  t.is(callbackOf(again).searchParams.get('error'), 'login_required')
  // The logout is over: the page is not shown again.
  const repeated = await signOut(browser, idToken, { post_logout_redirect_uri: BYE })
  t.is(repeated.location, BYE)
})

test('each application of the session has its frame, and no other', async (t) => {
  const first = await application({ frontchannelLogoutUri: `${URI}?of=svc` })
  const second = await application({
    redirectUris: ['https://app.example/callback', 'http://127.0.0.1:3000/callback'],
    frontchannelLogoutUri: 'http://127.0.0.1:3000/out',
  })
  const without = await application({ frontchannelLogoutUri: null })
  const disabled = await application({ frontchannelLogoutUri: 'https://app.example/disabled' })
  await application({ frontchannelLogoutUri: 'https://app.example/stranger' })
  const browser = openBrowser(running)
  const before = await joined(browser, first)
  for (const one of [without, disabled]) await joined(browser, one)
  await sql(running)`
    update applications set status = 'disabled' where id = ${disabled.clientId}`
  // The session goes on under another cookie and id: the frames have both.
  const after = await joined(browser, second, { prompt: 'login' })
  t.not(after.sid, before.sid)
  const page = await signOut(browser, after.idToken).gives(200)
  t.deepEqual(
    framesOf(page).toSorted(),
    [
      frameOf(`${URI}?of=svc`, before.sid),
      frameOf('http://127.0.0.1:3000/out', after.sid),
    ].toSorted(),
  )
  t.deepEqual(framePolicyOf(page)!.split(' ').toSorted(), [
    'http://127.0.0.1:3000',
    'https://app.example',
  ])
  t.regex(page.html, /Signed out/)
  t.notRegex(page.html, /http-equiv="refresh"/)
})

test('a browser without the session gets no frames: another site may have sent it', async (t) => {
  const party = await application()
  const { idToken } = await joined(openBrowser(running), party)
  const victim = openBrowser(running)
  await joined(victim, party)
  const page = await signOut(victim, idToken).gives(200)
  t.deepEqual(framesOf(page).length, 1, 'the same person: the session of this browser ends too')
  const stranger = openBrowser(running)
  const other = await joined(openBrowser(running), party)
  const foreign = await signOut(stranger, other.idToken, { post_logout_redirect_uri: BYE })
  t.is(foreign.location, BYE)
})

test('without applications to tell, the browser is redirected', async (t) => {
  const party = await application({ frontchannelLogoutUri: null })
  const browser = openBrowser(running)
  const { idToken } = await joined(browser, party)
  const answer = await signOut(browser, idToken, { post_logout_redirect_uri: BYE }).gives(302)
  t.is(answer.location, BYE)
  t.is(framePolicyOf(answer), null)
})

test('the URI is at the origin of a redirect URI', async (t) => {
  const { token } = await api.workspace()
  const of = (frontchannel_logout_uri: string) =>
    api.post('/api/v1/applications', token, {
      name: 'Lighthouse',
      redirect_uris: ['https://app.example/callback'],
      frontchannel_logout_uri,
      frontchannel_logout_session_required: true,
    })
  const made = await of(`${URI}?a=b`).gives(201)
  t.like(made.body, {
    frontchannel_logout_uri: `${URI}?a=b`,
    frontchannel_logout_session_required: true,
  })
  for (const bad of [
    'https://other.example/logout',
    'https://app.example:8443/logout',
    'http://app.example/logout',
    `${URI}#part`,
    'https://me@app.example/logout',
    'com.example.app:/logout',
  ]) {
    const { body } = await of(bad).gives(400)
    t.like((body['errors'] as object[])[0], { pointer: '#/frontchannel_logout_uri' }, bad)
  }
})

test('oidcc-frontchannel-logout-discovery-endpoint-verification and oidcc-backchannel-logout-discovery-endpoint-verification', async (t) => {
  const { body } = await api.get('/.well-known/openid-configuration')
  t.like(body, {
    frontchannel_logout_supported: true,
    frontchannel_logout_session_supported: true,
    backchannel_logout_supported: true,
    backchannel_logout_session_supported: true,
    end_session_endpoint: `${running.baseUrl}/oauth/end-session`,
  })
  const { body: known } = await api.get('/api/v1/capabilities')
  t.true((known['capabilities'] as string[]).includes('oauth.frontchannel_logout'))
})
