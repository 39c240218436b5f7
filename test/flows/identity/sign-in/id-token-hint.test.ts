/** A request for one user in the browser of another. OpenID Connect Core section 3.1.2.1. */
import test from 'ava'
import { openBrowser, type Page, type TestBrowser } from '../../../support/pages/browser.js'
import { enrol, signIn } from '../../../support/identity/person.js'
import { fixtureOf, type Human, newFixture } from '../../../support/agents/delegation.js'
import {
  CALLBACK,
  callbackOf,
  isConsent,
  pathOf,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { sharedApi } from '../../../support/service.js'

const { api, running } = await sharedApi('plain')
const workspace = await api.workspace('Pair')
const party = await relyingParty(running, workspace)
const ann = fixtureOf(workspace)
const { tokens } = await party.signedIn(ann)
const hint = tokens.id_token!

const credentials = ({ email, password }: Human) => ({ email, password })
const opened = async (browser: TestBrowser, parameters: Readonly<Record<string, string>>) =>
  browser.follow(await browser.get(pathOf((await party.journey(parameters)).url)))
const errorOf = (page: Page) => callbackOf(page).searchParams.get('error')

test('signing in as another user returns an error to the application, without a loop', async (t) => {
  const bob = await newFixture(api, workspace)
  const browser = openBrowser(running)
  await signIn(browser, bob)
  const login = await opened(browser, { id_token_hint: hint })
  t.true(login.path.startsWith('/auth/login'))
  t.false(login.html.includes(bob.email), 'the page does not show Bob')
  const answer = await browser.follow(await browser.submit(login, credentials(bob)))
  t.is(errorOf(answer), 'login_required')

  const next = await opened(browser, { id_token_hint: hint })
  t.true(next.path.startsWith('/auth/login'), 'a new request asks again')
  const asked = await browser.follow(await browser.submit(next, credentials(ann)))
  t.true(asked.location?.startsWith(`${CALLBACK}?code=`) === true || isConsent(asked))
})

test('prompt=none with another user signed in returns no code', async (t) => {
  const bob = await newFixture(api, workspace)
  const browser = openBrowser(running)
  await signIn(browser, bob)
  const asked = await opened(browser, {})
  t.truthy(callbackOf(await browser.submit(asked, { action: 'allow' })).searchParams.get('code'))
  const none = async (parameters: Readonly<Record<string, string>>) =>
    callbackOf(await opened(browser, { prompt: 'none', ...parameters })).searchParams
  t.truthy((await none({})).get('code'), 'Bob is signed in and has allowed it')
  const claims = JSON.stringify({ id_token: { sub: { value: 'unknown' } } })
  for (const parameters of [{ id_token_hint: hint }, { claims }]) {
    const answer = await none(parameters)
    t.is(answer.get('error'), 'login_required', JSON.stringify(parameters))
    t.is(answer.get('code'), null)
  }
})

test('the same with a second factor, and with a sub in the claims parameter', async (t) => {
  const bob = await newFixture(api, workspace)
  const browser = openBrowser(running)
  const account = await browser.follow(await signIn(browser, bob))
  const { codes } = await enrol(
    browser,
    await browser.follow(await browser.submit(account, {}, '/auth/account/factors')),
  )
  const claims = JSON.stringify({ id_token: { sub: { value: 'unknown' } } })
  const login = await opened(browser, { claims })
  const second = await browser.follow(await browser.submit(login, credentials(bob)))
  t.true(second.path.startsWith('/auth/mfa'))
  const answer = await browser.follow(await browser.submit(second, { code: codes.next() }))
  t.is(errorOf(answer), 'login_required')
})

test('a hint that no sign-in can satisfy is refused where it is pushed', async (t) => {
  const forged = hint.replace(/[^.]+$/, (signature) => [...signature].toReversed().join(''))
  const claims = JSON.stringify({ id_token: { sub: { value: 'unknown' } } })
  const pushed = async (parameters: Readonly<Record<string, string>>) => {
    const { url } = await party.journey({ client_secret: party.secret, ...parameters })
    return api.form('/oauth/par', Object.fromEntries(url.searchParams))
  }
  for (const parameters of [
    { id_token_hint: forged },
    { id_token_hint: 'no token' },
    { id_token_hint: hint, claims },
  ]) {
    const { status, body } = await pushed(parameters)
    t.is(status, 400, JSON.stringify(parameters))
    t.is(body['error'], 'invalid_request')
  }
  t.is((await pushed({ id_token_hint: hint })).status, 201)
  t.is((await pushed({ claims: claims.replace('unknown', 'several') })).status, 201)
})
