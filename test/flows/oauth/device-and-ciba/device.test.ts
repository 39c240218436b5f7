/** The device flow over HTTP: openid-client polls, a user decides in a browser (RFC 8628). */
import test from 'ava'
import { decodeJwt } from 'jose'
import * as fc from 'fast-check'
import * as oidc from 'openid-client'
import { openBrowser, dataIn, type Page } from '../../../support/pages/browser.js'
import { sql } from '../../../support/storage/sql.js'
import { bootstrapped, signIn, type Workspace } from '../../../support/identity/person.js'
import { expire, lengthen } from '../../../support/oauth/ciba.js'
import { type RelyingParty, relyingParty } from '../../../support/oauth/relying-party.js'
import { sharedPair, testService, type TestService } from '../../../support/service.js'
import { RACERS, ROUNDS } from '../../../support/racers.js'

const GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
const PAGE = '/oauth/device/verify'

let running: TestService
let peer: TestService
let person: Workspace
let party: RelyingParty
test.before(async () => {
  ;[running, peer] = await sharedPair('clients')
  person = await bootstrapped(running)
  party = await device()
})

const device = (more = {}, authentication?: oidc.ClientAuth) =>
  relyingParty(
    running,
    person,
    { clientType: 'public', grantTypes: [GRANT, 'refresh_token'], name: 'Television', ...more },
    authentication,
  )

async function post(path: string, fields: Record<string, string>, at = running.baseUrl) {
  const answer = await fetch(`${at}${path}`, { method: 'POST', body: new URLSearchParams(fields) })
  const body = (await answer.json()) as Record<string, unknown>
  return { status: answer.status, body, headers: answer.headers }
}
const start = (clientId = party.clientId, more: Record<string, string> = {}) =>
  post('/oauth/device/code', { client_id: clientId, scope: 'openid profile email', ...more })
const poll = (code: unknown, clientId = party.clientId, at = running.baseUrl) =>
  post('/oauth/token', { grant_type: GRANT, device_code: String(code), client_id: clientId }, at)
/** Signs in and decides. Returns the result page. */
async function decided(userCode: unknown, action: 'approve' | 'deny'): Promise<Page> {
  const browser = openBrowser(running)

  const typed = await browser.submit(await browser.get(PAGE), { user_code: String(userCode) })
  const login = await browser.follow(typed)
  const asked = await browser.follow(await browser.submit(login, person))
  return await browser.submit(asked, { action })
}

test('openid-client: a user connects a device on another screen', async (t) => {
  const begun = await oidc.initiateDeviceAuthorization(party.config, {
    scope: 'openid profile email',
  })
  t.is(begun.verification_uri, `${running.baseUrl}${PAGE}`)
  t.is(begun.verification_uri_complete, `${running.baseUrl}${PAGE}?user_code=${begun.user_code}`)
  t.regex(begun.user_code, /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/)
  t.is(begun.expires_in, 900)
  const polling = oidc.pollDeviceAuthorizationGrant(party.config, begun)

  const browser = openBrowser(running)
  const login = await browser.follow(await browser.get(`${PAGE}?user_code=${begun.user_code}`))
  t.true(login.path.startsWith('/auth/login'))
  t.true(login.html.includes('Television'))
  const asked = await browser.follow(await browser.submit(login, person)).gives(200)
  t.deepEqual(dataIn(asked.html, 'user-code'), [begun.user_code])
  t.deepEqual(dataIn(asked.html, 'scope'), ['openid', 'profile', 'email'])
  const done = await browser.submit(asked, { action: 'approve' })
  t.deepEqual(dataIn(done.html, 'decided'), ['approved'])

  const tokens = await polling
  const claims = tokens.claims()!
  t.like(claims, { acr: 'aal1', amr: ['pwd'], tenant_id: person.tenantId })
  const access = decodeJwt(tokens.access_token)
  t.like(access, { sub: claims.sub, subject_type: 'human', aud: party.audience })
  t.is(access['sid'], claims['sid'])
  const told = await oidc.fetchUserInfo(party.config, tokens.access_token, claims.sub)
  t.is(told.email, person.email)

  // The user signs out of the browser, and the device stays connected.
  const account = await browser.get('/auth/account')
  await browser.submit(account, {}, '/auth/logout')
  const next = await oidc.refreshTokenGrant(party.config, tokens.refresh_token!)
  t.is(next.claims()!.sub, claims.sub)

  // Withdrawing the consent on the account page ends it.
  const back = await browser.follow(await signIn(browser, person))
  await browser.submit(back, {}, `/auth/account/consents/${party.clientId}/withdraw`)
  await t.throwsAsync(oidc.refreshTokenGrant(party.config, next.refresh_token!))
  await t.throwsAsync(oidc.fetchUserInfo(party.config, next.access_token, claims.sub))
})

test('a user who denies, and a user who does not answer', async (t) => {
  const begun = await start()
  t.is(begun.status, 200)
  const waiting = await poll(begun.body['device_code'])
  t.like(waiting, { status: 400, body: { error: 'authorization_pending' } })
  t.is(waiting.headers.get('retry-interval'), '1')
  t.is(waiting.headers.get('cache-control'), 'no-store')
  const page = await decided(begun.body['user_code'], 'deny')
  t.deepEqual(dataIn(page.html, 'decided'), ['denied'])
  t.like(await poll(begun.body['device_code']), { status: 400, body: { error: 'access_denied' } })

  const other = await start()
  await expire(running, other.body['device_code'])
  t.like(await poll(other.body['device_code']), { status: 400, body: { error: 'expired_token' } })
  const late = await decidedAt(other.body['user_code'])
  t.true(late.html.includes('No device is waiting'))
})

async function decidedAt(userCode: unknown): Promise<Page> {
  const browser = openBrowser(running)

  return await browser.get(`${PAGE}?user_code=${String(userCode)}`)
}

test('a poll that is too fast is refused, and the interval stays', async (t) => {
  const { body } = await start()
  const first = await poll(body['device_code'])
  t.is(first.body['error'], 'authorization_pending', 'the first poll is never too fast')
  // A slow machine takes longer than the one second of this file.
  await lengthen(running, body['device_code'], 120)
  const many = await Promise.all(Array.from({ length: 5 }, () => poll(body['device_code'])))
  t.deepEqual(
    many.map((one) => one.body['error']),
    many.map(() => 'slow_down'),
  )
  const intervals = many.map(({ headers }) => Number(headers.get('retry-interval')))
  t.deepEqual(
    intervals,
    intervals.map(() => 125),
  )
  // An approved request is returned immediately.
  await decided(body['user_code'], 'approve')
  t.is((await poll(body['device_code'])).status, 200)
})

test.serial('of concurrent redemptions in two processes one succeeds', async (t) => {
  t.timeout(120_000)
  const { body } = await start()
  await decided(body['user_code'], 'approve')
  const places = [running.baseUrl, peer.baseUrl]
  const answers = await Promise.all(
    Array.from({ length: RACERS }, (_, n) =>
      poll(body['device_code'], party.clientId, places[n % 2]),
    ),
  )
  t.is(answers.filter(({ status }) => status === 200).length, 1)
  const others = answers.filter(({ status }) => status !== 200)
  t.true(others.every(({ status, body }) => status === 400 && body['error'] === 'invalid_grant'))
  t.is((await poll(body['device_code'])).body['error'], 'invalid_grant')
})

// Polls of one code are serialised within a process, so two processes race for the row.
test.serial('of two processes that redeem at the same moment one succeeds', async (t) => {
  t.timeout(120_000)
  const browser = openBrowser(running)
  await browser.follow(await signIn(browser, person))
  for (let round = 0; round < ROUNDS; round += 1) {
    const { body } = await start()
    const asked = await browser.get(`${PAGE}?user_code=${body['user_code']}`)
    await browser.submit(asked, { action: 'approve' })
    const answers = await Promise.all(
      [running, peer].map(({ baseUrl }) => poll(body['device_code'], party.clientId, baseUrl)),
    )
    t.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 400])
  }
})

test('a request can be decided once, by one user', async (t) => {
  const { body } = await start()
  const browser = openBrowser(running)
  const login = await browser.follow(await browser.get(`${PAGE}?user_code=${body['user_code']}`))
  const asked = await browser.follow(await browser.submit(login, person))
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      browser.submit(asked, { action: n % 2 === 0 ? 'approve' : 'deny' }),
    ),
  )
  const said = answers.flatMap(({ html }) => dataIn(html, 'decided'))
  t.is(said.length, 20)
  t.is(new Set(said).size, 1, 'all pages show the one decision')
  const polled = await poll(body['device_code'])
  t.is(polled.status === 200, said[0] === 'approved')
})

test('another client cannot use the code, and does not disturb it', async (t) => {
  const other = await device()
  const { body } = await start()
  t.like(await poll(body['device_code'], other.clientId), {
    status: 400,
    body: { error: 'invalid_grant' },
  })
  t.is((await poll(body['device_code'])).body['error'], 'authorization_pending')
  const foreign = await bootstrapped(running)
  const browser = openBrowser(running)
  await browser.follow(await signIn(browser, foreign))
  const led = await browser.get(`${PAGE}?user_code=${body['user_code']}`)
  t.is(led.status, 303, 'a user of another tenant is asked to sign in here')
  t.true(led.location?.startsWith('/auth/login'))
})

test('only a form of the service decides, in the session that showed it', async (t) => {
  const { body } = await start()
  const userCode = String(body['user_code'])
  const browser = openBrowser(running)
  const login = await browser.follow(await browser.get(`${PAGE}?user_code=${userCode}`))
  const asked = await browser.follow(await browser.submit(login, person))
  const fields = asked.forms[0]!.fields
  await browser.post(PAGE, { ...fields, action: 'approve', csrf_token: '' }).gives(403)
  const swapped = await browser.post(PAGE, { ...fields, action: 'approve', session: 'another' })
  t.deepEqual(dataIn(swapped.html, 'decided'), [])
  t.deepEqual(dataIn(swapped.html, 'user-code'), [userCode], 'asked again')
  t.is((await browser.get(`${PAGE}?user_code=${userCode}&action=approve`)).status, 200)
  t.is((await poll(body['device_code'])).body['error'], 'authorization_pending')
})

test('a code is found in every spelling that users type', async (t) => {
  const { body } = await start()
  const code = String(body['user_code'])
  const browser = openBrowser(running)
  for (const typed of [code.toLowerCase(), code.replace('-', ' '), ` ${code.replace('-', '')} `]) {
    const page = await browser.submit(await browser.get(PAGE), { user_code: typed })
    t.is(page.status, 303, typed)
  }
})

test('guessing codes is stopped, for correct codes too', async (t) => {
  // Guesses count by address, which the files of a shared service share.
  const strict = await testService()
  t.teardown(() => strict.end())
  const tv = await relyingParty(strict, await bootstrapped(strict), {
    clientType: 'public',
    grantTypes: [GRANT],
  })
  const fields = { client_id: tv.clientId }
  const { body } = await post('/oauth/device/code', fields, strict.baseUrl)
  const browser = openBrowser(strict)
  const right = () => browser.get(`${PAGE}?user_code=${String(body['user_code'])}`)
  const together = await Promise.all(Array.from({ length: 20 }, right))
  t.true(
    together.every(({ status }) => status === 303),
    'right ones count for nothing',
  )
  // The page of delegations takes user codes too, and counts with this one.
  await browser.get('/device/delegation/ZZZZ-ZZZR').gives(404)
  const statuses: number[] = []
  for (const letter of 'BCDFGHJKLMNPQ')
    statuses.push((await browser.get(`${PAGE}?user_code=ZZZZ-ZZZ${letter}`)).status)
  t.deepEqual(statuses, [...Array<number>(9).fill(200), 429, 429, 429, 429], 'ten by default')
  const late = await right().gives(429)
  t.true(Number(late.headers['retry-after']) > 0)
  const delegation = await browser.get('/device/delegation/ZZZZ-ZZZS').gives(429)
  t.true(Number(delegation.headers['retry-after']) > 0)
})

const REFUSED: readonly [string, number, string, () => Promise<Record<string, string>>][] = [
  ['no client', 401, 'invalid_client', async () => ({})],
  ['an unknown client', 401, 'invalid_client', async () => ({ client_id: 'unknown' })],
  [
    'an application without the grant',
    403,
    'unauthorized_client',
    async () => ({
      client_id: (await device({ grantTypes: ['authorization_code'] })).clientId,
    }),
  ],
  [
    'a confidential application that does not authenticate',
    401,
    'invalid_client',
    async () => ({ client_id: (await device({ clientType: 'confidential' })).clientId }),
  ],
  [
    'a scope that the application lacks',
    400,
    'invalid_scope',
    async () => ({ ...own(), scope: 'tenant:manage' }),
  ],
  ['a malformed scope', 400, 'invalid_scope', async () => ({ ...own(), scope: 'a\u0000b' })],
  ['a foreign audience', 400, 'invalid_target', async () => ({ ...own(), audience: 'urn:x:y' })],
  [
    'two audiences',
    400,
    'invalid_target',
    async () => ({ ...own(), audience: 'urn:x:y', resource: 'urn:x:z' }),
  ],
  [
    'two tenants',
    400,
    'invalid_request',
    async () => ({ ...own(), tenant_id: person.tenantId, tenant_slug: person.tenantSlug }),
  ],
  [
    'another tenant',
    400,
    'invalid_request',
    async () => ({ ...own(), tenant_id: (await bootstrapped(running)).tenantId }),
  ],
]
const own = () => ({ client_id: party.clientId })
for (const [title, status, error, fields] of REFUSED) {
  test(`a request with ${title} is refused: ${error}`, async (t) => {
    const answer = await post('/oauth/device/code', await fields())
    t.like(answer, { status, body: { error } })
    t.is(answer.headers.get('cache-control'), 'no-store')
  })
}

test('a repeated parameter is refused, and GET is not supported', async (t) => {
  const twice = await fetch(`${running.baseUrl}/oauth/device/code`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `client_id=${party.clientId}&scope=openid&scope=email`,
  })
  t.is(twice.status, 400)
  t.is(((await twice.json()) as { error: string }).error, 'invalid_request')
  const get = await fetch(`${running.baseUrl}/oauth/device/code`)
  t.is(get.status, 405)
  t.is(get.headers.get('allow')?.includes('POST'), true)
})

test('arbitrary text never breaks the page or the poll', async (t) => {
  const browser = openBrowser(running)
  const page = await browser.get(PAGE)
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 300 }), async (text) => {
      const typed = await browser.submit(page, { user_code: text })
      t.true([200, 303, 400].includes(typed.status), `${typed.status}`)
      t.false(typed.html.includes('<script'))
      const polled = await poll(text)
      t.is(polled.status, 400)
    }),
    { numRuns: 25 },
  )
})

test('tokens of a device can be bound to its key', async (t) => {
  const keyed = await device()
  const DPoP = oidc.getDPoPHandle(keyed.config, await oidc.randomDPoPKeyPair('Ed25519'))
  const begun = await oidc.initiateDeviceAuthorization(keyed.config, { scope: 'openid' })
  await decided(begun.user_code, 'approve')
  const tokens = await oidc.pollDeviceAuthorizationGrant(keyed.config, begun, undefined, { DPoP })
  t.is(tokens.token_type, 'dpop')
  t.truthy((decodeJwt(tokens.access_token)['cnf'] as { jkt: string }).jkt)
  await t.throwsAsync(oidc.refreshTokenGrant(keyed.config, tokens.refresh_token!))
  const next = await oidc.refreshTokenGrant(keyed.config, tokens.refresh_token!, undefined, {
    DPoP,
  })
  t.is(next.token_type, 'dpop')
})

test('a suspended user cannot grant anything', async (t) => {
  const guest = await bootstrapped(running)
  const tv = await relyingParty(running, guest, {
    clientType: 'public',
    grantTypes: [GRANT],
  })
  const { body } = await start(tv.clientId, { scope: 'openid' })
  const browser = openBrowser(running)
  const login = await browser.follow(await browser.get(`${PAGE}?user_code=${body['user_code']}`))
  const asked = await browser.follow(await browser.submit(login, guest))
  await browser.submit(asked, { action: 'approve' })
  const suspend = 'update tenant_users set status = $2 where tenant_id = $1'
  await sql(running.db.database, suspend, [guest.tenantId, 'suspended'])
  const refused = await poll(body['device_code'], tv.clientId)
  t.like(refused, { status: 400, body: { error: 'invalid_grant' } })
})
