/** CIBA over HTTP: openid-client polls, and a user answers in their inbox (CIBA Core 1.0). */
import test from 'ava'
import { decodeJwt } from 'jose'
import * as oidc from 'openid-client'
import { apiOf } from '../../../support/api.js'
import { dataIn, openBrowser } from '../../../support/pages/browser.js'
import { ciba, CIBA_GRANT, expire, INBOX, lengthen, REQUESTS } from '../../../support/oauth/ciba.js'
import { ownToken } from '../../../support/agents/delegation.js'
import { bootstrapped, enrolledBrowser, signIn } from '../../../support/identity/person.js'
import { relyingParty } from '../../../support/oauth/relying-party.js'
import { sharedPair } from '../../../support/service.js'
import { numberAll } from '../../../support/storage/numbered.js'
import { RACERS, ROUNDS } from '../../../support/racers.js'

const [running, peer] = await sharedPair('clients')
const person = await bootstrapped(running)
const party = await relyingParty(running, person, {
  grantTypes: [CIBA_GRANT, 'refresh_token'],
  name: 'Harbour Bank',
})
const inbox = { ...(await enrolledBrowser(running, person)), running }

const asks = () => ciba(running, party)

test('openid-client: a user approves on another device', async (t) => {
  const begun = await oidc.initiateBackchannelAuthentication(party.config, {
    scope: 'openid profile email',
    login_hint: person.email.toUpperCase(),
    binding_message: 'Kai 7 – 4711',
  })
  t.is(begun.expires_in, 300)
  t.is(begun.interval, 1)
  t.regex(begun.auth_req_id, /^[A-Za-z0-9_-]{43}$/)
  const polling = oidc.pollBackchannelAuthenticationGrant(party.config, begun)

  const page = await inbox.browser.get(INBOX).gives(200)
  t.true(page.html.includes('Harbour Bank'))
  t.deepEqual(dataIn(page.html, 'binding-message'), ['Kai 7 – 4711'])
  t.deepEqual(dataIn(page.html, 'scope'), ['openid', 'profile', 'email'])
  t.false(page.html.includes(begun.auth_req_id))
  const done = await inbox.browser.submit(page, { action: 'approve' }, /\/auth\/requests\//)
  t.deepEqual(dataIn(done.html, 'decided'), ['approved'])

  const tokens = await polling
  const claims = tokens.claims()!
  t.like(claims, { acr: 'aal2', tenant_id: person.tenantId, aud: party.clientId })
  t.deepEqual(claims['amr'], ['pwd', 'otp', 'mfa'])
  const access = decodeJwt(tokens.access_token)
  t.like(access, { sub: claims.sub, subject_type: 'human', aud: party.audience })
  t.is(access['sid'], claims['sid'])
  const told = await oidc.fetchUserInfo(party.config, tokens.access_token, claims.sub)
  t.is(told.email, person.email)
  const next = await oidc.refreshTokenGrant(party.config, tokens.refresh_token!)
  t.is(next.claims()!.sub, claims.sub)

  // The same user by ID token and by subject.
  for (const hint of [{ id_token_hint: tokens.id_token! }, { login_hint: claims.sub }]) {
    const again = await asks().start(hint)
    t.is(again.status, 200)
    t.is((await inbox.browser.get(INBOX)).html.match(/data-request=/g)?.length, 1)
    await asks().answer(inbox, 'deny')
    t.like(await asks().poll(again.body['auth_req_id']), {
      status: 400,
      body: { error: 'access_denied' },
    })
  }
})

test('a user who denies, and polls that are too fast', async (t) => {
  const { poll, start } = ciba(running, party)
  const { body } = await start({ login_hint: 'unknown@harbour.example' })
  const first = await poll(body['auth_req_id'])
  t.like(first, { status: 400, body: { error: 'authorization_pending' } })
  t.is(first.headers.get('retry-interval'), '1')
  t.is(first.headers.get('cache-control'), 'no-store')
  // Far longer than five polls take on a slow machine.
  await lengthen(running, body['auth_req_id'], 120)
  const many = await Promise.all(Array.from({ length: 5 }, () => poll(body['auth_req_id'])))
  t.true(many.every((one) => one.body['error'] === 'slow_down' && one.status === 400))
  const intervals = many.map(({ headers }) => Number(headers.get('retry-interval')))
  t.deepEqual(
    intervals,
    intervals.map(() => 125),
  )
  await expire(running, body['auth_req_id'])
  t.like(await poll(body['auth_req_id']), { status: 400, body: { error: 'expired_token' } })
})

test.serial('of concurrent redemptions in two processes one succeeds', async (t) => {
  t.timeout(120_000)
  const other = await bootstrapped(running)
  const bank = await relyingParty(running, other, { grantTypes: [CIBA_GRANT] })
  const own = { ...(await enrolledBrowser(running, other)), running }
  const { start, answer, poll } = ciba(running, bank)
  const { body } = await start({ login_hint: other.email })
  await answer(own, 'approve')
  const there = ciba(peer, bank)
  const answers = await Promise.all(
    Array.from({ length: RACERS }, (_, n) =>
      (n % 2 === 0 ? poll : there.poll)(body['auth_req_id']),
    ),
  )
  const won = answers.filter(({ status }) => status === 200)
  t.is(won.length, 1)
  t.false('refresh_token' in won[0]!.body, 'the application does not have that grant')
  const others = answers.filter(({ status }) => status !== 200)
  t.true(others.every(({ status, body }) => status === 400 && body['error'] === 'invalid_grant'))

  // Polls of one request are serialised within a process, so two processes race for the row.
  for (let round = 0; round < ROUNDS; round += 1) {
    const { auth_req_id: next } = (await start({ login_hint: other.email })).body
    await answer(own, 'approve')
    const both = await Promise.all([poll(next), there.poll(next)])
    t.deepEqual(both.map(({ status }) => status).toSorted(), [200, 400])
  }
})

test('the API: a program lists and denies with a token, and a page of the service approves', async (t) => {
  const other = await bootstrapped(running)
  const bank = await relyingParty(running, other, { grantTypes: [CIBA_GRANT] })
  const api = apiOf(running)
  const own = await enrolledBrowser(running, other)
  const human = { browser: own.browser, human: other }
  const token = await ownToken(api, other, human)
  const { start, poll } = ciba(running, bank)
  const begun = await start({
    login_hint: other.email,
    binding_message: '77-31',
    acr_values: 'aal2',
    requested_expiry: '60',
  })
  t.is(begun.body['expires_in'], 60)
  const listed = await api.list(REQUESTS, token)
  t.is(listed.status, 200)
  const [{ id, created_at, expires_at, ...rest } = {}] = listed.rows
  t.deepEqual(rest, {
    client_id: bank.clientId,
    client_name: 'Lighthouse',
    scope: 'openid email',
    binding_message: '77-31',
    acr_values: 'aal2',
  })
  t.is(Date.parse(String(expires_at)) - Date.parse(String(created_at)), 60_000)
  const path = `${REQUESTS}/${String(id)}`
  const byPage = () =>
    own.browser.post(
      `${path}/approve`,
      {},
      {
        accept: 'application/json',
        origin: new URL(running.baseUrl).origin,
      },
    )
  t.is((await byPage()).status, 204)
  t.is((await byPage()).status, 404)
  t.deepEqual((await api.list(REQUESTS, token)).rows, [])
  const tokens = await poll(begun.body['auth_req_id'])
  t.is(tokens.status, 200)
  t.like(decodeJwt(String(tokens.body['id_token'])), { acr: 'aal2', amr: ['pwd', 'otp', 'mfa'] })

  // Members without a value are absent, and a token can deny.
  const plain = await start({ login_hint: other.email })
  const [waiting = {}] = (await api.list(REQUESTS, token)).rows
  t.deepEqual(Object.keys(waiting).toSorted(), [
    'client_id',
    'client_name',
    'created_at',
    'expires_at',
    'id',
    'scope',
  ])
  const deny = `${REQUESTS}/${String(waiting['id'])}/deny`
  t.is((await api.post(deny, token)).status, 204)
  t.is((await poll(plain.body['auth_req_id'])).body['error'], 'access_denied')

  await numberAll(running.db.database)
  const audit = await running.db.database.tenant(other.tenantId, (tx) =>
    tx.query<{ type: string }>({
      name: 'test.audit',
      text: `select type from audit_events where tenant_id = $1 and type like 'auth.ciba.%'`,
      values: [other.tenantId],
    }),
  )
  t.deepEqual(audit.rows.map(({ type }) => type).toSorted(), [
    'auth.ciba.approved',
    'auth.ciba.denied',
  ])
})

test('without a second factor no answer is possible: 401 for a program, a step-up in the browser', async (t) => {
  const other = await bootstrapped(running)
  const bank = await relyingParty(running, other, { grantTypes: [CIBA_GRANT] })
  const app = await relyingParty(running, other, { scopes: ['openid', 'delegations:manage'] })
  const { tokens, browser } = await app.signedIn(other, {
    scope: 'openid delegations:manage',
  })
  const api = apiOf(running)
  const { start, poll } = ciba(running, bank)
  const { body } = await start({ login_hint: other.email })
  const page = await browser.get(INBOX)
  const [id] = dataIn(page.html, 'request')
  for (const refused of [
    await api.get(REQUESTS, tokens.access_token),
    await api.post(`${REQUESTS}/${id}/deny`, tokens.access_token),
  ]) {
    t.like(refused, { status: 401, body: { error: 'insufficient_user_authentication' } })
    t.regex(refused.headers['www-authenticate']!, /acr_values="aal3 aal2"$/)
  }
  const call = { accept: 'application/json', origin: new URL(running.baseUrl).origin }
  for (const action of ['approve', 'deny']) {
    const refused = await browser.post(`${REQUESTS}/${id}/${action}`, {}, call).gives(401)
    t.like(JSON.parse(refused.html), { error: 'insufficient_user_authentication' })
  }
  const led = await browser.submit(page, { action: 'approve' }, /\/auth\/requests\//).gives(303)
  t.true(led.location?.startsWith('/auth/mfa/enroll'), led.location ?? '')
  t.is((await poll(body['auth_req_id'])).body['error'], 'authorization_pending')
})

test('the API with a browser session: only from pages of the service', async (t) => {
  const other = await bootstrapped(running)
  const bank = await relyingParty(running, other, { grantTypes: [CIBA_GRANT] })
  const own = await enrolledBrowser(running, other)
  const { start, poll } = ciba(running, bank)
  const { body } = await start({ login_hint: other.email })
  const listed = await own.browser.get(REQUESTS, { accept: 'application/json' }).gives(200)
  const [{ id } = { id: '' }] = JSON.parse(listed.html) as { id: string }[]
  const json = { accept: 'application/json' }
  const origin = new URL(running.baseUrl).origin
  const approve = (headers: Record<string, string>) =>
    own.browser.post(`${REQUESTS}/${id}/approve`, {}, { ...json, ...headers })
  const foreign: Record<string, string>[] = [
    {},
    { origin: 'null' },
    { origin: 'https://evil.example' },
    { origin, 'sec-fetch-site': 'cross-site' },
    { origin, 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'none' },
  ]
  for (const headers of foreign) t.is((await approve(headers)).status, 403, JSON.stringify(headers))
  await own.browser.get(REQUESTS, { ...json, origin: 'https://evil.example' }).gives(403)
  t.is((await poll(body['auth_req_id'])).body['error'], 'authorization_pending')
  t.is((await approve({ origin, 'sec-fetch-site': 'same-origin' })).status, 204)
  t.is((await poll(body['auth_req_id'])).status, 200)
})

test('no other user, of the same tenant or another, sees the request', async (t) => {
  const meant = await bootstrapped(running)
  const bank = await relyingParty(running, meant, { grantTypes: [CIBA_GRANT] })
  const { start, poll } = ciba(running, bank)
  const { body } = await start({ login_hint: meant.email, scope: 'openid' })
  const anonymous = await fetch(`${running.baseUrl}${REQUESTS}`)
  t.is(anonymous.status, 401)
  t.regex(anonymous.headers.get('www-authenticate')!, /^Bearer resource_metadata=/)
  const { rows } = await running.db.database.tenant(meant.tenantId, (tx) =>
    tx.query<{ id: string }>({
      name: 'test.request',
      text: 'select id from backchannel_requests where tenant_id = $1',
      values: [meant.tenantId],
    }),
  )
  const foreign = await bootstrapped(running)
  const theirs = await enrolledBrowser(running, foreign)
  t.deepEqual(dataIn((await theirs.browser.get(INBOX)).html, 'request'), [])
  const account = await theirs.browser.get(INBOX)
  t.true(account.html.includes('data-inbox-empty'))
  const origin = new URL(running.baseUrl).origin
  for (const action of ['approve', 'deny']) {
    const path = `${REQUESTS}/${rows[0]!.id}/${action}`
    await theirs.browser.post(path, {}, { accept: 'application/json', origin }).gives(404)
  }
  // A browser without a session is redirected to sign-in.
  const fresh = openBrowser(running)
  await fresh.get(INBOX).gives(303)
  const page = await fresh.follow(await signIn(fresh, meant, INBOX))
  t.is(page.path, INBOX)
  t.deepEqual(dataIn(page.html, 'request'), [rows[0]!.id])
  t.is((await poll(body['auth_req_id'])).body['error'], 'authorization_pending')
})
