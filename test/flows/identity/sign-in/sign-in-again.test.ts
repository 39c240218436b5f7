/** A user who signs in again in the same browser, and what signing out there ends. */
import test from 'ava'
import * as oidc from 'openid-client'
import { openBrowser, type TestBrowser } from '../../../support/pages/browser.js'
import { bootstrapped, type Workspace } from '../../../support/identity/person.js'
import {
  authorized,
  callbackOf,
  type RelyingParty,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { sharedService } from '../../../support/service.js'

const running = await sharedService('plain')
const person = await bootstrapped(running)
const party = await relyingParty(running, person)
const archive = await relyingParty(running, person, { name: 'Archive' })

async function tokensOf(
  browser: TestBrowser,
  of: RelyingParty,
  parameters: Readonly<Record<string, string>> = {},
  who: Pick<Workspace, 'email' | 'password'> = person,
) {
  const { url, checks } = await of.journey(parameters)
  const callback = callbackOf(await authorized(browser, who, url))
  const tokens = await oidc.authorizationCodeGrant(of.config, callback, checks)
  return { ...tokens, id_token: tokens.id_token!, refresh_token: tokens.refresh_token! }
}
const again = { prompt: 'login' }
const stateOf = async (tokens: { refresh_token: string }) =>
  (await oidc.tokenIntrospection(party.config, tokens.refresh_token)).active
const userinfo = async ({ access_token }: { access_token: string }) => {
  const headers = { authorization: `Bearer ${access_token}` }
  return (await fetch(`${running.baseUrl}/userinfo`, { headers })).status
}
const signOut = (browser: TestBrowser, id_token_hint: string) =>
  browser.get(`/oauth/end-session?${new URLSearchParams({ id_token_hint }).toString()}`)

test('the tokens of both sign-ins work until the person signs out, then none does', async (t) => {
  const browser = openBrowser(running)
  const elsewhere = openBrowser(running)
  const first = await tokensOf(browser, party)
  const second = await tokensOf(browser, archive, again)
  const third = await tokensOf(browser, party, again)
  const other = await tokensOf(elsewhere, party)
  for (const tokens of [first, second, third, other]) t.is(await userinfo(tokens), 200)

  t.is((await signOut(browser, third.id_token)).status, 200)
  for (const tokens of [first, second, third]) {
    t.false(await stateOf(tokens))
    t.is(await userinfo(tokens), 401)
  }
  t.true(await stateOf(other), 'another browser stays signed in')
  t.is(await userinfo(other), 200)
})

test('the account page signs out of both too', async (t) => {
  const browser = openBrowser(running)
  const first = await tokensOf(browser, party)
  const second = await tokensOf(browser, archive, again)
  const account = await browser.follow(await browser.get('/auth/account'))
  await browser.submit(account, {}, '/auth/logout')
  t.false(await stateOf(first))
  t.false(await stateOf(second))
})

test('signing out as another user does not end the first user’s tokens', async (t) => {
  const neighbour = await bootstrapped(running)
  const theirs = await relyingParty(running, neighbour)
  const browser = openBrowser(running)
  const first = await tokensOf(browser, party)
  const next = await tokensOf(browser, theirs, {}, neighbour)
  t.is((await signOut(browser, next.id_token)).status, 200)
  t.is(await userinfo(next), 401)
  t.true(await stateOf(first))
})
