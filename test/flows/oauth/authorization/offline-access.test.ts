/**
 * Refresh tokens with offline_access outlive the sign-out of the browser session, those without it end
 * with it. OpenID Connect Back-Channel Logout 1.0 section 2.7.
 */
import test from 'ava'
import { decodeJwt } from 'jose'
import * as oidc from 'openid-client'
import { sql } from '../../../support/storage/sql.js'
import { bootstrapped, type Workspace } from '../../../support/identity/person.js'
import {
  authorized,
  callbackOf,
  type RelyingParty,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { sharedService } from '../../../support/service.js'

const OFFLINE = 'openid email offline_access'
const running = await sharedService('plain')

/** A user who signed in to one application with offline access, and once more without it. */
async function scene() {
  const person = await bootstrapped(running)
  const party = await relyingParty(running, person)
  const first = await party.signedIn(person, { scope: OFFLINE })
  const begun = await party.journey({ scope: 'openid email' })
  const callback = callbackOf(await authorized(first.browser, person, begun.url))
  const online = await oidc.authorizationCodeGrant(party.config, callback, begun.checks)
  return { person, party, browser: first.browser, offline: first.tokens, online }
}

async function refreshed(party: RelyingParty, token: string | undefined) {
  try {
    return await oidc.refreshTokenGrant(party.config, token!)
  } catch (error) {
    if (error instanceof oidc.ResponseBodyError) return error.error
    throw error
  }
}

const userinfo = async (token: string) =>
  (await fetch(`${running.baseUrl}/userinfo`, { headers: { authorization: `Bearer ${token}` } }))
    .status

const setTenant = (person: Workspace, settings: object) =>
  sql(running)`
    update tenants set settings = settings || ${JSON.stringify(settings)}::jsonb
    where id = ${person.tenantId}`

test('a sign-out at the application ends the online grant and not the offline grant', async (t) => {
  const { party, browser, offline, online } = await scene()
  const [first, second] = [decodeJwt(offline.id_token!), decodeJwt(online.id_token!)]
  t.is(first['sid'], second['sid'], 'both were given in one browser session')

  // The ID token of a refresh names the browser session too, so that it still signs the user out.
  const before = await oidc.refreshTokenGrant(party.config, offline.refresh_token!)
  t.is(decodeJwt(before.id_token!)['sid'], first['sid'])
  t.is(await userinfo(before.access_token), 200)
  const url = oidc.buildEndSessionUrl(party.config, {
    id_token_hint: before.id_token!,
    post_logout_redirect_uri: 'https://app.example/bye',
  })
  t.is((await browser.get(url.pathname + url.search)).status, 302)
  t.is((await browser.get('/auth/account')).status, 303, 'signed out')

  t.is(await refreshed(party, online.refresh_token), 'invalid_grant')
  // Access tokens of both grants end with the session.
  for (const { access_token } of [online, offline, before]) t.is(await userinfo(access_token), 401)
  const after = await refreshed(party, before.refresh_token)
  if (typeof after === 'string') return t.fail(after)
  t.is(after.scope, OFFLINE)
  t.is(await userinfo(after.access_token), 200)
  t.is(decodeJwt(after.id_token!).sub, first.sub)
  const later = await refreshed(party, after.refresh_token)
  if (typeof later === 'string') return t.fail(later)
  t.is(await userinfo(after.access_token), 200)
})

test('a sign-out on the account page does not end it either', async (t) => {
  const { party, browser, offline } = await scene()
  const account = await browser.get('/auth/account')
  t.is((await browser.submit(account, {}, '/auth/logout')).status, 200)
  t.is((await browser.get('/auth/account')).status, 303, 'signed out')
  const after = await refreshed(party, offline.refresh_token)
  if (typeof after === 'string') return t.fail(after)
  t.is(await userinfo(after.access_token), 200)
})

test('a withdrawn consent, a new password and a suspension end it', async (t) => {
  const withdrawn = await scene()
  const account = await withdrawn.browser.get('/auth/account')
  await withdrawn.browser.submit(account, {}, /\/auth\/account\/consents\//).gives(303)
  t.is(await refreshed(withdrawn.party, withdrawn.offline.refresh_token), 'invalid_grant')
  t.is(await userinfo(withdrawn.offline.access_token), 401)

  const changed = await scene()
  const page = await changed.browser.get('/auth/account/password')
  const password = 'an entirely new sentence of theirs'
  const done = await changed.browser.submit(page, { current: changed.person.password, password })
  t.is(done.location, '/auth/account')
  t.is(await refreshed(changed.party, changed.offline.refresh_token), 'invalid_grant')

  const suspended = await scene()
  await sql(running)`
    update tenant_users set status = 'suspended' where tenant_id = ${suspended.person.tenantId}`
  t.is(await refreshed(suspended.party, suspended.offline.refresh_token), 'invalid_grant')
})

test('a tenant can make a sign-out end it: logout_revokes_offline', async (t) => {
  const { person, party, browser, offline } = await scene()
  await setTenant(person, { logout_revokes_offline: true })
  const account = await browser.get('/auth/account')
  t.is((await browser.submit(account, {}, '/auth/logout')).status, 200)
  t.is((await browser.get('/auth/account')).status, 303, 'signed out')
  t.is(await refreshed(party, offline.refresh_token), 'invalid_grant')
  t.is(await userinfo(offline.access_token), 401)
})

test('a code of an ended session opens no offline grant', async (t) => {
  const { person, party, browser } = await scene()
  const begun = await party.journey({ scope: OFFLINE })
  const callback = callbackOf(await authorized(browser, person, begun.url))
  const account = await browser.get('/auth/account')
  await browser.submit(account, {}, '/auth/logout')
  const checks = begun.checks
  const refused = await t.throwsAsync(oidc.authorizationCodeGrant(party.config, callback, checks))
  t.is((refused as oidc.ResponseBodyError).error, 'invalid_grant')
})
