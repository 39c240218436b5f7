/**
 * Shared Signals: streams of security events as the conformance suite of the OpenID Foundation asks for them
 * (docs/reference/conformance.md). Receivers verify with jose.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { createRemoteJWKSet, decodeJwt, type JWTPayload, jwtVerify } from 'jose'
import { delegate, fixtureOf, ownToken, present } from '../../support/agents/delegation.js'
import type { Json, Workspace } from '../../support/api.js'
import { relyingParty } from '../../support/oauth/relying-party.js'
import { sharedApi } from '../../support/service.js'
import { until } from '../../support/service/watch.js'
import { type Answer, type Received, startReceiver } from '../../support/webhooks/receiver.js'

const CAEP = 'https://schemas.openid.net/secevent/caep/event-type/'
const RISC = 'https://schemas.openid.net/secevent/risc/event-type/'
const VERIFICATION = 'https://schemas.openid.net/secevent/ssf/event-type/verification'
const POLL = 'urn:ietf:rfc:8936'
const PUSH = 'urn:ietf:rfc:8935'

const { api, running } = await sharedApi('hosts')
const { baseUrl, issuer } = running
const keys = createRemoteJWKSet(new URL('/ssf/jwks.json', baseUrl))
/** Answers by path. Others are 202. */
const answers = new Map<string, (nth: number) => Answer>()
const pushed = await startReceiver(({ path }) => {
  const answer = answers.get(path)
  return answer === undefined ? 202 : answer(pushed.at(path).length)
})
test.after.always(() => api.end())

type Receiver = { readonly id: string; readonly token: string }

/** An application with a token for streams. */
async function receiver(
  workspace: Workspace,
  scopes: readonly string[] = ['ssf.manage', 'ssf.read'],
): Promise<Receiver> {
  const draft = {
    name: 'Receiver',
    grant_types: ['client_credentials'],
    response_types: [],
    scopes,
  }
  const { body } = await api.post('/api/v1/applications', workspace.token, draft).gives(201)
  const id = String(body['client_id'])
  const basic = Buffer.from(`${id}:${String(body['client_secret'])}`).toString('base64')
  const fields = { grant_type: 'client_credentials', scope: scopes.join(' ') }
  const headers = { authorization: `Basic ${basic}` }
  const answer = await api.form('/oauth/token', fields, headers).gives(200)
  return { id, token: String(answer.body['access_token']) }
}

/** A receiver with a stream that it polls. */
async function streaming(workspace: Workspace, draft: Json = {}) {
  const own = await receiver(workspace)
  const { body } = await api.post('/ssf/streams', own.token, draft).gives(201)
  const streamId = String(body['stream_id'])
  const at = `/ssf/poll/${streamId}`
  const poll = async (more: Json = {}) => {
    const answer = await api.post(at, own.token, { returnImmediately: true, ...more }).gives(200)
    return answer.body as { sets: Record<string, string>; moreAvailable?: boolean }
  }
  /** Waits for events, and acknowledges all that come. */
  const gather = async (isDone: (found: readonly JWTPayload[]) => boolean) => {
    const found: JWTPayload[] = []
    let ack: string[] = []
    for (let turn = 0; turn < 30 && !isDone(found); turn += 1) {
      const { sets } = await poll({ ack, returnImmediately: false })
      ack = Object.keys(sets)
      found.push(...Object.values(sets).map((token) => decodeJwt(token)))
    }
    await poll({ ack, maxEvents: 0 })
    return found
  }
  /** Waits for an event of each of these types. */
  const received = async (...types: readonly string[]): Promise<JWTPayload[]> => {
    const one = (found: readonly JWTPayload[], type: string) =>
      found.find((claims) => typeOf(claims) === type)
    const found = await gather((so) => types.every((type) => one(so, type) !== undefined))
    return types.map((type) => one(found, type)!)
  }
  return { ...own, streamId, body, poll, gather, received }
}

const eventsOf = (claims: JWTPayload) => claims['events'] as Record<string, Json>
const typeOf = (claims: JWTPayload) => Object.keys(eventsOf(claims))[0]!
const eventOf = (claims: JWTPayload) => eventsOf(claims)[typeOf(claims)]!

/** Checks what CAEP interoperability asks of every event. */
async function verified(t: ExecutionContext, token: string, audience: string) {
  const { payload, protectedHeader } = await jwtVerify(token, keys, {
    issuer,
    audience,
    typ: 'secevent+jwt',
    algorithms: ['RS256'],
    requiredClaims: ['iat', 'jti', 'txn', 'sub_id', 'events'],
  })
  t.truthy(protectedHeader.kid)
  t.is(payload.sub, undefined)
  t.is(payload.exp, undefined)
  t.is(Object.keys(eventsOf(payload)).length, 1)
  t.true(payload.iat! <= Math.ceil(Date.now() / 1000))
  return payload
}

/** A user of the workspace, signed in to an application. */
async function signedIn(workspace: Workspace) {
  const human = fixtureOf(workspace)
  const party = await relyingParty(running, workspace)
  const { browser, tokens } = await party.signedIn(human)
  const { sub, sid } = decodeJwt(tokens.id_token!)
  const query = `email=${encodeURIComponent(human.email)}`
  const { rows } = await api.list(`/api/v1/tenant-users?${query}`, workspace.token)
  const user = `/api/v1/tenant-users/${String(rows[0]!['id'])}`
  return { human, browser, sub: sub!, sid: String(sid), user }
}

test('transmitter metadata', async (t) => {
  const { body } = await api.get('/.well-known/ssf-configuration').gives(200)
  t.is(body['spec_version'], '1_0')
  t.is(body['issuer'], issuer)
  for (const name of ['jwks_uri', 'configuration_endpoint', 'status_endpoint'])
    t.true(String(body[name]).startsWith(`${issuer}/ssf/`), name)
  t.true((body['delivery_methods_supported'] as string[]).includes(POLL))
  t.is(body['default_subjects'], 'ALL')
  for (const [name, value] of Object.entries(body))
    if (Array.isArray(value)) t.true(value.length > 0, name)
  const { body: set } = await api.get('/ssf/jwks.json').gives(200)
  const own = set['keys'] as Json[]
  t.true(own.length > 0)
  for (const { alg, kty, n, use } of own) {
    t.deepEqual([alg, kty, use], ['RS256', 'RSA', 'sig'])
    t.true(Buffer.from(String(n), 'base64url').length >= 256)
  }
  const others = (await api.get('/.well-known/jwks.json').gives(200)).body['keys'] as Json[]
  t.false(others.some(({ kid }) => own.some((one) => one['kid'] === kid)))
})

test('a stream is created, read, changed, replaced and deleted', async (t) => {
  const workspace = await api.workspace()
  const { id, token } = await receiver(workspace)
  t.deepEqual((await api.get('/ssf/streams', token).gives(200)).body as unknown, [])
  const requested = [`${CAEP}session-revoked`, 'https://example.com/unknown']
  const draft = { delivery: { method: POLL }, events_requested: requested, description: 'First' }
  const { body } = await api.post('/ssf/streams', token, draft).gives(201)
  const streamId = String(body['stream_id'])
  t.is(body['iss'], issuer)
  t.is(body['aud'], id)
  t.deepEqual(body['events_requested'], requested)
  t.deepEqual(body['events_delivered'], [`${CAEP}session-revoked`])
  t.deepEqual(body['delivery'], { method: POLL, endpoint_url: `${issuer}/ssf/poll/${streamId}` })
  const at = `/ssf/streams?stream_id=${streamId}`
  t.deepEqual((await api.get(at, token).gives(200)).body, body)
  t.deepEqual((await api.get('/ssf/streams', token).gives(200)).body as unknown, [body])

  const changed = await api
    .patch('/ssf/streams', token, { ...body, description: 'Second' })
    .gives(200)
  t.deepEqual(changed.body, { ...body, description: 'Second' })
  const replaced = await api.put('/ssf/streams', token, { stream_id: streamId }).gives(200)
  t.is(replaced.body['description'], undefined)
  t.is(replaced.body['events_requested'], undefined)
  t.deepEqual(replaced.body['events_delivered'], body['events_supported'])

  const status = `/ssf/status?stream_id=${streamId}`
  t.deepEqual((await api.get(status, token).gives(200)).body, {
    stream_id: streamId,
    status: 'enabled',
  })
  const paused = { stream_id: streamId, status: 'paused', reason: 'Maintenance' }
  t.deepEqual((await api.post('/ssf/status', token, paused).gives(200)).body, paused)
  t.deepEqual((await api.get(status, token).gives(200)).body, paused)

  await api.delete(at, token).gives(204)
  await api.delete(at, token).gives(404)
  await api.get(at, token).gives(404)
  await api.get(status, token).gives(404)
})

test('requests about no stream, with no token or an invalid body are refused', async (t) => {
  const workspace = await api.workspace()
  const mine = await streaming(workspace)
  const reader = await receiver(workspace, ['ssf.read'])
  const poller = await receiver(workspace, ['ssf.manage.poll'])
  const person = await present(api, fixtureOf(workspace))
  const human = await ownToken(api, workspace, person)
  const other = await streaming(workspace)
  const foreign = await streaming(await api.workspace())
  const subject = { format: 'email', email: 'ada@example.com' }
  const calls = (id: string): readonly (readonly [string, string, Json?])[] => [
    ['GET', `/ssf/streams?stream_id=${id}`],
    ['PATCH', '/ssf/streams', { stream_id: id }],
    ['PUT', '/ssf/streams', { stream_id: id }],
    ['DELETE', `/ssf/streams?stream_id=${id}`],
    ['GET', `/ssf/status?stream_id=${id}`],
    ['POST', '/ssf/status', { stream_id: id, status: 'paused' }],
    ['POST', '/ssf/subjects:add', { stream_id: id, subject }],
    ['POST', '/ssf/subjects:remove', { stream_id: id, subject }],
    ['POST', '/ssf/verify', { stream_id: id }],
    ['POST', `/ssf/poll/${id}`, { returnImmediately: true }],
  ]
  for (const id of [randomUUID(), 'x', other.streamId, foreign.streamId])
    for (const [method, path, json] of calls(id)) {
      const { status } = await api.call(method, path, { token: mine.token, json })
      t.is(status, 404, `${method} ${path}`)
    }
  for (const [method, path, json] of [...calls(mine.streamId), ['POST', '/ssf/streams'] as const]) {
    const at = `${method} ${path}`
    t.is((await api.call(method, path, { json })).status, 401, at)
    t.is((await api.call(method, path, { token: 'x.y.z', json })).status, 401, at)
    t.is((await api.call(method, path, { token: human, json })).status, 403, at)
    const isRead = method === 'GET'
    if (!isRead) t.is((await api.call(method, path, { token: reader.token, json })).status, 403, at)
    if (!path.startsWith('/ssf/poll/'))
      t.is((await api.call(method, path, { token: poller.token, json })).status, 403, at)
  }
  const invalid: readonly (readonly [string, string, unknown])[] = [
    ['POST', '/ssf/streams', []],
    ['POST', '/ssf/streams', { events_requested: 'all' }],
    ['POST', '/ssf/streams', { delivery: { method: 'urn:example:pigeon' } }],
    ['POST', '/ssf/streams', { delivery: { method: POLL, endpoint_url: 'https://a.example/' } }],
    ['PATCH', '/ssf/streams', {}],
    ['PATCH', '/ssf/streams', { stream_id: mine.streamId, iss: 'https://other.example' }],
    ['PUT', '/ssf/streams', { stream_id: mine.streamId, aud: 'other' }],
    ['POST', '/ssf/status', { stream_id: mine.streamId, status: 'asleep' }],
    ['POST', '/ssf/subjects:add', { stream_id: mine.streamId, subject: { format: 'moon' } }],
    ['POST', '/ssf/subjects:remove', { stream_id: mine.streamId, subject: { format: 'complex' } }],
    ['POST', '/ssf/verify', {}],
    ['POST', `/ssf/poll/${mine.streamId}`, { maxEvents: -1 }],
    ['DELETE', '/ssf/streams', undefined],
  ]
  for (const [method, path, json] of invalid) {
    const { status } = await api.call(method, path, { token: mine.token, json })
    t.is(status, 400, `${method} ${path} ${JSON.stringify(json)}`)
  }
  for (let made = 1; made < 10; made += 1) await api.post('/ssf/streams', mine.token, {}).gives(201)
  await api.post('/ssf/streams', mine.token, {}).gives(409, 'conflict')
})

test('verification: poll only, acknowledge only, and both in one request', async (t) => {
  const stream = await streaming(await api.workspace())
  const body = { stream_id: stream.streamId, state: 'a state' }
  await api.post('/ssf/verify', stream.token, body).gives(204)
  const early = await api.post('/ssf/verify', stream.token, body).gives(429)
  t.truthy(early.headers['retry-after'])

  const first = await stream.poll()
  const [jti, token] = Object.entries(first.sets)[0]!
  const claims = await verified(t, token, stream.id)
  t.is(claims.jti, jti)
  t.deepEqual(claims['sub_id'], { format: 'opaque', id: stream.streamId })
  t.deepEqual(claims['events'], { [VERIFICATION]: { state: 'a state' } })
  t.deepEqual(Object.keys((await stream.poll()).sets), [jti], 'not acknowledged')
  t.deepEqual((await stream.poll({ maxEvents: 0, ack: [jti] })).sets, {})
  t.deepEqual(await stream.poll(), { sets: {} })

  const second = await streaming(await api.workspace())
  await api.post('/ssf/verify', second.token, { stream_id: second.streamId }).gives(204)
  const given = Object.entries((await second.poll()).sets)
  t.deepEqual(eventOf(decodeJwt(given[0]![1])), {})
  t.deepEqual(await second.poll({ ack: [given[0]![0], 'unknown'] }), { sets: {} })
})

test('a disabled stream gets no verification', async (t) => {
  const stream = await streaming(await api.workspace())
  const body = { stream_id: stream.streamId }
  await api.post('/ssf/status', stream.token, { ...body, status: 'disabled' }).gives(200)
  await api.post('/ssf/verify', stream.token, body).gives(204)
  t.deepEqual(await stream.poll(), { sets: {} })
})

test('an event that the receiver refuses is not given again', async (t) => {
  const stream = await streaming(await api.workspace())
  await api.post('/ssf/verify', stream.token, { stream_id: stream.streamId }).gives(204)
  const [jti] = Object.keys((await stream.poll()).sets)
  const setErrs = { [jti!]: { err: 'invalid_key', description: 'unknown kid' } }
  t.deepEqual(await stream.poll({ setErrs }), { sets: {} })
})

test('session-revoked and session-established name user, session and tenant', async (t) => {
  const workspace = await api.workspace()
  const stream = await streaming(workspace)
  const { browser, sub, sid } = await signedIn(workspace)
  await browser.submit(await browser.get('/auth/account'), {}, '/auth/logout')
  const [begun, ended] = await stream.received(
    `${CAEP}session-established`,
    `${CAEP}session-revoked`,
  )
  const subject = {
    format: 'complex',
    user: { format: 'iss_sub', iss: issuer, sub },
    session: { format: 'opaque', id: sid },
    tenant: { format: 'opaque', id: workspace.tenantId },
  }
  t.deepEqual(begun!['sub_id'], subject)
  t.deepEqual(ended!['sub_id'], subject)
  const { event_timestamp: at, initiating_entity: by, reason_admin: why } = eventOf(ended!)
  t.true(Math.abs(Number(at) - Date.now() / 1000) < 60)
  t.is(by, 'user')
  t.truthy((why as Json)['en'])
})

test('a suspended user: account-disabled and session-revoked with one cause', async (t) => {
  const workspace = await api.workspace()
  const stream = await streaming(workspace)
  const foreign = await streaming(await api.workspace())
  const { sub, user } = await signedIn(workspace)
  await api.post(`${user}/suspend`, workspace.token).gives(200)
  const [disabled, revoked] = await stream.received(
    `${RISC}account-disabled`,
    `${CAEP}session-revoked`,
  )
  const who = { format: 'iss_sub', iss: issuer, sub }
  t.deepEqual(disabled!['sub_id'], who)
  t.deepEqual((revoked!['sub_id'] as Json)['user'], who)
  t.is(revoked!['txn'], disabled!['txn'])
  t.is(eventOf(revoked!)['initiating_entity'], 'admin')
  await api.post(`${user}/reactivate`, workspace.token).gives(200)
  const [enabled] = await stream.received(`${RISC}account-enabled`)
  t.deepEqual(enabled!['sub_id'], who)
  t.deepEqual(await foreign.poll(), { sets: {} }, 'another tenant')
})

test('credential-change and an ended delegation to an agent', async (t) => {
  const workspace = await api.workspace()
  const stream = await streaming(workspace)
  const person = await present(api, fixtureOf(workspace))
  const lent = await delegate(api, workspace.token, person)
  const token = await ownToken(api, workspace, person)
  await api.post(`/api/v1/delegations/${lent.delegationId}/revoke`, token).gives(200)
  const delegationOf = (claims: JWTPayload) => (claims['sub_id'] as Json)['delegation']
  const found = await stream.gather((so) => so.some((one) => delegationOf(one) !== undefined))
  const changed = found.find((one) => typeOf(one) === `${CAEP}credential-change`)!
  const { credential_type: type, change_type: change } = eventOf(changed)
  t.deepEqual([type, change], ['app', 'create'])
  const ended = found.find((one) => delegationOf(one) !== undefined)!
  t.is(typeOf(ended), `${CAEP}session-revoked`)
  const { delegation, agent, user } = ended['sub_id'] as Record<string, Json>
  t.deepEqual(delegation, { format: 'opaque', id: lent.delegationId })
  t.deepEqual(agent, { format: 'opaque', id: workspace.agentId, subject_type: 'agent' })
  t.is(user!['format'], 'iss_sub')
})

test('an agent is suspended and activated', async (t) => {
  const workspace = await api.workspace()
  const stream = await streaming(workspace)
  const { agentId } = await api.register(workspace.tenantId)
  const at = `/api/v1/agents/${agentId}`
  await api.post(`${at}/suspend`, workspace.token).gives(200)
  await api.post(`${at}/activate`, workspace.token).gives(200)
  const [disabled, revoked, enabled] = await stream.received(
    `${RISC}account-disabled`,
    `${CAEP}session-revoked`,
    `${RISC}account-enabled`,
  )
  const agent = { format: 'opaque', id: agentId, subject_type: 'agent' }
  t.deepEqual([disabled!['sub_id'], enabled!['sub_id']], [agent, agent])
  const tenant = { format: 'opaque', id: workspace.tenantId }
  t.deepEqual(revoked!['sub_id'], { format: 'complex', tenant, agent })
})

test('the roles of a user change', async (t) => {
  const workspace = await api.workspace()
  const stream = await streaming(workspace)
  const { user } = await signedIn(workspace)
  await api.patch(user, workspace.token, { roles: ['editor'] }).gives(200)
  const [changed] = await stream.received(`${CAEP}token-claims-change`)
  t.deepEqual(eventOf(changed!)['claims'], { roles: ['editor'] })
})

test('an address of a subject has the one type, whatever a receiver accepts', async (t) => {
  const stream = await streaming(await api.workspace())
  for (const [email, status] of [
    ['a@.example.com', 400],
    ['a@example..com', 400],
    ['no address', 400],
    ['a@b\u00fccher.example', 200],
    ['a&b@example.com', 200],
  ] as const) {
    const subject = { format: 'email', email }
    const answer = await fetch(`${running.baseUrl}/ssf/subjects:add`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${stream.token}`,
        'content-type': 'application/json',
        accept: 'text/html',
      },
      body: JSON.stringify({ stream_id: stream.streamId, subject }),
    })
    t.is(answer.status, status, email)
  }
  const listed = await fetch(`${running.baseUrl}/ssf/streams?stream_id=${stream.streamId}`, {
    headers: { authorization: `Bearer ${stream.token}`, accept: 'application/secevent+jwt' },
  })
  t.is(listed.status, 200)
})

test('a subject that was taken out of a stream is put back', async (t) => {
  const workspace = await api.workspace()
  const stream = await streaming(workspace)
  const { sub, user, human } = await signedIn(workspace)
  const subjects = [
    { format: 'iss_sub', iss: issuer, sub },
    { format: 'email', email: human.email },
    { format: 'complex', user: { format: 'iss_sub', iss: issuer, sub } },
  ]
  const elsewhere = { format: 'iss_sub', iss: 'https://other.example', sub }
  const ask = (did: string, subject: Json) =>
    api.post(`/ssf/subjects:${did}`, stream.token, { stream_id: stream.streamId, subject })
  await stream.received(`${CAEP}session-established`)
  await ask('remove', elsewhere).gives(204)
  for (const subject of subjects) {
    await ask('remove', subject).gives(204)
    await api.post(`${user}/suspend`, workspace.token).gives(200)
    await api.post(`${user}/reactivate`, workspace.token).gives(200)
    // Later than the worker looks at the audit log.
    await sleep(3_000)
    t.deepEqual(await stream.poll(), { sets: {} })
    t.is((await ask('add', subject).gives(200)).body['text'], '')
  }
  await api.post(`${user}/suspend`, workspace.token).gives(200)
  const [disabled] = await stream.received(`${RISC}account-disabled`)
  t.deepEqual(disabled!['sub_id'], subjects[0])
})

test('a paused stream keeps its events, a disabled one drops them', async (t) => {
  const workspace = await api.workspace()
  const stream = await streaming(workspace)
  const set = (status: string) =>
    api.post('/ssf/status', stream.token, { stream_id: stream.streamId, status }).gives(200)
  await set('paused')
  const { user } = await signedIn(workspace)
  await api.post(`${user}/suspend`, workspace.token).gives(200)
  t.deepEqual(await stream.poll(), { sets: {} })
  await set('enabled')
  await stream.received(`${RISC}account-disabled`)
  await set('disabled')
  await api.post(`${user}/reactivate`, workspace.token).gives(200)
  await set('enabled')
  await api.post(`${user}/suspend`, workspace.token).gives(200)
  const [disabled] = await stream.received(`${RISC}account-disabled`)
  t.truthy(disabled)
  t.deepEqual(await stream.poll(), { sets: {} }, 'nothing from before')
})

test('an agent polls for the events of its tenant', async (t) => {
  const workspace = await api.workspace()
  const { body } = await api.post('/ssf/streams', workspace.token, {}).gives(201)
  t.is(body['aud'], workspace.agentId)
  const streamId = String(body['stream_id'])
  await api.post('/ssf/verify', workspace.token, { stream_id: streamId }).gives(204)
  const polled = await api.post(`/ssf/poll/${streamId}`, workspace.token, {}).gives(200)
  const [token] = Object.values(polled.body['sets'] as Record<string, string>)
  await verified(t, token!, workspace.agentId)
})

test('a stream of an agent without ssf.manage stops, and goes on with it', async (t) => {
  const workspace = await api.workspace()
  const { agentId, key } = await api.register(workspace.tenantId)
  /** A token with other scopes. The former one has ended. */
  const tokenWith = async (scope: string) => {
    await api.patch(`/api/v1/agents/${agentId}`, workspace.token, { scopes: [scope] }).gives(200)
    const at = { agent_id: agentId, tenant_id: workspace.tenantId }
    return String((await api.login(key, at).gives(200)).body['access_token'])
  }
  const token = await tokenWith('ssf.manage')
  const { body } = await api.post('/ssf/streams', token, {}).gives(201)
  const streamId = String(body['stream_id'])
  const poll = async (by: string) => {
    const request = { returnImmediately: true }
    const answer = await api.post(`/ssf/poll/${streamId}`, by, request).gives(200)
    return Object.keys(answer.body['sets'] as Json).length
  }
  await api.post('/ssf/verify', token, { stream_id: streamId }).gives(204)
  t.is(await poll(token), 1)
  const poller = await tokenWith('ssf.manage.poll')
  t.is(await poll(poller), 0)
  const watching = await streaming(workspace)
  const { user } = await signedIn(workspace)
  await api.post(`${user}/suspend`, workspace.token).gives(200)
  await watching.received(`${RISC}account-disabled`)
  t.is(await poll(poller), 0)
  const again = await tokenWith('ssf.manage')
  await until('the events from before', async () => (await poll(again)) > 1)
})

test('administrators list the streams of all receivers', async (t) => {
  const workspace = await api.workspace()
  const path = '/api/v1/signal-streams'
  const first = await streaming(workspace, { description: 'Gateway' })
  await streaming(await api.workspace())
  const own = await api.post('/ssf/streams', workspace.token, {}).gives(201)
  const disabled = { stream_id: first.streamId, status: 'disabled', reason: 'Moved' }
  await api.post('/ssf/status', first.token, disabled).gives(200)
  const { rows } = await api.list(path, workspace.token)
  t.deepEqual(
    rows.map(({ stream_id: id }) => id),
    [own.body['stream_id'], first.streamId],
  )
  t.like(rows[0], { aud: workspace.agentId, receiver_type: 'agent', status: 'enabled' })
  t.like(rows[1], { ...first.body, ...disabled, receiver_type: 'application' })
  t.is((await api.list(`${path}?limit=1`, workspace.token)).rows.length, 1)
  await api.get(path, first.token).gives(403)
})

async function pushing(workspace: Workspace, answer?: (nth: number) => Answer, header?: string) {
  const own = await receiver(workspace)
  const path = `/${randomUUID()}?of=svc`
  if (answer !== undefined) answers.set(path, answer)
  const delivery = {
    method: PUSH,
    endpoint_url: pushed.origin + path,
    ...(header === undefined ? {} : { authorization_header: header }),
  }
  const { body } = await api.post('/ssf/streams', own.token, { delivery }).gives(201)
  const { authorization_header: _secret, ...shown } = delivery
  return { ...own, path, delivery, shown, body, streamId: String(body['stream_id']) }
}

const verify = ({ token, streamId }: { token: string; streamId: string }, state: string) =>
  api.post('/ssf/verify', token, { stream_id: streamId, state }).gives(204)

test('verification by push, with and without an authorization header', async (t) => {
  for (const header of [undefined, 'Bearer a secret of the receiver']) {
    const stream = await pushing(await api.workspace(), undefined, header)
    t.deepEqual(stream.body['delivery'], stream.shown, 'the header is not shown')
    await verify(stream, 'a state')
    const [{ headers, body }] = (await pushed.until(stream.path, 1)) as [Received]
    t.is(headers['content-type'], 'application/secevent+jwt')
    t.is(headers.accept, 'application/json')
    t.is(headers.authorization, header)
    t.is(headers.cookie, undefined)
    const claims = await verified(t, body.toString(), stream.id)
    t.deepEqual(claims['events'], { [VERIFICATION]: { state: 'a state' } })
  }
})

test('a push is repeated in order until the receiver has it, and not after a refusal', async (t) => {
  const workspace = await api.workspace()
  const busy = await pushing(workspace, (nth) => (nth <= 2 ? 503 : 202))
  const refusing = await pushing(workspace, (nth) =>
    nth === 1 ? { status: 400, body: '{"err":"invalid_key"}' } : 202,
  )
  const { user } = await signedIn(workspace)
  await api.post(`${user}/suspend`, workspace.token).gives(200)
  const idsOf = (received: readonly Received[]) =>
    received.map(({ body }) => decodeJwt(body.toString()).jti)
  const [first, second, third, fourth] = idsOf(await pushed.until(busy.path, 4))
  t.deepEqual([second, third], [first, first])
  t.not(fourth, first)
  const refused = idsOf(await pushed.until(refusing.path, 2))
  t.not(refused[1], refused[0])
  await until('the audit record', async () => {
    const { rows } = await api.list(
      '/api/v1/audit-events?type=signal_stream.undelivered',
      workspace.token,
    )
    return rows.length === 1
  })
})

test('a stream changes between push and poll, and its events wait', async (t) => {
  const workspace = await api.workspace()
  // Never answers.
  const stream = await pushing(workspace, () => () => undefined)
  await verify(stream, 'one')
  await pushed.until(stream.path, 1)
  const change = { stream_id: stream.streamId, delivery: { method: POLL } }
  const { body } = await api.patch('/ssf/streams', stream.token, change).gives(200)
  t.is((body['delivery'] as Json)['method'], POLL)
  const at = `/ssf/poll/${stream.streamId}`
  const polled = await api.post(at, stream.token, { returnImmediately: true }).gives(200)
  t.is(Object.keys(polled.body['sets'] as Json).length, 1)
  answers.delete(stream.path)
  const back = { stream_id: stream.streamId, delivery: stream.delivery }
  await api.put('/ssf/streams', stream.token, back).gives(200)
  const last = (await pushed.until(stream.path, 2)).at(-1)!
  t.deepEqual(eventOf(decodeJwt(last.body.toString())), { state: 'one' })
})

test('an address that cannot be called, and an invalid header, are refused', async (t) => {
  const { token } = await receiver(await api.workspace())
  for (const delivery of [
    { method: PUSH },
    { method: PUSH, endpoint_url: 'http://receiver.example/' },
    { method: PUSH, endpoint_url: 'https://receiver.example/#part' },
    { method: PUSH, endpoint_url: 'https://user@receiver.example/' },
    { method: PUSH, endpoint_url: 'https://receiver.example/', authorization_header: 'a\r\nb: c' },
  ]) {
    const { status } = await api.post('/ssf/streams', token, { delivery })
    t.is(status, 400, JSON.stringify(delivery))
  }
})
