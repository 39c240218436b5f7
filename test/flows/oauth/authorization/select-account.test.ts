/** `prompt=select_account`. OpenID Connect Core section 3.1.2.1. */
import test from 'ava'
import * as oidc from 'openid-client'
import { fixtureOf, type Human, newFixture } from '../../../support/agents/delegation.js'
import { enrol, signIn } from '../../../support/identity/person.js'
import {
  authorized,
  CALLBACK,
  callbackOf,
  isConsent,
  type Journey,
  pathOf,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { openBrowser, type Page, type TestBrowser } from '../../../support/pages/browser.js'
import { sharedApi } from '../../../support/service.js'

const { api, running } = await sharedApi('plain')
const workspace = await api.workspace('Choosers')
const party = await relyingParty(running, workspace)
const ann = fixtureOf(workspace)
const bob = await newFixture(api, workspace)

const SELECT = { prompt: 'select_account' }
const credentials = ({ email, password }: Human) => ({ email, password })
const opened = async (browser: TestBrowser, parameters: Readonly<Record<string, string>> = {}) =>
  browser.follow(await browser.get(pathOf((await party.journey(parameters)).url)))
const isChooser = ({ status, html }: Page) => status === 200 && html.includes('data-account')
const shownSession = ({ html }: Page) => /name="account" value="([0-9a-f-]{36})"/.exec(html)![1]!
const actionOf = ({ html }: Page) => /action="([^"]+\/account)"/.exec(html)![1]!
const choose = async (browser: TestBrowser, page: Page, account = shownSession(page)) =>
  browser.follow(await browser.submit(page, { account }))
const errorOf = (page: Page) => callbackOf(page).searchParams.get('error')

/** A browser in which the person is signed in and has allowed the application. */
async function browserOf(person: Human): Promise<TestBrowser> {
  const browser = openBrowser(running)
  const { url } = await party.journey()
  callbackOf(await authorized(browser, person, url))
  return browser
}
async function emailIn(page: Page, { checks }: Journey): Promise<unknown> {
  const tokens = await oidc.authorizationCodeGrant(party.config, callbackOf(page), checks)
  const { sub } = tokens.claims()!
  return (await oidc.fetchUserInfo(party.config, tokens.access_token, sub)).email
}

test('the user chooses the account of the session', async (t) => {
  const browser = await browserOf(ann)
  const begun = await party.journey(SELECT)
  const page = await browser.follow(await browser.get(pathOf(begun.url)))
  t.true(isChooser(page))
  t.true(page.html.includes(ann.email))
  t.true(page.html.includes('value="another"'))
  t.false(page.html.includes('<script'), 'the page needs no script')
  const resume = actionOf(page).replace(/\/account$/, '')
  t.true(isChooser(await browser.get(resume)), 'a reload asks again')
  t.is(await emailIn(await choose(browser, page), begun), ann.email)
  const again = await opened(browser, SELECT)
  t.true(isChooser(again), 'each request asks')
  t.truthy(callbackOf(await opened(browser)).searchParams.get('code'), 'others do not')
})

test('another account signs in, and the application gets it', async (t) => {
  const browser = await browserOf(ann)
  const begun = await party.journey(SELECT)
  const page = await browser.follow(await browser.get(pathOf(begun.url)))
  const login = await choose(browser, page, 'another')
  t.true(login.path.startsWith('/auth/login'))
  t.false(login.html.includes(ann.email), 'the sign-in page shows no address')
  const resume = actionOf(page).replace(/\/account$/, '')
  t.true(isChooser(await browser.get(resume)), 'who goes back may still choose Ann')
  let end = await browser.follow(await browser.submit(login, credentials(bob)))
  if (isConsent(end)) end = await browser.submit(end, { action: 'allow' })
  t.is(await emailIn(end, begun), bob.email)
})

test('without a session of this tenant the sign-in page is the choice', async (t) => {
  const elsewhere = await api.workspace('Elsewhere')
  const browser = openBrowser(running)
  await signIn(browser, fixtureOf(elsewhere))
  const login = await opened(browser, { ...SELECT, login_hint: bob.email })
  t.true(login.path.startsWith('/auth/login'))
  t.true(login.html.includes(bob.email), 'with the hint')
  const end = await browser.follow(await browser.submit(login, credentials(bob)))
  t.true(isConsent(end) || end.location?.startsWith(`${CALLBACK}?code=`) === true)
})

test('a password without its second factor is no choice', async (t) => {
  const eve = await newFixture(api, workspace)
  const first = openBrowser(running)
  const account = await first.follow(await signIn(first, eve))
  await enrol(first, await first.follow(await first.submit(account, {}, '/auth/account/factors')))
  const browser = openBrowser(running)
  const login = await opened(browser)
  const factor = await browser.follow(await browser.submit(login, credentials(eve)))
  t.true(factor.path.startsWith('/auth/mfa'))
  t.true((await opened(browser, SELECT)).path.startsWith('/auth/login'), 'not the factor of Eve')
})

test('prompts combine, except with none', async (t) => {
  const browser = await browserOf(ann)
  const consent = await choose(browser, await opened(browser, { prompt: 'select_account consent' }))
  t.true(isConsent(consent))
  for (const prompt of ['login select_account', 'select_account login']) {
    const login = await choose(browser, await opened(browser, { prompt }))
    t.true(login.path.startsWith('/auth/login'), prompt)
    t.true(login.html.includes(ann.email), 'for the chosen account')
    const end = await browser.follow(await browser.submit(login, credentials(ann)))
    t.truthy(callbackOf(end).searchParams.get('code'), 'and no second choice')
  }
  for (const prompt of ['none select_account', 'select_account none', 'select_account create'])
    t.is(errorOf(await opened(browser, { prompt })), 'invalid_request', prompt)
})

test('max_age, login_hint and id_token_hint apply', async (t) => {
  const browser = openBrowser(running)
  const begun = await party.journey()
  const callback = callbackOf(await authorized(browser, ann, begun.url))
  const tokens = await oidc.authorizationCodeGrant(party.config, callback, begun.checks)
  const old = await choose(browser, await opened(browser, { ...SELECT, max_age: '0' }))
  t.true(old.path.startsWith('/auth/login'), 'the chosen session is too old')

  const hinted = await opened(browser, { ...SELECT, login_hint: bob.email })
  t.true(isChooser(hinted) && hinted.html.includes(ann.email))
  const login = await choose(browser, hinted, 'another')
  t.true(login.html.includes(bob.email), 'the hint is for the sign-in')

  const hint = { ...SELECT, id_token_hint: tokens.id_token! }
  const theirs = await opened(browser, hint)
  t.truthy(callbackOf(await choose(browser, theirs)).searchParams.get('code'))
  const other = await choose(browser, await opened(browser, hint), 'another')
  const end = await browser.follow(await browser.submit(other, credentials(bob)))
  t.is(errorOf(end), 'login_required', 'the hint is for Ann')
  const bobs = await opened(browser, hint)
  t.true(bobs.path.startsWith('/auth/login'), 'the session of Bob does not fit the hint')
})

test('a choice is for the session and the browser of the page', async (t) => {
  const browser = await browserOf(ann)
  const stranger = await browserOf(bob)
  t.teardown(() => Promise.all([browser.close(), stranger.close()]))
  const page = await opened(browser, SELECT)
  const session = shownSession(page)
  const begun = await opened(stranger, SELECT)
  t.true(isChooser(await choose(stranger, begun, session)), 'the session of another browser')
  t.true(isChooser(await choose(stranger, begun, 'unknown')))
  const login = await opened(browser, { prompt: 'login' })
  callbackOf(await browser.follow(await browser.submit(login, credentials(bob))))
  const replaced = await choose(browser, page)
  t.true(isChooser(replaced), 'the session of the page was replaced')
  t.true(replaced.html.includes(bob.email))
  const forged = await browser.post(actionOf(replaced), { account: session })
  t.is(forged.status, 403, 'a form without its token')
})

test('a pushed request asks too, and the page speaks the language of the request', async (t) => {
  const browser = await browserOf(ann)
  const { url } = await party.journey({ ...SELECT, client_secret: party.secret, ui_locales: 'de' })
  const { body } = await api.form('/oauth/par', Object.fromEntries(url.searchParams))
  const query = new URLSearchParams({
    client_id: party.clientId,
    request_uri: String(body['request_uri']),
  })
  const page = await browser.follow(await browser.get(`/oauth/authorize?${query}`))
  t.true(isChooser(page))
  t.true(page.html.includes('Konto wählen'))
  t.truthy(callbackOf(await choose(browser, page)).searchParams.get('code'))
})
