/** oidcc-rp-initiated-logout-certification-test-plan, its modules under their names. */
import test from 'ava'
import { bootstrapped } from '../../support/identity/person.js'
import { pathOf, relyingParty } from '../../support/oauth/relying-party.js'
import { sharedService } from '../../support/service.js'

const BYE = 'https://app.example/bye'
const running = await sharedService('plain')
const person = await bootstrapped(running)

async function stage() {
  const party = await relyingParty(running, person)
  const { browser, tokens } = await party.signedIn(person)
  const out = (parameters: Record<string, string>) =>
    browser.get(`/oauth/end-session?${new URLSearchParams(parameters).toString()}`)
  const isSignedIn = async () => {
    const { url } = await party.journey({ prompt: 'none' })
    return (await browser.get(pathOf(url))).location!.includes('code=')
  }
  return { party, browser, hint: tokens.id_token!, out, isSignedIn }
}

test('oidcc-rp-initiated-logout', async (t) => {
  const { out, hint, isSignedIn, party } = await stage()
  t.true(await isSignedIn())
  const answer = await out({
    id_token_hint: hint,
    post_logout_redirect_uri: BYE,
    state: 's',
    client_id: party.clientId,
  }).gives(302)
  t.is(answer.location, `${BYE}?state=s`)
  t.false(await isSignedIn())
})

test('the same by POST, as a form of the application', async (t) => {
  const { browser, hint, isSignedIn } = await stage()
  const form = { id_token_hint: hint, post_logout_redirect_uri: BYE }
  const answer = await browser.post('/oauth/end-session', form, {
    origin: 'https://app.example',
    'sec-fetch-site': 'cross-site',
  })
  t.is(answer.location, BYE)
  t.false(await isSignedIn())
})

test('oidcc-rp-initiated-logout-bad-post-logout-redirect-uri', async (t) => {
  const { out, hint, isSignedIn } = await stage()
  const uri = 'https://evil.example/bye'
  const answer = await out({ id_token_hint: hint, post_logout_redirect_uri: uri }).gives(200)
  t.is(answer.location, null)
  t.false(await isSignedIn())
})

test('oidcc-rp-initiated-logout-query-added-to-post-logout-redirect-uri', async (t) => {
  const { out, hint } = await stage()
  const answer = await out({ id_token_hint: hint, post_logout_redirect_uri: `${BYE}?a=b` })
  t.is(answer.status, 200)
  t.is(answer.location, null)
})

test('oidcc-rp-initiated-logout-no-post-logout-redirect-uri, and a state alone ends no session', async (t) => {
  const { out, hint, isSignedIn } = await stage()
  t.is((await out({ state: 's' })).status, 400)
  t.true(await isSignedIn())
  const answer = await out({ id_token_hint: hint, state: 's' }).gives(200)
  t.true(answer.html.includes('Signed out'))
  t.false(await isSignedIn())
})

test('oidcc-rp-initiated-logout-no-state', async (t) => {
  const { out, hint } = await stage()
  t.is((await out({ id_token_hint: hint, post_logout_redirect_uri: BYE })).location, BYE)
})

test('oidcc-rp-initiated-logout-no-id-token-hint, and no parameters end no session', async (t) => {
  const { out, isSignedIn } = await stage()
  t.is((await out({})).status, 400)
  const answer = await out({ post_logout_redirect_uri: BYE }).gives(400)
  t.is(answer.location, null)
  t.true(await isSignedIn())
})

test('oidcc-rp-initiated-logout-bad-id-token-hint and -modified-id-token-hint', async (t) => {
  const { out, hint, isSignedIn } = await stage()
  const [head = '', payload = '', signature = ''] = hint.split('.')
  const none = Buffer.from('{"alg":"none"}').toString('base64url')
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object
  const changed = Buffer.from(JSON.stringify({ ...claims, sub: 'x' })).toString('base64url')
  const forged = [
    'x',
    `${head}.${changed}.${signature}`,
    `${none}.${payload}.`,
    `${none}.${payload}.${signature}`,
  ]
  for (const id_token_hint of forged) {
    const answer = await out({ id_token_hint, post_logout_redirect_uri: BYE }).gives(400)
    t.is(answer.location, null)
  }
  t.true(await isSignedIn())
})

test('an access token is not a hint, and a hint is valid only for its own client', async (t) => {
  const party = await relyingParty(running, person)
  const { browser, tokens } = await party.signedIn(person)
  const out = (parameters: Record<string, string>) =>
    browser.get(`/oauth/end-session?${new URLSearchParams(parameters).toString()}`)
  t.is((await out({ id_token_hint: tokens.access_token })).status, 400)
  const hint = { id_token_hint: tokens.id_token!, client_id: 'another' }
  t.is((await out(hint)).status, 400)
  t.true(browser.cookies.has('svc_session'))
})
