/** Fair shares between tenants, and restrictions of grants. */
import test from 'ava'
import { bodyCall, egressHouse, settingOf, type Setting } from '../../support/vault/egress.js'
import { until } from '../../support/service/watch.js'
import { notThrough } from '../../support/fleet/through.js'

/** `egress_calls_per_agent_max`. */
const CALLS = 64
const resources = await egressHouse()
const { api, upstream } = resources

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

test.serial('concurrent calls of an agent are limited, and released at their end', async (t) => {
  notThrough('each process counts for itself')
  const [hostile, honest] = [await settingOf(resources), await settingOf(resources)]
  const path = '/held-events/agent'
  const running = Array.from({ length: CALLS }, () => begin(hostile, path))
  await until('the calls are under way', () => seen(path) === CALLS)
  const refused = await call(hostile, '/echo').gives(429)
  t.is(refused.headers['retry-after'], '1')
  t.is(refused.headers['proxy-status'], 'svc-egress; error=connection_limit_reached')
  t.is((await call(honest, '/echo')).status, 200)
  const unsigned = { credential_id: hostile.credentialId, method: 'GET', url: upstream.origin }
  await api.post('/v1/sign-request', hostile.delegated, unsigned).gives(429)
  for (const each of running) each.end()
  const isFree = async () => (await call(hostile, '/echo')).status === 200
  await until('the places are free', isFree)
})

test.serial(
  'buffered responses and JSON documents count against the memory share of the tenant until they end',
  async (t) => {
    notThrough('each process counts for itself')
    const [hostile, honest] = [await settingOf(resources), await settingOf(resources)]
    // Two of them leave 1.3 MB.
    const fill = () => {
      const { answer, end } = begin(hostile, '/fill-and-hold/25000000', false)
      const filling = { end, isOver: false }
      answer
        .then(({ body }) => body.dump())
        .catch(() => undefined)
        .finally(() => (filling.isOver = true))
      return filling
    }
    let running = [fill(), fill()]
    const whole = (setting: Setting) => call(setting, '/bytes/2000000', { stream: false })
    await until('the bytes are held', async () => {
      // A small call of the lines below may have been under way, so that a large one was refused.
      running = running.map((each) => (each.isOver ? fill() : each))
      return (await whole(hostile)).status === 503
    })
    const refused = await whole(hostile).gives(503)
    t.is(refused.headers['retry-after'], '1')
    t.is((await whole(honest)).status, 200)
    // A document counts too, also with a streamed response.
    const posted = (setting: Setting, bytes: number) =>
      call(setting, '/hash', { method: 'POST', body: 'x'.repeat(bytes), stream: true })
    t.is((await posted(hostile, 2_000_000)).status, 503)
    t.is((await posted(honest, 2_000_000)).status, 200)
    for (let times = 0; times < 3; times += 1) {
      t.is((await posted(hostile, 1_000_000)).status, 200)
    }
    for (const each of running) each.end()
    const isFree = async () => (await whole(hostile)).status === 200
    await until('the bytes are free', isFree)
  },
)

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
  await until('the streams run', () => read > 1024 * 1024)
  for (let times = 0; times < 2; times += 1) {
    const before = read
    t.is((await call(honest, '/echo')).status, 200)
    await until('the streams go on', () => read > before)
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
  await call(setting, '/headers', {
    headers: [...names.map((name) => [name, 'DELETE']), ['x-kept', 'yes']],
  }).gives(200)
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
  const kept = await settingOf(resources, {}, { allow_range: true })
  t.is((await call(kept, '/echo', { headers })).status, 200)
  t.is(upstream.requests.at(-1)!.headers['range'], 'bytes=0-9')
  const dropped = await settingOf(resources)
  t.is((await call(dropped, '/echo', { headers })).status, 200)
  t.is(upstream.requests.at(-1)!.headers['range'], undefined)
  t.is(upstream.requests.at(-1)!.headers['if-range'], undefined)
  const path = `/api/v1/vault/credentials/${dropped.credentialId}/grants`
  const { body } = await api.get(path, dropped.operator)
  t.like(Object.values(body)[0], { allow_range: false })
})

test.serial('the headers of an event stream are sent before its first event', async (t) => {
  // On uWebSockets they leave with its first byte.
  const house = await egressHouse({ transport: 'tls_h2_only' })
  t.teardown(() => house.end())
  const setting = await settingOf(house)
  const { statusCode, headers, body } = await house.send('/v1/proxy/body', {
    token: setting.direct,
    headers: bodyCall(setting, `${house.upstream.origin}/held-events`, { 'x-svc-method': 'GET' }),
  })
  t.is(statusCode, 200)
  t.is(headers['content-type'], 'text/event-stream')
  // The upstream sends the first body byte only now.
  house.upstream.releaseEvents()
  t.regex(await body.text(), /^(?::\n)?data: now\n\n$/)
})
