/** Time limits of a call over HTTP, and calls with a delegation. */
import test from 'ava'
import { fixtureOf, delegate, ownToken, present } from '../../support/agents/delegation.js'
import { docsPage, testCommands } from '../../support/pages/docs-page.js'
import {
  bodyCall,
  closedCalls,
  CREDENTIALS,
  egressHouse,
  SECRET,
  settingOf,
  UPSTREAM_NAME,
} from '../../support/vault/egress.js'

const resources = await egressHouse({
  environment: {
    SVC_VAULT__EGRESS_IDLE_GAP_SECS: '3',
    SVC_VAULT__EGRESS_HOP_TIMEOUT_SECS: '8',
  },
})
const { api, upstream, running } = resources
test.after.always(() => resources.end())

test.serial('an upstream without response is a 504, buffered or streamed', async (t) => {
  const setting = await settingOf(resources)
  // Interim responses are no progress.
  for (const path of ['/silent', '/interim']) {
    for (const stream of [true, false]) {
      const answer = await api.post('/v1/proxy', setting.delegated, {
        credential_id: setting.credentialId,
        url: upstream.origin + path,
        stream,
      })
      t.is(answer.status, 504)
      t.is(answer.body['error'], 'gateway_timeout')
      t.is(answer.headers['proxy-status'], 'svc-egress; error=http_response_timeout')
    }
  }
  const closed = await closedCalls(resources, setting.tenantId, 4)
  for (const each of closed) t.is(each['outcome'], 'idle_timeout')
})

test.serial('an upstream may send 100 (Continue) before its response', async (t) => {
  const setting = await settingOf(resources)
  for (const count of [1, 2, 20]) {
    for (const body of [undefined, 'text']) {
      const answer = await resources.send('/v1/proxy/body', {
        token: setting.direct,
        headers: bodyCall(setting, `${upstream.origin}/continue/${count}`, {
          'x-svc-method': body === undefined ? 'GET' : 'POST',
        }),
        ...(body === undefined ? {} : { body }),
      })
      t.is(answer.statusCode, 200)
      t.is(await answer.body.text(), 'continued')
    }
  }
})

test.serial(
  'an upstream that stalls after its headers aborts a stream and is a 504 when buffered',
  async (t) => {
    const setting = await settingOf(resources)
    const call = (stream: boolean) =>
      resources.send('/v1/proxy/body', {
        token: setting.direct,
        headers: bodyCall(setting, `${upstream.origin}/silent-after-headers`, {
          'x-svc-method': 'GET',
          'x-svc-stream-response': String(stream),
        }),
      })
    const streamed = await call(true)
    t.is(streamed.statusCode, 200, 'the head leaves at once')
    await t.throwsAsync(streamed.body.text())
    const buffered = await call(false)
    t.is(buffered.statusCode, 504)
    t.is(buffered.headers['proxy-status'], 'svc-egress; error=http_response_timeout')
    await buffered.body.dump()
    const closed = await closedCalls(resources, setting.tenantId, 2)
    for (const { outcome } of closed) t.is(outcome, 'idle_timeout')
  },
)

test.serial('an idle stream and an endless stream are aborted', async (t) => {
  const setting = await settingOf(resources)
  for (const [habit, outcome] of [
    ['silent-after-chunk', 'idle_timeout'],
    ['trickle', 'hop_timeout'],
  ] as const) {
    const answer = await resources.send('/v1/proxy/body', {
      token: setting.direct,
      headers: bodyCall(setting, `${upstream.origin}/${habit}`, { 'x-svc-method': 'GET' }),
    })
    t.is(answer.statusCode, 200)
    await t.throwsAsync(answer.body.text(), undefined, habit)
    const closed = await closedCalls(resources, setting.tenantId, outcome === 'hop_timeout' ? 2 : 1)
    t.is(closed.at(-1)!['outcome'], outcome)
    t.true(Number(closed.at(-1)!['bytes']) > 0)
  }
  // Buffered, it is a 504.
  const whole = await resources.send('/v1/proxy/body', {
    token: setting.direct,
    headers: bodyCall(setting, `${upstream.origin}/trickle`, {
      'x-svc-method': 'GET',
      'x-svc-stream-response': 'false',
    }),
  })
  t.is(whole.statusCode, 504)
  t.is(whole.headers['proxy-status'], 'svc-egress; error=http_response_timeout')
  await whole.body.dump()
})

test.serial('a delegated token calls until the person revokes the delegation', async (t) => {
  const workspace = await api.workspace()
  const { token: operator, key, agentId, tenantId } = workspace
  const person = await present(api, fixtureOf(workspace))
  const { body } = await api.login(key, { tenant_id: tenantId, agent_id: agentId })
  const delegated = await delegate(api, String(body['access_token']), person)
  const created = await api.post(CREDENTIALS, operator, {
    provider: 'upstream',
    credential_type: 'api_key',
    label: 'Key',
    auth_scheme: 'bearer',
    allowed_hosts: [UPSTREAM_NAME],
    secret: SECRET,
  })
  const credentialId = String(created.body['id'])
  const call = () =>
    api.post('/v1/proxy', delegated.token, {
      credential_id: credentialId,
      url: `${upstream.origin}/headers`,
    })
  t.is((await call()).status, 404, 'there is no grant yet')
  const granted = await api.post(`${CREDENTIALS}/${credentialId}/grants`, operator, {
    grantee_type: 'delegation',
    grantee_id: delegated.delegationId,
  })
  t.is(granted.status, 201, JSON.stringify(granted.body))
  const answer = await call()
  t.is(answer.status, 200, JSON.stringify(answer.body))
  t.is(upstream.requests.at(-1)!.headers.authorization, `Bearer ${SECRET}`)
  const { rows } = await api.list(CREDENTIALS, delegated.token)
  t.deepEqual(
    rows.map(({ id }) => id),
    [credentialId],
  )
  const own = await ownToken(api, workspace, person)
  const ended = await api.post(`/api/v1/delegations/${delegated.delegationId}/revoke`, own)
  t.is(ended.status, 200, JSON.stringify(ended.body))
  t.is((await call()).status, 401)
})

testCommands('the commands of docs/guides/vault/egress-proxy.md run unchanged', async (t) => {
  const setting = await settingOf(resources)
  const page = docsPage(t, 'guides/vault/egress-proxy')
  const env = {
    BASE: running.baseUrl,
    AGENT_TOKEN: setting.direct,
    DELEGATED_TOKEN: setting.delegated,
    CREDENTIAL: setting.credentialId,
    API: upstream.origin,
  }
  t.is(await page.run('sh', 0, env), '{"stream":true,"messages":[]}')
  const sent = upstream.requests.at(-1)!
  t.like(sent.headers, { accept: 'text/event-stream', 'content-type': 'application/json' })
  t.is(sent.headers.authorization, `Bearer ${SECRET}`)
  t.true((await page.run('sh', 1, env)).includes('[redacted]'))
  t.is(page.blocks('sh').length, 2)
})
