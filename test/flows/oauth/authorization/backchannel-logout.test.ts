/**
 * OpenID Connect Back-Channel Logout 1.0: each application of a session gets a logout token when the session ends, however it
 * ends. Relying parties are openid-client and jose.
 */
import { randomUUID } from 'node:crypto'
import test, { type ExecutionContext } from 'ava'
import { createRemoteJWKSet, decodeJwt, type JWTPayload, jwtVerify } from 'jose'
import * as oidc from 'openid-client'
import type { NewApplication } from '../../../../storage/oauth/applications.js'
import { fixtureOf, type Human, newFixture } from '../../../support/agents/delegation.js'
import type { Workspace } from '../../../support/api.js'
import { operatorOfDeployment } from '../../../support/oauth/operator.js'
import {
  authorized,
  callbackOf,
  type RelyingParty,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import type { TestBrowser } from '../../../support/pages/browser.js'
import { sharedApi } from '../../../support/service.js'
import { until } from '../../../support/service/watch.js'
import { sql } from '../../../support/storage/sql.js'
import { type Answer, type Received, startReceiver } from '../../../support/webhooks/receiver.js'

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
const { api, running } = await sharedApi('hosts')
const ops = await operatorOfDeployment(api)
/** Answers by path. Others are 200. */
const answers = new Map<string, (nth: number) => Answer>()
const receiver = await startReceiver(({ path }) => {
  const answer = answers.get(path)
  return answer === undefined ? 200 : answer(receiver.at(path).length)
})
const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', running.baseUrl))
test.after.always(() => api.end())

type Told = { readonly party: RelyingParty; readonly path: string }

/** An application with a path at the receiver. */
async function application(
  workspace: Pick<Workspace, 'tenantId'>,
  more: Partial<NewApplication> = {},
  answer?: (nth: number) => Answer,
): Promise<Told> {
  const path = `/${randomUUID()}?of=svc`
  if (answer !== undefined) answers.set(path, answer)
  const backchannelLogoutUri = receiver.origin + path
  return { path, party: await relyingParty(running, workspace, { backchannelLogoutUri, ...more }) }
}

/** The ID token of another application in the browser of a person who is signed in. */
async function joined(browser: TestBrowser, human: Human, { party }: Told, parameters = {}) {
  const begun = await party.journey(parameters)
  const callback = callbackOf(await authorized(browser, human, begun.url))
  const { id_token } = await oidc.authorizationCodeGrant(party.config, callback, begun.checks)
  return { idToken: id_token!, sid: decodeJwt(id_token!)['sid'] }
}

/** A workspace whose person is signed in to an application. */
async function scene() {
  const workspace = await api.workspace()
  const human = fixtureOf(workspace)
  const told = await application(workspace)
  const { browser, tokens } = await told.party.signedIn(human)
  const { rows } = await api.list(
    `/api/v1/tenant-users?email=${encodeURIComponent(human.email)}`,
    workspace.token,
  )
  const user = `/api/v1/tenant-users/${String(rows[0]!['id'])}`
  return { workspace, human, ...told, browser, idToken: tokens.id_token!, user }
}
type Scene = Awaited<ReturnType<typeof scene>>

/** Verifies a request as an application does (section 2.6). */
async function verified(
  t: ExecutionContext,
  { headers, body }: Received,
  { party }: Pick<Told, 'party'>,
): Promise<JWTPayload> {
  t.is(headers['content-type'], 'application/x-www-form-urlencoded')
  t.is(headers.cookie, undefined)
  const form = new URLSearchParams(body.toString())
  t.deepEqual([...form.keys()], ['logout_token'])
  const { payload, protectedHeader } = await jwtVerify(form.get('logout_token')!, keys, {
    issuer: party.config.serverMetadata().issuer,
    audience: party.clientId,
    typ: 'logout+jwt',
    maxTokenAge: '2m',
    requiredClaims: ['iat', 'exp', 'jti', 'sub', 'sid', 'events'],
  })
  t.deepEqual(Object.keys(payload).toSorted(), [
    'aud',
    'events',
    'exp',
    'iat',
    'iss',
    'jti',
    'sid',
    'sub',
  ])
  t.deepEqual(payload['events'], { [EVENT]: {} })
  t.true(payload.exp! - payload.iat! <= 120)
  t.is(protectedHeader.alg, party.config.clientMetadata().id_token_signed_response_alg as string)
  return payload
}

const endSession = ({ browser, idToken }: Pick<Scene, 'browser' | 'idToken'>) =>
  browser.get(`/oauth/end-session?id_token_hint=${idToken}`).gives(200)

test('RP-initiated logout tells each application of the session once, and no other', async (t) => {
  const first = await scene()
  const { workspace, human, browser } = first
  const second = await application(workspace, { idTokenSignedResponseAlg: 'EdDSA' })
  const own = await joined(browser, human, second)
  // Joins a second time.
  t.is((await joined(browser, human, second)).sid, own.sid)
  const elsewhere = await application(workspace)
  await elsewhere.party.signedIn(human)
  const stranger = await application(workspace)
  const foreign = await scene()

  await endSession(first)
  const [told] = await receiver.until(first.path, 1)
  const [other] = await receiver.until(second.path, 1)
  const { sub, sid } = decodeJwt(first.idToken)
  const payload = await verified(t, told!, first)
  t.like(payload, { sub, sid })
  const { jti } = await verified(t, other!, second)
  t.not(jti, payload.jti)
  t.is(own.sid, sid)
  // The token of a later end has arrived: nothing else is on its way.
  await endSession(foreign)
  await receiver.until(foreign.path, 1)
  t.deepEqual(
    [first, second].map(({ path }) => receiver.at(path).length),
    [1, 1],
  )
  for (const { path } of [elsewhere, stranger]) t.is(receiver.at(path).length, 0)
  const { length } = await sql(running)`
    select from session_applications where tenant_id = ${workspace.tenantId} and ended_at is not null`
  t.is(length, 0)
})

const ask = async (method: string, path: string, token: string) => {
  const { status, body } = await api.call(method, path, {
    token,
    json: method === 'POST' ? {} : undefined,
  })
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(body)}`)
}

const WAYS: Readonly<Record<string, (at: Scene) => Promise<unknown>>> = {
  'the person signs out': async ({ browser }) =>
    browser.submit(await browser.get('/auth/account'), {}, '/auth/logout'),
  'an administrator ends the session': async ({ user, workspace: { token } }) => {
    const { rows } = await api.list(`${user}/sessions`, token)
    for (const { id } of rows) await ask('DELETE', `${user}/sessions/${String(id)}`, token)
  },
  'an administrator suspends the user': ({ user, workspace }) =>
    ask('POST', `${user}/suspend`, workspace.token),
  'an administrator removes the user': ({ user, workspace }) =>
    ask('DELETE', user, workspace.token),
  'the password is changed': ({ user, workspace }) =>
    ask(
      'POST',
      `/api/v1/sandbox/fixture-users/${user.split('/').at(-1)!}/rotate-password`,
      workspace.token,
    ),
  'an operator suspends the account': async ({ human }) => {
    const path = `/api/v1/accounts?email=${encodeURIComponent(human.email)}`
    const { rows } = await api.list(path, ops.token)
    await ask('POST', `/api/v1/accounts/${String(rows[0]!['id'])}/suspend`, ops.token)
  },
  'an operator suspends the tenant': ({ workspace: { tenantId } }) =>
    ask('POST', `/api/v1/tenants/${tenantId}/suspend`, ops.token),
  'an operator suspends the organization': ({ workspace: { organizationId } }) =>
    ask('POST', `/api/v1/organizations/${organizationId}/suspend`, ops.token),
  'another person signs in with the browser': async ({ browser, workspace }) =>
    joined(browser, await newFixture(api, workspace), await application(workspace), {
      prompt: 'login',
    }),
  'the session times out': async ({ workspace: { tenantId } }) => {
    await sql(running)`
      update browser_sessions set last_seen_at = last_seen_at - interval '1 year'
      where tenant_id = ${tenantId}`
    await sql(running)`update session_applications set due_at = now() where tenant_id = ${tenantId}`
  },
}

for (const [way, end] of Object.entries(WAYS)) {
  test(`an application gets a logout token when ${way}`, async (t) => {
    const at = await scene()
    await end(at)
    const [told] = await receiver.until(at.path, 1)
    const { sub, sid } = decodeJwt(at.idToken)
    t.like(await verified(t, told!, at), { sub, sid })
  })
}

test('a session that goes on under another cookie tells its applications when that one ends', async (t) => {
  const at = await scene()
  const later = await application(at.workspace)
  const own = await joined(at.browser, at.human, later, { prompt: 'login' })
  const { sid } = decodeJwt(at.idToken)
  t.is(receiver.at(at.path).length, 0)
  await endSession({ browser: at.browser, idToken: own.idToken })
  const [first] = await receiver.until(at.path, 1)
  const [second] = await receiver.until(later.path, 1)
  t.is((await verified(t, first!, at))['sid'], sid)
  t.is((await verified(t, second!, later))['sid'], own.sid)
})

test('an application that fails gets another token, and holds no other up', async (t) => {
  const at = await scene()
  const failing = await application(at.workspace, {}, (nth) => (nth === 1 ? 503 : { status: 204 }))
  await joined(at.browser, at.human, failing)
  await endSession(at)
  await receiver.until(at.path, 1)
  const [first, second] = await receiver.until(failing.path, 2)
  const tokens = [await verified(t, first!, failing), await verified(t, second!, failing)]
  t.not(tokens[0]!.jti, tokens[1]!.jti)
})

const undelivered = async ({ workspace }: Pick<Scene, 'workspace'>) => {
  const path = '/api/v1/audit-events?type=session.logout.undelivered'
  const { rows } = await api.list(path, workspace.token)
  return rows
}

for (const [what, answer, attempts, error] of [
  ['400', { status: 400 }, 1, 'refused'],
  [
    'a redirect',
    { status: 302, headers: { location: `${receiver.origin}/elsewhere` } },
    3,
    'redirect',
  ],
  ['500', { status: 500 }, 3, 'unexpected_status'],
] as const)
  test(`an application that answers ${what} gets ${attempts} logout tokens, and the event says so`, async (t) => {
    const at = await scene()
    const failing = await application(at.workspace, {}, () => answer)
    await joined(at.browser, at.human, failing)
    await endSession(at)
    await receiver.until(failing.path, attempts)
    await until('the event', async () => (await undelivered(at)).length > 0)
    const [event] = await undelivered(at)
    t.like(event!['data'], {
      client_id: failing.party.clientId,
      attempts,
      status: answer.status,
      error,
    })
    t.is(receiver.at(failing.path).length, attempts)
    t.is(receiver.at('/elsewhere').length, 0)
  })

test('an application that is disabled, or has no URI any more, gets none', async (t) => {
  const at = await scene()
  const [disabled, without] = [await application(at.workspace), await application(at.workspace)]
  for (const one of [disabled, without]) await joined(at.browser, at.human, one)
  await sql(
    running,
  )`update applications set status = 'disabled' where id = ${disabled.party.clientId}`
  await sql(running)`
    update applications set backchannel_logout_uri = null where id = ${without.party.clientId}`
  await endSession(at)
  await receiver.until(at.path, 1)
  await until('all are settled', async () => {
    const { length } = await sql(running)`
      select from session_applications where tenant_id = ${at.workspace.tenantId}`
    return length === 0
  })
  for (const { path } of [disabled, without]) t.is(receiver.at(path).length, 0)
})

test('a hundred applications of a session get logout tokens', async (t) => {
  const at = await scene()
  const { tenantId } = at.workspace
  const { sid, sub } = decodeJwt(at.idToken)
  const told = await Promise.all(Array.from({ length: 100 }, () => application(at.workspace)))
  for (const { party } of told)
    await sql(running)`
      insert into session_applications (tenant_id, session_id, application_id, subject, due_at)
      values (${tenantId}, ${sid as string}, ${party.clientId}, ${sub!}, now() + interval '1 hour')`
  await endSession(at)
  for (const { path } of told) t.is((await receiver.until(path, 1)).length, 1)
})

test('receivers that never answer leave the places of other tenants', async (t) => {
  const silent = async () => {
    const workspace = await api.workspace()
    const told = await Promise.all(
      Array.from({ length: 4 }, () => application(workspace, {}, () => () => undefined)),
    )
    for (const { party } of told)
      await sql(running)`
        insert into session_applications (tenant_id, session_id, application_id, subject, ended_at, due_at)
        select ${workspace.tenantId}, gen_random_uuid(), ${party.clientId}, 'someone', now(), now()
        from generate_series(1, 100)`
    return told
  }
  const others = (await Promise.all(Array.from({ length: 10 }, silent))).flat()
  const at = await scene()
  const asked = () => others.reduce((sum, { path }) => sum + receiver.at(path).length, 0)
  await sql(running)`notify svc_logouts`
  await until('the silent receivers are asked', () => asked() >= 16)
  await endSession(at)
  await receiver.until(at.path, 1)
  // One process has 128 places. More are asked only when some of these have ended.
  t.true(asked() <= 128, String(asked()))
  await sql(running)`delete from session_applications where subject = 'someone'`
})

test('the URI is an HTTPS URL without fragment and user', async (t) => {
  const { token } = await api.workspace()
  const uri = 'https://app.example/logout?tenant=a'
  const of = (backchannel_logout_uri: string) =>
    api.post('/api/v1/applications', token, {
      name: 'Lighthouse',
      redirect_uris: ['https://app.example/callback'],
      backchannel_logout_uri,
      backchannel_logout_session_required: true,
    })
  const made = await of(uri).gives(201)
  t.like(made.body, { backchannel_logout_uri: uri, backchannel_logout_session_required: true })
  const path = `/api/v1/applications/${String(made.body['id'])}`
  t.is((await api.get(path, token)).body['backchannel_logout_uri'], uri)
  for (const bad of [
    'http://app.example/logout',
    'http://localhost/logout',
    `${uri}#part`,
    'https://me@app.example/logout',
    'com.example.app:/logout',
    'logout',
  ]) {
    const { body } = await of(bad).gives(400)
    t.like((body['errors'] as object[])[0], { pointer: '#/backchannel_logout_uri' }, bad)
  }
  // A replacement without the members takes them away.
  const replaced = await api
    .call('PUT', path, {
      token,
      json: { name: 'Lighthouse', redirect_uris: ['https://app.example/callback'] },
    })
    .gives(200)
  t.is(replaced.body['backchannel_logout_uri'], undefined)
  t.is(replaced.body['backchannel_logout_session_required'], false)
})

test('a client that registers itself may have it, and discovery and capabilities say so', async (t) => {
  const uri = `${receiver.origin}/registered`
  const { token } = await api.workspace()
  const { body: initial } = await api
    .post('/api/v1/oauth/registration-tokens', token, {})
    .gives(201)
  const registered = await oidc.dynamicClientRegistration(
    new URL(running.baseUrl),
    {
      redirect_uris: ['https://app.example/callback'],
      backchannel_logout_uri: uri,
      backchannel_logout_session_required: true,
      id_token_signed_response_alg: 'ES256',
    },
    undefined,
    { execute: [oidc.allowInsecureRequests], initialAccessToken: String(initial['token']) },
  )
  t.is(registered.clientMetadata()['backchannel_logout_uri'], uri)
  t.true(registered.clientMetadata()['backchannel_logout_session_required'])
  const metadata = registered.serverMetadata()
  t.true(metadata['backchannel_logout_supported'])
  t.true(metadata['backchannel_logout_session_supported'])
  const { body } = await api.get('/api/v1/capabilities')
  t.true((body['capabilities'] as string[]).includes('oauth.backchannel_logout'))
})
