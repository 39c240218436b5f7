/** Delegation by device flow over HTTP. */
import test from 'ava'
import { apiOf, claimsOf } from '../../support/api.js'
import { openBrowser } from '../../support/pages/browser.js'
import {
  ask,
  DEVICE,
  decide,
  fixtureOf,
  delegate,
  newFixture,
  poll,
  present,
} from '../../support/agents/delegation.js'
import { signIn } from '../../support/identity/person.js'
import { ownDomain } from '../../support/identity/squatting.js'
import { sharedService } from '../../support/service.js'

const api = apiOf(await sharedService('plain'))
const workspace = await api.workspace()
const person = await present(api, fixtureOf(workspace))

test('the page shows the lifetime and the last approval of this agent', async (t) => {
  const workspace = await api.workspace()
  const person = await present(api, fixtureOf(workspace))
  const open = async () => {
    const asked = await ask(api, workspace.token, { scope: 'vault:list' })
    return person.browser.get(String(asked.body['verification_uri_complete']))
  }
  const first = await open()
  t.true(first.html.includes('data-lifetime-secs="604800"'))
  t.regex(first.html, /7 days, or until you revoke it/)
  t.regex(first.html, /data-last-delegated>Never/)
  await person.browser.submit(first, {}, /approve$/)
  t.regex(
    (await open()).html,
    /data-last-delegated><time datetime="20\d\d-[^"]+" title="\w+ \d+, 20/,
  )
})

test('the page shows a domain that the organization of the agent has proved to own', async (t) => {
  const workspace = await api.workspace()
  const person = await present(api, fixtureOf(workspace))
  const open = async (token = workspace.token) => {
    const asked = await ask(api, token, { scope: 'vault:list' })
    return (await person.browser.get(String(asked.body['verification_uri_complete']))).html
  }
  const before = await open()
  t.true(before.includes('data-agent-unverified'))
  t.false(before.includes('data-agent-domain'))
  const domain = `${workspace.agentId.slice(0, 8)}.example`
  await ownDomain(api, workspace, `owner@${domain}`)
  const after = await open()
  t.true(after.includes(`data-agent-domain="${domain}"`))
  t.false(after.includes('data-agent-unverified'))

  // This agent registered in the tenant, and no owner made it a member of the organization.
  const stranger = await api.register(workspace.tenantId)
  const { body } = await api.login(stranger.key, {
    agent_id: stranger.agentId,
    tenant_id: workspace.tenantId,
  })
  t.true((await open(String(body['access_token']))).includes('data-agent-unverified'))
})

test('an agent requests, a person approves, and the agent gets a delegated token once', async (t) => {
  const { token, agentId, tenantId } = workspace
  const asked = await ask(api, token, { scope: 'vault:list openid users:manage' })
  const { userCode } = asked
  t.regex(asked.deviceCode, /^[A-Za-z0-9_-]{43}$/)
  t.regex(userCode, /^[BCDFGHJKLMNPQRSTVWXZ]{8}$/)
  t.like(asked.body, {
    user_code_display: `${userCode.slice(0, 4)}-${userCode.slice(4)}`,
    verification_uri: `/device/delegation/${userCode}`,
    verification_uri_complete: `/device/delegation/${userCode}?complete=true`,
    expires_in: 900,
    interval: 5,
  })
  const waiting = await poll(api, token, asked)
  t.like(waiting, { status: 400, body: { error: 'authorization_pending' } })
  t.is(waiting.headers['content-type'], 'application/problem+json')
  t.is(waiting.headers['retry-interval'], '5')

  const page = await person.browser.get(String(asked.body['verification_uri_complete'])).gives(200)
  t.true(page.html.includes('data-scope="vault:list"'))
  t.true(page.html.includes('data-refused-scope="users:manage"'))
  t.true(page.html.includes('data-key-fingerprint="'))
  const done = await person.browser.submit(page, {}, /approve$/).gives(303)
  t.is(done.location, `/device/delegation/${userCode}`)
  const shown = await person.browser.follow(done).gives(200)
  t.true(shown.html.includes('data-decision="approved"'))

  const granted = await poll(api, token, asked)
  t.is(granted.status, 200, JSON.stringify(granted.body))
  t.is(granted.body['token_type'], 'Bearer')
  t.is(granted.body['expires_in'], 300)
  t.is(granted.body['scope'], 'openid vault:list')
  t.is(granted.headers['cache-control'], 'no-store')
  const claims = claimsOf(granted.body['access_token'])
  t.like(claims, {
    iss: api.at.baseUrl,
    aud: api.at.baseUrl,
    subject_type: 'human',
    tenant_id: tenantId,
    client_id: agentId,
    acr: 'aal2',
    aal: 2,
    act: { sub: agentId, subject_type: 'agent' },
  })
  t.true((claims['amr'] as string[]).includes('otp'))
  t.regex(String(claims['delegation_id']), /^[0-9a-f-]{36}$/)

  const again = await poll(api, token, asked)
  t.like(again, { status: 400, body: { error: 'invalid_grant' } })
  const gone = openBrowser(api.at)
  t.is((await gone.get(`/device/delegation/${userCode}`)).status, 410)
})

test('the delegated token lists what it was granted, a direct one needs vault:manage; both the other way round elsewhere', async (t) => {
  const delegated = await delegate(api, workspace.token, person)
  const list = '/api/v1/vault/credentials'
  t.is((await api.get(list, delegated.token)).status, 200)
  const { key, agentId } = await api.register(workspace.tenantId)
  const selector = { tenant_id: workspace.tenantId, agent_id: agentId }
  const direct = String((await api.login(key, selector)).body['access_token'])
  t.is((await api.get(list, direct)).status, 403)
  t.is((await api.get(list, workspace.token)).status, 200)
  const credential = await api.post(list, workspace.token, {
    provider: 'github',
    credential_type: 'api_key',
    label: 'Deployments',
    auth_scheme: 'bearer',
    allowed_hosts: ['api.github.com'],
    secret: 'a secret of many letters',
  })
  t.is(credential.status, 201)
  const grants = `${list}/${String(credential.body['id'])}/grants`
  const grant = { grantee_type: 'delegation', grantee_id: delegated.delegationId }
  await api.post(grants, workspace.token, grant).gives(201)
  const rows = await api.list(list, delegated.token)
  t.deepEqual(
    rows.rows.map(({ id }) => id),
    [credential.body['id']],
  )
  const other = await delegate(api, workspace.token, person)
  t.deepEqual((await api.list(list, other.token)).rows, [])

  for (const [path, body] of [
    [DEVICE, { scope: 'openid' }],
    [`${DEVICE}/token`, { device_code: 'x' }],
    ['/api/v1/agents/delegations/ssh-sign', {}],
    [`/api/v1/delegations/${delegated.delegationId}/revoke`, {}],
  ] as const) {
    const { status } = await api.post(path, delegated.token, body)
    t.is(status, 403, path)
  }
  const info = await api.get('/userinfo', delegated.token).gives(200)
  t.is(info.body['sub'], claimsOf(delegated.token)['sub'])
})

test('a denied request is access_denied for the agent and shown to the person', async (t) => {
  const asked = await ask(api, workspace.token, { scope: 'openid' })
  const done = await decide(person, asked, 'deny')
  t.is(done.status, 303)
  t.true((await person.browser.follow(done)).html.includes('data-decision="denied"'))
  for (let polls = 0; polls < 2; polls += 1) {
    const { status, body } = await poll(api, workspace.token, asked)
    t.is(status, 400)
    t.is(body['error'], 'access_denied')
  }
})

test('each poll that is too fast adds five seconds to the interval', async (t) => {
  const asked = await ask(api, workspace.token, { scope: 'openid' })
  const answers = []
  for (let polls = 0; polls < 3; polls += 1) {
    const { body, headers } = await poll(api, workspace.token, asked)
    answers.push([body['error'], headers['retry-interval']])
  }
  t.deepEqual(answers, [
    ['authorization_pending', '5'],
    ['slow_down', '10'],
    ['slow_down', '15'],
  ])
})

test('a person without the requested scopes cannot approve, and the request stays pending', async (t) => {
  const asked = await ask(api, workspace.token, { scope: 'users:manage tenant:manage' })
  const page = await person.browser.get(`/device/delegation/${asked.userCode}`)
  t.true(page.html.includes('data-nothing-held') && page.forms.length === 1)
  const forms = page.forms.map((it) => ({ ...it, action: it.action.replace('/deny', '/approve') }))
  t.is((await person.browser.submit({ ...page, forms }, {}, /approve$/)).status, 403)
  t.is((await poll(api, workspace.token, asked)).body['error'], 'authorization_pending')
  t.is((await decide(person, asked, 'deny')).status, 303)
})

test('a code is accepted in any case and with hyphens; an unknown one is 404 without sign-in', async (t) => {
  const { userCode } = await ask(api, workspace.token, { scope: 'openid' })
  const typed = `${userCode.slice(0, 4)}-${userCode.slice(4)}`.toLowerCase()
  t.is((await person.browser.get(`/device/delegation/${typed}`)).status, 200)
  const stranger = openBrowser(api.at)
  for (const code of ['BCDFGHJK', 'x', 'AAAAAAAA', "'%20or%201=1"]) {
    const { status } = await stranger.get(`/device/delegation/${code}`)
    t.is(status, 404, code)
  }
  const sent = await stranger.get(`/device/delegation/${typed}`).gives(303)
  t.regex(sent.location ?? '', /^\/auth\/login\?flow=/)
})

test('an unknown code is typed again in the page that it leads to', async (t) => {
  const { userCode } = await ask(api, workspace.token, { scope: 'openid' })
  const mistyped = await person.browser.get('/device/delegation/BCDFGHJK').gives(404)
  const [form] = mistyped.forms
  t.true(mistyped.html.includes('value="BCDFGHJK"'))
  const again = await person.browser.get(`${form!.action}?user_code=wrong`).gives(404)
  const asked = await person.browser.get(`${again.forms[0]!.action}?user_code=${userCode}`)
  t.is(asked.status, 200)
  t.true(asked.forms.some(({ action }) => action.startsWith(`/device/delegation/${userCode}`)))
})

test('a person without a second factor passes sign-in and enrolment to the page', async (t) => {
  const human = await newFixture(api, workspace)
  const browser = openBrowser(api.at)
  const { userCode } = await ask(api, workspace.token, { scope: 'openid' })
  const login = await browser.follow(await browser.get(`/device/delegation/${userCode}`))
  const { email, password } = human
  const enrolment = await browser.follow(await browser.submit(login, { email, password }))
  t.true(enrolment.path.startsWith('/auth/mfa/enroll'), enrolment.path)
})

test('cross-origin forms decide nothing', async (t) => {
  const asked = await ask(api, workspace.token, { scope: 'openid' })
  const path = `/device/delegation/${asked.userCode}`
  const page = await person.browser.get(path)
  const fields = page.forms.find(({ action }) => action.endsWith('approve'))!.fields
  const { csrf_token: _token, ...bare } = fields
  t.is((await person.browser.post(`${path}/approve`, bare)).status, 403)
  t.is((await person.browser.post(`${path}/approve`, { ...fields, csrf_token: 'x' })).status, 403)
  const foreign = { origin: 'https://evil.example' }
  t.is((await person.browser.post(`${path}/approve`, fields, foreign)).status, 403)
  // With another session than the page was shown to, the page is shown again.
  await person.browser.post(`${path}/approve`, { ...fields, session: 'another' }).gives(303)
  t.is((await poll(api, workspace.token, asked)).body['error'], 'authorization_pending')
})

test('the person sees when an agent was last used', async (t) => {
  const workspace = await api.workspace()
  const person = await present(api, fixtureOf(workspace))
  const lastUse = async () => {
    const { body } = await api.get('/api/v1/delegations', workspace.token)
    return (body as unknown as { last_used_at: string | null }[])[0]!.last_used_at
  }
  const shown = async () =>
    /<span data-last-used>(.*?)<\/span>/s.exec(
      (await person.browser.get('/auth/account')).html,
    )![1]!
  const asked = await ask(api, workspace.token, { scope: 'vault:list' })
  await decide(person, asked, 'approve')
  t.is(await lastUse(), null)
  t.is(await shown(), 'Not used yet')
  const { body } = await poll(api, workspace.token, asked)
  const first = await lastUse()
  t.regex(await shown(), /^Last used <time datetime="/)
  await api.form('/oauth/token', {
    grant_type: 'refresh_token',
    client_id: workspace.agentId,
    refresh_token: String(body['refresh_token']),
  })
  const second = await lastUse()
  t.true(first !== null && second !== null && second > first, `${first} ${second}`)
  t.true((await shown()).includes(second!))
})

test('the account page revokes a delegation with its tokens', async (t) => {
  const delegated = await delegate(api, workspace.token, person)
  const account = await person.browser.get('/auth/account')
  const action = `/auth/account/delegations/${delegated.delegationId}/revoke`
  const ended = await person.browser.submit(account, {}, action).gives(303)
  t.is(ended.location, '/auth/account')
  t.false((await person.browser.follow(ended)).html.includes(delegated.delegationId))
  await api.get('/api/v1/vault/credentials', delegated.token).gives(401, 'token_revoked')
  const answer = await api.form('/oauth/token', {
    grant_type: 'refresh_token',
    client_id: workspace.agentId,
    refresh_token: delegated.refreshToken,
  })
  t.like(answer, { status: 400, body: { error: 'invalid_grant' } })
  const record = await api.get(`/api/v1/delegations/${delegated.delegationId}`, workspace.token)
  t.like(record, { status: 200, body: { status: 'revoked' } })
})

test('refresh tokens of a delegation return delegated tokens, and reuse ends the delegation', async (t) => {
  const delegated = await delegate(api, workspace.token, person)
  const refresh = (token: string) =>
    api.form('/oauth/token', {
      grant_type: 'refresh_token',
      client_id: workspace.agentId,
      refresh_token: token,
    })
  const second = await refresh(delegated.refreshToken).gives(200)
  const { iat: _i, nbf: _n, exp: _e, jti: _j, ...claims } = claimsOf(second.body['access_token'])
  const { iat: _i1, nbf: _n1, exp: _e1, jti: _j1, ...before } = claimsOf(delegated.token)
  t.deepEqual(claims, before)
  t.is((await refresh(String(second.body['refresh_token']))).status, 200)
  t.is((await refresh(delegated.refreshToken)).body['error'], 'invalid_grant')
  t.is((await api.get('/api/v1/vault/credentials', delegated.token)).status, 401)
  const record = await api.get(`/api/v1/delegations/${delegated.delegationId}`, workspace.token)
  t.is(record.body['status'], 'revoked')
})

test('suspending the agent ends its delegations, and activating it restores none', async (t) => {
  const { key, agentId } = await api.register(workspace.tenantId)
  const login = async () =>
    String(
      (await api.login(key, { agent_id: agentId, tenant_id: workspace.tenantId })).body[
        'access_token'
      ],
    )
  const delegated = await delegate(api, await login(), person)
  const agent = `/api/v1/agents/${agentId}`
  t.is((await api.get('/api/v1/vault/credentials', delegated.token)).status, 200)
  t.is((await api.post(`${agent}/suspend`, workspace.token)).status, 200)
  t.is((await api.get('/api/v1/vault/credentials', delegated.token)).status, 401)
  t.is((await api.post(`${agent}/activate`, workspace.token)).status, 200)
  t.is((await api.get('/api/v1/vault/credentials', delegated.token)).status, 401)
  const record = await api.get(`/api/v1/delegations/${delegated.delegationId}`, workspace.token)
  t.is(record.body['status'], 'revoked')
  const again = await delegate(api, await login(), person)
  t.is((await api.delete(agent, workspace.token)).status, 204)
  t.is((await api.get('/api/v1/vault/credentials', again.token)).status, 401)
})

test('an agent of another tenant cannot poll or read; a revoked key ends its delegations', async (t) => {
  const foreign = await api.workspace('Elsewhere')
  const asked = await ask(api, workspace.token, { scope: 'openid' })
  t.is((await poll(api, foreign.token, asked)).body['error'], 'invalid_grant')
  const colleague = await api.register(workspace.tenantId)
  const login = await api.login(colleague.key, {
    agent_id: colleague.agentId,
    tenant_id: workspace.tenantId,
  })
  const token = String(login.body['access_token'])
  t.is((await poll(api, token, asked)).body['error'], 'invalid_grant')
  const delegated = await delegate(api, workspace.token, person)
  for (const other of [foreign.token, token]) {
    t.is((await api.get(`/api/v1/delegations/${delegated.delegationId}`, other)).status, 404)
    const listed = await api.list('/api/v1/delegations', other)
    t.deepEqual(listed.rows, [])
  }
  // A person of the other tenant has to sign in to this one.
  const stranger = openBrowser(api.at)
  await signIn(stranger, fixtureOf(foreign))
  t.is((await stranger.get(`/device/delegation/${asked.userCode}`)).status, 303)

  const own = await delegate(api, token, person)
  const keyed = `/api/v1/agents/${colleague.agentId}/keys`
  const { body } = await api.get(`/api/v1/agents/${colleague.agentId}`, workspace.token).gives(200)
  const keyId = (body['keys'] as { id: string }[])[0]!.id
  await api.post(`${keyed}/${keyId}/revoke`, workspace.token).gives(200)
  t.is((await api.get('/api/v1/vault/credentials', own.token)).status, 401)
})

test.serial('200 concurrent polls after the approval: one token', async (t) => {
  const asked = await ask(api, workspace.token, { scope: 'openid' })
  await decide(person, asked)
  const answers = await Promise.all(
    Array.from({ length: 200 }, () => poll(api, workspace.token, asked)),
  )
  t.is(answers.filter(({ status }) => status === 200).length, 1)
  const rest = answers.filter(({ status }) => status !== 200)
  t.true(rest.every(({ status, body }) => status === 400 && body['error'] === 'invalid_grant'))
})

test('of a concurrent approval and denial one counts', async (t) => {
  for (let round = 0; round < 5; round += 1) {
    const asked = await ask(api, workspace.token, { scope: 'openid' })
    const page = await person.browser.get(`/device/delegation/${asked.userCode}`)
    const answers = ['approve', 'deny', 'approve', 'deny'].map((answer) =>
      person.browser.submit(page, {}, new RegExp(`${answer}$`)),
    )
    for (const { status } of await Promise.all(answers)) t.is(status, 303)
    const { html } = await person.browser.get(`/device/delegation/${asked.userCode}`)
    const polled = await poll(api, workspace.token, asked)
    t.is(polled.status === 200, html.includes('data-decision="approved"'))
  }
})

for (const [title, body, error] of [
  ['an unknown scope', { scope: 'openid fly' }, 'invalid_scope'],
  ['no scope', { scope: '' }, 'invalid_scope'],
  [
    'a foreign audience',
    { scope: 'openid', audience: 'https://elsewhere.example' },
    'invalid_target',
  ],
  ['no body', undefined, undefined],
  ['a scope that is no text', { scope: 7 }, undefined],
  ['an audience that is no text', { scope: 'openid', audience: [] }, undefined],
  ['a list', [], undefined],
  ['a very long scope', { scope: 'x'.repeat(5000) }, undefined],
] as const) {
  test(`${title} is refused with its own error`, async (t) => {
    const answer = await api.post(DEVICE, workspace.token, body).gives(400)
    t.is(answer.body['error'], error ?? 'bad_request')
  })
}

for (const body of [
  undefined,
  {},
  { device_code: 7 },
  { device_code: '' },
  { device_code: 'x'.repeat(500) },
]) {
  test(`a poll with ${JSON.stringify(body)?.slice(0, 40)} is refused with its own error`, async (t) => {
    const answer = await api.post(`${DEVICE}/token`, workspace.token, body)
    t.like(answer, { status: 400, body: { error: 'bad_request' } })
  })
}
