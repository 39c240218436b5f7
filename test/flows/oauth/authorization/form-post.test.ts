/** OAuth 2.0 Form Post Response Mode: the browser posts the response to the application. */
import test from 'ava'
import * as oidc from 'openid-client'
import { openBrowser, type Page } from '../../../support/pages/browser.js'
import { bootstrapped } from '../../../support/identity/person.js'
import {
  authorized,
  CALLBACK,
  isConsent,
  pathOf,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { sharedService } from '../../../support/service.js'

const running = await sharedService('plain')
const person = await bootstrapped(running)
const party = await relyingParty(running, person)
const POSTED = { response_mode: 'form_post' }

/** What the browser posts to the application, as the application gets it. */
function posted(page: Page): Request {
  const [form] = page.forms
  if (page.status !== 200 || form === undefined)
    throw new Error(`no form for the application: ${page.status} ${page.html}`)
  return new Request(form.action, { method: 'POST', body: new URLSearchParams(form.fields) })
}
const fieldsOf = async (page: Page) =>
  Object.fromEntries(new URLSearchParams(await posted(page).text()))

async function begun(parameters: Record<string, string> = {}, of = party) {
  const browser = openBrowser(running)
  return { browser, ...(await of.journey({ ...POSTED, ...parameters })) }
}

test('openid-client redeems the code of the form, with state, nonce and issuer', async (t) => {
  const { browser, url, checks, state } = await begun()
  const page = await authorized(browser, person, url)
  const request = posted(page)
  t.is(request.url, CALLBACK)
  const { code, ...others } = await fieldsOf(page)
  t.is(typeof code, 'string')
  t.deepEqual(others, { state, iss: running.baseUrl })
  // One form, which a script of the service sends, and a button for browsers without scripts.
  t.is(page.forms.length, 1)
  t.regex(page.html, /<form method="post" action="[^"]*" data-submit data-once>/)
  t.regex(page.html, /<button>Back to Lighthouse<\/button>/)
  t.regex(page.html, /<script src="\/auth\/script\/[0-9a-f]{16}" integrity="sha384-/)
  const tokens = await oidc.authorizationCodeGrant(party.config, posted(page), checks)
  t.is(tokens.claims()!.aud, party.clientId)

  const again = await browser.get(pathOf(url))
  t.is(again.headers['cache-control'], 'no-store')
  const policy = String(again.headers['content-security-policy'])
  t.regex(policy, /form-action 'self' https:;/)
  t.regex(policy, /frame-ancestors 'none'/)
  t.regex(policy, /script-src 'self';/)
  t.is(again.location, null)
})

test('errors are posted too, with state and issuer', async (t) => {
  const errorOf = async (page: Page) => {
    const { error, state, iss } = await fieldsOf(page)
    t.is(iss, running.baseUrl)
    return { error, state }
  }
  // An application that the user has not allowed yet.
  const denied = await begun({}, await relyingParty(running, person))
  let page = await denied.browser.follow(await denied.browser.get(pathOf(denied.url)))
  const { email, password } = person
  page = await denied.browser.follow(await denied.browser.submit(page, { email, password }))
  t.true(isConsent(page))
  page = await denied.browser.submit(page, { action: 'deny' })
  t.deepEqual(await errorOf(page), { error: 'access_denied', state: denied.state })
  const rejected = oidc.authorizationCodeGrant(party.config, posted(page), denied.checks)
  t.is((await t.throwsAsync<oidc.AuthorizationResponseError>(rejected))?.error, 'access_denied')

  for (const [error, parameters] of [
    ['login_required', { prompt: 'none' }],
    ['invalid_scope', { scope: 'openid root' }],
    ['invalid_request', { prompt: 'none login' }],
    ['invalid_target', { resource: 'https://unknown.example/' }],
  ] as const) {
    const { browser, url, state } = await begun(parameters)
    t.deepEqual(await errorOf(await browser.get(pathOf(url))), { error, state }, error)
  }
  // An unregistered redirect URI gets nothing.
  const { browser, url } = await begun({ redirect_uri: 'https://evil.example/' })
  t.is((await browser.get(pathOf(url))).status, 400)
})

test('a state that is a mail address or markup comes back unchanged', async (t) => {
  const browser = openBrowser(running)
  for (const state of ['ada@xn--bcher-kva.example', '"><script>alert(1)</script>&amp;', "'ü'"]) {
    const { url } = await party.journey({ ...POSTED, state })
    const page = await authorized(browser, person, url)
    t.is((await fieldsOf(page))['state'], state)
    t.false(page.html.includes('<script>alert'))
  }
})

test('the mode is kept by a pushed request, and a form sent twice posts the same code', async (t) => {
  // An application that the user has not allowed yet.
  const own = await relyingParty(running, person)
  const { browser, url, checks } = await begun({}, own)
  const pushed = await oidc.buildAuthorizationUrlWithPAR(
    own.config,
    Object.fromEntries(url.searchParams),
  )
  let page = await browser.follow(await browser.get(pathOf(pushed)))
  const { email, password } = person
  page = await browser.follow(await browser.submit(page, { email, password }))
  const consent = page
  page = await browser.submit(consent, { action: 'allow' })
  const { code } = await fieldsOf(page)
  t.is((await fieldsOf(await browser.submit(consent, { action: 'allow' })))['code'], code)
  await oidc.authorizationCodeGrant(own.config, posted(page), checks)
  const after = await browser.submit(consent, { action: 'allow' })
  t.regex(after.html, /data-answered-before/)
})

test('a private scheme cannot be posted to', async (t) => {
  const app = await relyingParty(running, person, {
    clientType: 'public',
    tokenEndpointAuthMethod: 'none',
    redirectUris: ['com.example.app:/callback'],
  })
  const { url } = await app.journey({ ...POSTED, redirect_uri: 'com.example.app:/callback' })
  const { location } = await openBrowser(running).get(pathOf(url))
  t.regex(String(location), /^com\.example\.app:\/callback\?error=invalid_request&/)
})

test('modules of oidcc-formpost-basic-certification-test-plan in which a signed-in user is not asked', async (t) => {
  const browser = openBrowser(running)
  const first = await party.journey(POSTED)
  const page = await authorized(browser, person, first.url)
  const tokens = await oidc.authorizationCodeGrant(party.config, posted(page), first.checks)
  const { auth_time: authTime, sub } = tokens.claims()!
  for (const [module, parameters] of [
    ['oidcc-prompt-none-logged-in', { prompt: 'none' }],
    ['oidcc-max-age-10000', { max_age: '10000' }],
    ['oidcc-display-page', { display: 'page' }],
    ['oidcc-display-popup', { display: 'popup' }],
    ['oidcc-ensure-request-with-unknown-parameter-succeeds', { extra: 'foobar' }],
    ['oidcc-id-token-hint', { prompt: 'none', id_token_hint: tokens.id_token! }],
    ['oidcc-login-hint', { login_hint: person.email }],
    ['oidcc-ui-locales', { ui_locales: 'se' }],
    ['oidcc-claims-locales', { claims_locales: 'se' }],
    ['oidcc-ensure-request-with-acr-values-succeeds', { acr_values: '1 2' }],
    ['oidcc-ensure-other-scope-order-succeeds', { scope: 'email openid' }],
    ['oidcc-claims-essential', { claims: '{"userinfo":{"name":{"essential":true}}}' }],
  ] as const) {
    const { url, checks } = await party.journey({ ...POSTED, ...parameters })
    const answer = posted(await browser.get(pathOf(url)))
    const next = await oidc.authorizationCodeGrant(party.config, answer, checks)
    t.is(next.claims()!.sub, sub, module)
    t.is(next.claims()!.auth_time, authTime, module)
  }
  for (const [module, name, error] of [
    ['oidcc-response-type-missing', 'response_type', 'invalid_request'],
    ['oidcc-ensure-request-without-nonce-succeeds-for-code-flow', 'nonce', undefined],
  ] as const) {
    const { url } = await party.journey(POSTED)
    url.searchParams.delete(name)
    t.is((await fieldsOf(await browser.get(pathOf(url))))['error'], error, module)
  }
  const byForm = await party.journey(POSTED)
  const answer = await browser.post(
    '/oauth/authorize',
    Object.fromEntries(byForm.url.searchParams),
    {
      origin: 'https://app.example',
      'sec-fetch-site': 'cross-site',
    },
  )
  t.truthy((await fieldsOf(answer))['code'], 'oidcc-ensure-post-request-succeeds')
})
