/**
 * An application with a user token cannot consent for the user, neither for another application
 * of its owner nor for an honest one that uses CIBA.
 */
import test from 'ava'
import { decodeJwt } from 'jose'
import * as oidc from 'openid-client'
import { type Api, apiOf } from '../../../support/api.js'
import type { TestBrowser } from '../../../support/pages/browser.js'
import { ciba, CIBA_GRANT, INBOX, REQUESTS } from '../../../support/oauth/ciba.js'
import { ownToken } from '../../../support/agents/delegation.js'
import { bootstrapped, enrolledBrowser, type Workspace } from '../../../support/identity/person.js'
import {
  authorized,
  callbackOf,
  type RelyingParty,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { sharedService, type TestService } from '../../../support/service.js'

const POWERS = 'openid profile email vault:list vault:read org:read delegations:manage'
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS = 'urn:ietf:params:oauth:token-type:access_token'

let running: TestService
let victim: Workspace
let api: Api
let browser: TestBrowser
/** Requests all scopes of the user by CIBA. */
let printer: RelyingParty
/** The token of the other application: the user granted delegations:manage minutes ago, at AAL2. */
let token: string

test.before(async () => {
  running = await sharedService('clients')
  api = apiOf(running)
  victim = await bootstrapped(running)
  ;({ browser } = await enrolledBrowser(running, victim))
  printer = await relyingParty(running, victim, {
    name: 'Printer Service',
    grantTypes: [CIBA_GRANT, 'refresh_token', EXCHANGE],
    scopes: POWERS.split(' '),
  })
  token = await ownToken(api, victim, { browser, human: victim }, 'openid delegations:manage')
})

test.serial('a token of one application cannot approve the request of another one', async (t) => {
  const { start, poll } = ciba(running, printer)
  const begun = await start({ login_hint: victim.email, scope: POWERS })
  t.is(begun.status, 200)
  const { rows } = await api.list(REQUESTS, token)
  t.is(rows.length, 1)
  const path = `${REQUESTS}/${String(rows[0]!['id'])}`

  const refused = await api.post(`${path}/approve`, token).gives(403, 'insufficient_scope')
  t.regex(refused.headers['www-authenticate'] ?? '', /^Bearer error="insufficient_scope"/)
  // The user's browser session adds nothing to a token.
  const origin = new URL(running.baseUrl).origin
  const answer = await browser.post(
    `${path}/approve`,
    {},
    {
      accept: 'application/json',
      authorization: `Bearer ${token}`,
      origin,
    },
  )
  t.is(answer.status, 403)
  t.is((await poll(begun.body['auth_req_id'])).body['error'], 'authorization_pending')

  // The user sees the request on a page of the service, which names the application and its scopes.
  const page = await browser.get(INBOX)
  t.true(page.html.includes('Printer Service'))
  t.is((await api.post(`${path}/deny`, token)).status, 204)
  t.is((await poll(begun.body['auth_req_id'])).body['error'], 'access_denied')
})

test.serial('a token that a third application got by token exchange cannot either', async (t) => {
  const sibling = await relyingParty(running, victim, {
    grantTypes: [EXCHANGE],
    scopes: ['openid', 'delegations:manage'],
  })
  const viewer = await relyingParty(running, victim, { scopes: ['openid', 'delegations:manage'] })
  const scope = 'openid delegations:manage'
  const begun = await viewer.journey({ scope, resource: sibling.audience })
  const callback = callbackOf(await authorized(browser, victim, begun.url))
  const { access_token } = await oidc.authorizationCodeGrant(viewer.config, callback, begun.checks)
  const exchanged = await ciba(running, sibling).post('/oauth/token', {
    grant_type: EXCHANGE,
    client_id: sibling.clientId,
    client_secret: sibling.secret,
    subject_token: access_token,
    subject_token_type: ACCESS,
  })
  t.is(exchanged.status, 200)
  t.is(decodeJwt(String(exchanged.body['access_token']))['client_id'], sibling.clientId)

  const honest = await relyingParty(running, victim, { name: 'Bank', grantTypes: [CIBA_GRANT] })
  const { start, poll } = ciba(running, honest)
  const asked = await start({ login_hint: victim.email })
  const { rows } = await api.list(REQUESTS, token)
  const path = `${REQUESTS}/${String(rows[0]!['id'])}/approve`
  for (const one of [access_token, String(exchanged.body['access_token'])])
    t.like(await api.post(path, one), { status: 403, body: { error: 'insufficient_scope' } })
  t.is((await poll(asked.body['auth_req_id'])).body['error'], 'authorization_pending')
  await ciba(running, honest).answer({ browser }, 'approve')
  t.is((await poll(asked.body['auth_req_id'])).status, 200, 'the user approves on the page')
})
