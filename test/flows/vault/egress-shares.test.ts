/** Fair shares between tenants, and restrictions of grants. */
import test, { type ExecutionContext } from 'ava'
import { bodyCall, egressHouse, settingOf, type Setting } from '../../support/vault/egress.js'
import { notThrough } from '../../support/fleet/through.js'

const BYTES_PER_TENANT = 6_000_000
const resources = await egressHouse({
  environment: {
    SVC_VAULT__EGRESS_CALLS_PER_AGENT_MAX: '3',
    SVC_VAULT__EGRESS_CALLS_PER_TENANT_MAX: '5',
    SVC_VAULT__EGRESS_BUFFERED_BYTES_PER_TENANT_MAX: String(BYTES_PER_TENANT),
  },
})
const { api, upstream } = resources
test.after.always(() => resources.end())

const call = (setting: Setting, path: string, more: object = {}) =>
  api.post('/v1/proxy', setting.delegated, {
    credential_id: setting.credentialId,
    url: upstream.origin + path,
    ...more,
  })

/** A call that runs until `end`. Ignores its failures. */
function begin(setting: Setting, path: string, stream = true) {
  const control = new AbortController()
  const answer = resources.send('/v1/proxy/body', {
    token: setting.direct,
    headers: bodyCall(setting, upstream.origin + path, {
      'x-svc-method': 'GET',
      'x-svc-stream-response': String(stream),
    }),
    signal: control.signal,
  })
  answer.catch(() => undefined)
  return { answer, end: () => control.abort() }
}

const seen = (path: string) => upstream.requests.filter(({ url }) => url === path).length

async function until(t: ExecutionContext, what: string, isSo: () => boolean | Promise<boolean>) {
  // A minute and more: the machine may be busy.
  for (let tries = 0; tries < 1_200; tries += 1) {
    if (await isSo()) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  t.fail(what)
}

test.serial('concurrent calls of an agent are limited, and released at their end', async (t) => {
  notThrough('each process counts for itself')
  const [hostile, honest] = [await settingOf(resources), await settingOf(resources)]
  const running = [1, 2, 3].map((each) => begin(hostile, `/silent/agent-${each}`))
  await until(t, 'the calls are under way', () =>
    [1, 2, 3].every((n) => seen(`/silent/agent-${n}`) > 0),
  )
  const refused = await call(hostile, '/echo')
  t.is(refused.status, 429)
  t.is(refused.headers['retry-after'], '1')
  t.is(refused.headers['proxy-status'], 'svc-egress; error=connection_limit_reached')
  t.is((await call(honest, '/echo')).status, 200)
  for (const each of running) each.end()
  await until(t, 'the places are free', async () => (await call(hostile, '/echo')).status === 200)
})

test.serial(
  'buffered responses count against the memory share of the tenant until they end',
  async (t) => {
    notThrough('each process counts for itself')
    const [hostile, honest] = [await settingOf(resources), await settingOf(resources)]
    const fill = () => {
      const { answer, end } = begin(hostile, '/fill-and-hold/5900000', false)
      const filling = { end, isOver: false }
      answer
        .then(({ body }) => body.dump())
        .catch(() => undefined)
        .finally(() => (filling.isOver = true))
      return filling
    }
    let running = fill()
    const whole = (setting: Setting) => call(setting, '/bytes/200000', { stream: false })
    await until(t, 'the bytes are held', async () => {
      // A small call of the lines below may have been under way, so that the large one was refused.
      if (running.isOver) running = fill()
      return (await whole(hostile)).status === 503
    })
    const refused = await whole(hostile)
    t.is(refused.status, 503)
    t.is(refused.headers['retry-after'], '1')
    t.is((await whole(honest)).status, 200)
    running.end()
    await until(t, 'the bytes are free', async () => (await whole(hostile)).status === 200)
  },
)

test.serial('the JSON document of a call counts too, also with a streamed response', async (t) => {
  const [hostile, honest] = [await settingOf(resources), await settingOf(resources)]
  const large = { method: 'POST', body: 'x'.repeat(BYTES_PER_TENANT + 1), stream: true }
  t.is((await call(hostile, '/hash', large)).status, 503)
  const fitting = { ...large, body: 'x'.repeat(BYTES_PER_TENANT - 1) }
  for (let times = 0; times < 3; times += 1) {
    t.is((await call(hostile, '/hash', fitting)).status, 200)
  }
  t.is((await call(honest, '/hash', fitting)).status, 200)
})

test.serial('a periodic secret with a repetitive body does not block other tenants', async (t) => {
  const secret = `${'a'.repeat(32_000)}b${'a'.repeat(28_000)}`
  const [hostile, other, honest] = [
    await settingOf(resources, { auth_scheme: 'header:x-k', secret }),
    await settingOf(resources, { auth_scheme: 'header:x-k', secret }),
    await settingOf(resources),
  ]
  const running = [hostile, hostile, hostile, other, other, other].map((setting) =>
    begin(setting, '/letters'),
  )
  const bodies = await Promise.all(running.map(async ({ answer }) => (await answer).body))
  let read = 0
  for (const body of bodies) {
    body.on('data', (chunk: Buffer) => (read += chunk.length)).on('error', () => undefined)
  }
  await until(t, 'the streams run', () => read > 4 * 1024 * 1024)
  for (let times = 0; times < 5; times += 1) {
    const before = read
    t.is((await call(honest, '/echo')).status, 200)
    await until(t, 'the streams go on', () => read > before)
  }
  for (const each of running) each.end()
})

test.serial('headers that override method, path or client are removed', async (t) => {
  const setting = await settingOf(resources, {}, { methods: ['GET'], path_prefixes: ['/headers'] })
  const names = [
    'X-HTTP-Method-Override',
    'X-HTTP-Method',
    'X-Method-Override',
    'X-Original-URL',
    'X-Rewrite-URL',
    'X-Host',
    'X-Forwarded',
    'X-Forwarded-For',
    'X-Forwarded-Anything',
    'Forwarded',
    'X-Real-IP',
    'X-Client-IP',
    'True-Client-IP',
    'X_HTTP_Method_Override',
    'X_Original-URL',
  ]
  const answer = await call(setting, '/headers', {
    headers: [...names.map((name) => [name, 'DELETE']), ['x-kept', 'yes']],
  })
  t.is(answer.status, 200)
  const { rawHeaders } = upstream.requests.at(-1)!
  const reached = rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase())
  t.true(reached.includes('x-kept'))
  for (const name of names) t.false(reached.includes(name.toLowerCase()), name)
})

test.serial('with path prefixes ambiguous paths are refused', async (t) => {
  const setting = await settingOf(resources, {}, { path_prefixes: ['/echo'] })
  for (const path of [
    '/echo%2Fx',
    '/echo/%2f',
    '/echo/%5Cx',
    '/echo/%5c',
    '/echo/%25',
    '/echo/%252e',
  ]) {
    t.is((await call(setting, path)).status, 403, path)
  }
  t.is((await call(setting, '/%65ch%6F/%7Ea%2Db%20c')).status, 200)
  t.is(upstream.requests.at(-1)!.url, '/echo/~a-b%20c')
  // Decoded once, it contains an escaped percent sign.
  t.is((await call(setting, '/echo/%2565')).status, 403)
})

test.serial('allow_range of a grant controls the Range header', async (t) => {
  const headers = [
    ['Range', 'bytes=0-9'],
    ['If-Range', '"x"'],
  ]
  const kept = await settingOf(resources)
  t.is((await call(kept, '/echo', { headers })).status, 200)
  t.is(upstream.requests.at(-1)!.headers['range'], 'bytes=0-9')
  const dropped = await settingOf(resources, {}, { allow_range: false })
  t.is((await call(dropped, '/echo', { headers })).status, 200)
  t.is(upstream.requests.at(-1)!.headers['range'], undefined)
  t.is(upstream.requests.at(-1)!.headers['if-range'], undefined)
  const path = `/api/v1/vault/credentials/${dropped.credentialId}/grants`
  const { body } = await api.get(path, dropped.operator)
  t.like(Object.values(body)[0], { allow_range: false })
})

test.serial('the headers of an event stream are sent before its first event', async (t) => {
  const setting = await settingOf(resources)
  const { answer } = begin(setting, '/held-events')
  const { statusCode, headers, body } = await answer
  t.is(statusCode, 200)
  t.is(headers['content-type'], 'text/event-stream')
  // The upstream sends the first body byte only now.
  upstream.releaseEvents()
  t.regex(await body.text(), /^(?::\n)?data: now\n\n$/)
})
