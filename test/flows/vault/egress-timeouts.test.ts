/** Time limits of a call over HTTP. */
import test from 'ava'
import { bodyCall, closedCalls, egressHouse, settingOf } from '../../support/vault/egress.js'

const resources = await egressHouse({
  environment: {
    // On uWebSockets the head of a stream leaves with its first byte.
    SVC_SERVER__HTTP1_PARSER: 'node',
    SVC_VAULT__EGRESS_IDLE_GAP_SECS: '3',
    SVC_VAULT__EGRESS_HOP_TIMEOUT_SECS: '8',
  },
})
const { api, upstream } = resources

test('an upstream without response is a 504, buffered or streamed', async (t) => {
  const setting = await settingOf(resources)
  // Interim responses are no progress.
  const calls = ['/silent', '/interim'].flatMap((path) =>
    [true, false].map((stream) =>
      api.post('/v1/proxy', setting.delegated, {
        credential_id: setting.credentialId,
        url: upstream.origin + path,
        stream,
      }),
    ),
  )
  for (const answer of await Promise.all(calls)) {
    t.like(answer, { status: 504, body: { error: 'gateway_timeout' } })
    t.is(answer.headers['proxy-status'], 'svc-egress; error=http_response_timeout')
  }
  const closed = await closedCalls(resources, setting.tenantId, 4)
  for (const each of closed) t.is(each['outcome'], 'idle_timeout')
})

test('an upstream that stalls after its headers aborts a stream and is a 504 when buffered', async (t) => {
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
  t.is(streamed.statusCode, 200, 'the head leaves immediately')
  await t.throwsAsync(streamed.body.text())
  const buffered = await call(false)
  t.is(buffered.statusCode, 504)
  t.is(buffered.headers['proxy-status'], 'svc-egress; error=http_response_timeout')
  await buffered.body.dump()
  const closed = await closedCalls(resources, setting.tenantId, 2)
  for (const { outcome } of closed) t.is(outcome, 'idle_timeout')
})

for (const [habit, outcome] of [
  ['silent-after-chunk', 'idle_timeout'],
  ['trickle', 'hop_timeout'],
] as const) {
  test(`a stream that is ${habit} is aborted with ${outcome}`, async (t) => {
    const setting = await settingOf(resources)
    const answer = await resources.send('/v1/proxy/body', {
      token: setting.direct,
      headers: bodyCall(setting, `${upstream.origin}/${habit}`, { 'x-svc-method': 'GET' }),
    })
    t.is(answer.statusCode, 200)
    await t.throwsAsync(answer.body.text())
    const [closed] = await closedCalls(resources, setting.tenantId, 1)
    t.is(closed!['outcome'], outcome)
    t.true(Number(closed!['bytes']) > 0)
  })
}

test('an endless response is a 504 when buffered', async (t) => {
  const setting = await settingOf(resources)
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
