import { once } from 'node:events'
import { connect, type IncomingHttpHeaders, sensitiveHeaders } from 'node:http2'
import test from 'ava'
import { levelOf } from '../../gateway/response/respond.js'
import { PROBLEM_TYPES } from '../../gateway/response/problems.js'
import { onEachTransport, type OnTransport, openStage } from './stage.js'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

function successes({ on, call, transport, stage }: OnTransport): void {
  test(on('the transport asked for is the one in use'), async (t) => {
    await call({ path: '/hello' })
    t.is(stage().transport, transport)
    t.regex(stage().url, stage().certificate === null ? /^http:/ : /^https:/)
  })

  test(on('a success has its body, its type and the headers that every answer has'), async (t) => {
    const { status, headers, json } = await call({ path: '/hello' })
    t.is(status, 200)
    t.deepEqual(json() as unknown, { status: 'hello' })
    t.is(headers['content-type'], 'application/json')
    t.is(headers['cache-control'], 'no-store')
    t.is(headers['x-content-type-options'], 'nosniff')
    t.is(headers['referrer-policy'], 'no-referrer')
    t.is(headers['content-length'], '18')
    t.regex(headers['x-request-id'] ?? '', UUID)
  })

  test(on('an inbound request id is kept when it is one of ours, else replaced'), async (t) => {
    const kept = await call({ path: '/hello', headers: { 'x-request-id': 'Trace_1.a-b' } })
    t.is(kept.headers['x-request-id'], 'Trace_1.a-b')
    for (const given of ['', 'with space', 'a'.repeat(129), 'semi;colon']) {
      const replaced = await call({ path: '/hello', headers: { 'x-request-id': given } })
      t.regex(replaced.headers['x-request-id'] ?? '', UUID, given)
    }
  })

  test(on('no two requests get the same id'), async (t) => {
    const replies = await Promise.all(
      Array.from({ length: 200 }, () => call({ path: '/health/live' })),
    )
    t.is(new Set(replies.map(({ headers }) => headers['x-request-id'])).size, 200)
  })

  test(on('HEAD has the headers of GET and no body'), async (t) => {
    const get = await call({ path: '/document' })
    const head = await call({ method: 'HEAD', path: '/document' })
    t.is(head.status, 200)
    t.is(head.text, '')
    for (const name of ['content-length', 'content-type', 'etag', 'cache-control']) {
      t.is(head.headers[name], get.headers[name], name)
    }
    const missing = await call({ method: 'HEAD', path: '/nothing' })
    t.is(missing.status, 404)
    t.is(missing.text, '')
  })

  test(on('OPTIONS answers 204 with Allow'), async (t) => {
    const { status, headers, text } = await call({ method: 'OPTIONS', path: '/echo' })
    t.is(status, 204)
    t.is(headers['allow'], 'POST, OPTIONS')
    t.is(text, '')
    t.is(headers['content-length'], undefined)
  })

  test(on('a matching entity tag gives 304 without a body'), async (t) => {
    for (const tag of ['"v1"', 'W/"v1"', '"other", "v1"', '*']) {
      const { status, headers, text } = await call({
        path: '/document',
        headers: { 'if-none-match': tag },
      })
      t.is(status, 304, tag)
      t.is(text, '')
      t.is(headers['etag'], '"v1"')
      t.is(headers['cache-control'], 'public, max-age=60')
    }
    const changed = await call({ path: '/document', headers: { 'if-none-match': '"v0"' } })
    t.is(changed.status, 200)
  })

  test(on('a page has the strict content security policy'), async (t) => {
    const { headers } = await call({ path: '/page' })
    t.is(headers['content-type'], 'text/html; charset=utf-8')
    t.regex(headers['content-security-policy'] ?? '', /default-src 'none'.*frame-ancestors 'none'/)
    t.notRegex(headers['content-security-policy'] ?? '', /unsafe/)
  })

  test(on('a 204 has no body and no length'), async (t) => {
    const { status, headers, text } = await call({ method: 'DELETE', path: '/things/known' })
    t.is(status, 204)
    t.is(text, '')
    t.is(headers['content-length'], undefined)
  })
}

function problems({ on, call }: OnTransport): void {
  test(on('an unknown path is a 404 problem with all its members'), async (t) => {
    const { status, headers, json } = await call({ path: '/nothing/here?with=query' })
    const body = json()
    t.is(status, 404)
    t.is(headers['content-type'], 'application/problem+json')
    t.is(headers['cache-control'], 'no-store')
    t.like(body as object, {
      type: 'https://id.test/errors/not-found',
      title: 'Not found',
      status: 404,
      instance: '/nothing/here',
      error: 'not_found',
      request_id: headers['x-request-id'],
    })
  })

  test(on('an unknown path is a page for who reads pages'), async (t) => {
    const accept = 'text/html,application/xhtml+xml,*/*;q=0.8'
    const { status, headers, text } = await call({ path: '/nothing', headers: { accept } })
    t.is(status, 404)
    t.is(headers['content-type'], 'text/html; charset=utf-8')
    t.regex(headers['content-security-policy']!, /frame-ancestors 'none'/)
    t.true(text.includes(headers['x-request-id']!))
    t.true(text.includes('This page does not exist.'))
    const program = await call({ path: '/nothing', headers: { accept: '*/*' } })
    t.is(program.headers['content-type'], 'application/problem+json')
  })

  test(on('a known path with another method is 405 and tells what is allowed'), async (t) => {
    const { status, headers, json } = await call({ method: 'DELETE', path: '/hello' })
    t.is(status, 405)
    t.is(headers['allow'], 'GET, HEAD, OPTIONS')
    t.is(json()['error'] as unknown, 'method_not_allowed')
    const unknown = await call({ method: 'PROPFIND', path: '/hello' })
    t.is(unknown.status, 405)
  })

  test(on('a defect is a 500 problem that tells nothing of itself'), async (t) => {
    const { status, headers, text, json } = await call({ path: '/break' })
    t.is(status, 500)
    t.is(json()['error'] as unknown, 'server_error')
    t.notRegex(text, /secret detail|at .*\.js|Error:/)
    t.is(headers['deprecation'], '@1700000000')
    t.is(headers['sunset'], 'Sun, 01 Nov 2026 00:00:00 GMT')
    t.is(headers['link'], '<https://id.test/docs>; rel="deprecation"')
  })

  test(on('a dependency that is away is a 503 problem that says when to come back'), async (t) => {
    const { status, headers, text, json } = await call({ path: '/lack' })
    t.is(status, 503)
    t.is(headers['content-type'], 'application/problem+json')
    t.is(headers['retry-after'], '1')
    t.like(json() as object, { error: 'service_unavailable', retry_after: 1 })
    t.notRegex(text, /secret detail/)
  })

  test(on('refusals of an actor keep their status and their waiting time'), async (t) => {
    const post = (text: string) =>
      call({
        method: 'POST',
        path: '/echo',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ text }),
      })
    const early = await post('early')
    t.is(early.status, 425)
    t.is(early.headers['retry-after'], '3')
    t.like(early.json() as object, { error: 'too_early', retry_after: 3 })
    const taken = await post('taken')
    t.is(taken.status, 409)
    t.like(taken.json() as object, { error: 'conflict', detail: 'it is taken' })
  })

  test(on('every problem type has its page, and no other name has'), async (t) => {
    for (const name of Object.keys(PROBLEM_TYPES)) {
      const { status, text } = await call({ path: `/errors/${name}` })
      t.is(status, 200, name)
      t.true(text.includes(PROBLEM_TYPES[name as keyof typeof PROBLEM_TYPES].title))
    }
    for (const name of ['constructor', '__proto__', 'nothing', '..%2f..%2fetc']) {
      const { status } = await call({ path: `/errors/${name}` })
      t.true(status === 404 || status === 400, `${name} gave ${status}`)
    }
  })
}

onEachTransport(test, {}, (given) => {
  successes(given)
  problems(given)
})

test('http2: fields that differ in each answer stay out of the table of the client', async (t) => {
  const stage = await openStage({ transport: 'http2' })
  t.teardown(() => stage.close())
  const session = connect(`https://localhost:${stage.port}`, { ca: stage.certificate!.pem })
  t.teardown(() => session.destroy())
  const stream = session.request({ ':path': '/hello', ':authority': 'id.test' })
  const [headers] = (await once(stream, 'response')) as [
    IncomingHttpHeaders & { readonly [sensitiveHeaders]?: readonly string[] },
  ]
  t.deepEqual(headers[sensitiveHeaders]?.toSorted(), ['ratelimit', 'x-request-id'])
  t.regex(headers['x-request-id'] as string, UUID)
})

test('faults of others are no errors of the service in its log', (t) => {
  const levels = [400, 404, 429, 500, 501, 502, 503, 504, 505].map((status) =>
    levelOf(status, null, false),
  )
  t.deepEqual(levels, ['warn', 'info', 'warn', 'error', 'info', 'warn', 'error', 'error', 'warn'])
  t.is(levelOf(503, 'share_exhausted', false), 'warn')
})
