import test from 'ava'
import { onEachTransport, type OnTransport } from './stage.js'

function jsonBodies({ on, call, postJson }: OnTransport): void {
  test(on('a JSON body is checked and each offence is pointed at'), async (t) => {
    const good = await postJson('/echo', { text: 'hi', unknown: true })
    t.is(good.status, 201)
    t.is(good.headers['location'], '/echo/hi')
    const bad = await postJson('/echo', { text: 'far too long' })
    t.is(bad.status, 400)
    t.like(bad.json() as object, { error: 'bad_request', errors: [{ pointer: '#/text' }] })
    const absent = await postJson('/echo', {})
    t.like(absent.json() as object, { errors: [{ pointer: '#/text' }] })
  })

  for (const [title, body] of [
    ['no body at all', ''],
    ['broken JSON', '{"text":'],
    ['a text behind the JSON', '{"text":"a"} x'],
    ['bytes that are not UTF-8', new Uint8Array([0x22, 0xff, 0x22])],
    ['a byte order mark', '\ufeff{"text":"a"}'],
    ['65 levels of brackets', `${'['.repeat(65)}${']'.repeat(65)}`],
    ['100,000 open brackets', '['.repeat(100_000)],
  ] as const) {
    test(on(`${title} is a 400`), async (t) => {
      const { status, json } = await call({
        method: 'POST',
        path: '/echo',
        headers: { 'content-type': 'application/json' },
        body,
      })
      t.is(status, 400)
      t.is(json()['error'] as unknown, 'bad_request')
    })
  }

  test(on('brackets inside of strings are not levels'), async (t) => {
    const { status } = await postJson('/echo', { text: 'x', more: `"${'['.repeat(200)}\\` })
    t.is(status, 201)
  })

  for (const escape of ['\\u0000', '\\ud800', '\\uDC00', '\\ud83d\\ud83d\\ude00']) {
    test(on(`${escape} in a text is a 400 that points at it`), async (t) => {
      const send = (body: string) =>
        call({
          method: 'POST',
          path: '/echo',
          headers: { 'content-type': 'application/json' },
          body,
        })
      const { status, json } = await send(`{"text":"a${escape}"}`)
      t.is(status, 400)
      t.like(json() as object, { error: 'bad_request', errors: [{ pointer: '#/text' }] })
      t.is((await send(`{"text":"a","unknown":"${escape}"}`)).status, 201, 'the member is ignored')
      t.is(
        (await send('{"text":"\\ud83d\\ude00\\\\u0000"}')).status,
        201,
        'a pair, and six letters',
      )
    })
  }

  test(on('__proto__ in a body changes nothing'), async (t) => {
    const { status } = await call({
      method: 'POST',
      path: '/echo',
      headers: { 'content-type': 'application/json' },
      body: '{"text":"x","__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
    })
    t.is(status, 201)
    t.is(({} as Record<string, unknown>)['polluted'], undefined)
  })

  for (const [type, expected] of [
    ['application/json', 201],
    ['Application/JSON; charset=utf-8', 201],
    ['text/plain', 415],
    ['application/x-www-form-urlencoded', 415],
    ['application/jsonp', 415],
  ] as const) {
    test(on(`content type ${type} on a JSON route is ${expected}`), async (t) => {
      const { status } = await call({
        method: 'POST',
        path: '/echo',
        headers: { 'content-type': type },
        body: '{"text":"a"}',
      })
      t.is(status, expected)
    })
  }

  test(on('a compressed body is 415'), async (t) => {
    const { status } = await postJson('/echo', { text: 'a' }, { 'content-encoding': 'gzip' })
    t.is(status, 415)
  })

  for (const [accept, expected] of [
    ['application/json', 201],
    ['text/html, */*;q=0.1', 201],
    ['application/*', 201],
    ['text/html', 406],
    ['*/*, application/json;q=0', 406],
  ] as const) {
    test(on(`Accept ${accept} on a JSON route is ${expected}`), async (t) => {
      const { status } = await postJson('/echo', { text: 'a' }, { accept })
      t.is(status, expected)
    })
  }
}

function sizes({ on, call, postJson }: OnTransport): void {
  const octets = { 'content-type': 'application/octet-stream' }

  test(on('a body up to the limit arrives whole'), async (t) => {
    for (const size of [0, 1, 64 * 1024, 64 * 1024 + 1, 256 * 1024]) {
      const body = new Uint8Array(size).fill(7)
      const { status, json } = await call({ method: 'PUT', path: '/raw', headers: octets, body })
      t.is(status, 200, String(size))
      t.is(json()['bytes'] as unknown, size)
    }
  })

  test(on('a byte over the limit is 413'), async (t) => {
    const body = new Uint8Array(256 * 1024 + 1)
    const { status, json } = await call({ method: 'PUT', path: '/raw', headers: octets, body })
    t.is(status, 413)
    t.is(json()['error'] as unknown, 'payload_too_large')
  })

  test(on('a JSON body over 1 MiB is 413'), async (t) => {
    const { status } = await postJson('/echo', { text: 'a', more: 'x'.repeat(1024 * 1024) })
    t.is(status, 413)
  })

  test(on('a form over 64 KiB on an OAuth route is a problem that speaks OAuth too'), async (t) => {
    const { status, json, headers } = await call({
      method: 'POST',
      path: '/oauth/token',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: `grant_type=${'a'.repeat(64 * 1024)}`,
    })
    t.is(status, 413)
    t.is(headers['content-type'], 'application/problem+json')
    t.is(json()['error'] as unknown, 'payload_too_large')
    t.is(typeof json()['error_description'], 'string')
  })
}

function parameters({ on, call }: OnTransport): void {
  test(on('path, query and headers are checked and handed on decoded'), async (t) => {
    const { status, json } = await call({
      method: 'POST',
      path: '/things/a%20b/parts/%C3%A4?limit=5&other=1',
      headers: { 'x-probe': 'yes' },
    })
    t.is(status, 200)
    t.like(json() as object, {
      params: { thing_id: 'a b', part: 'ä' },
      query: { limit: 5 },
      headers: { 'x-probe': 'yes' },
      host: 'id.test',
      clientAddress: '127.0.0.1',
      principal: null,
    })
    t.like(json()['credentials'] as unknown as object, {
      authorization: null,
      dpopProof: null,
      httpMethod: 'POST',
      httpUrl: 'https://id.test/things/a%20b/parts/%C3%A4',
    })
  })

  for (const [path, pointer] of [
    [`/things/${'x'.repeat(21)}/parts/p`, 'path:thing_id'],
    ['/things/a/parts/p?limit=0', 'query:limit'],
    ['/things/a/parts/p?limit=x', 'query:limit'],
    ['/things/a/parts/p?limit=1&limit=2', 'query:limit'],
  ] as const) {
    test(on(`${path} is a 400 at ${pointer}`), async (t) => {
      const { status, json } = await call({ method: 'POST', path })
      t.is(status, 400)
      t.like(json() as object, { errors: [{ pointer }] })
    })
  }

  for (const path of [
    '/things/%0d%0aset-cookie:x/parts/p',
    '/things/a%2Fb/parts/p',
    '/things/%ff/parts/p',
    '/things/%/parts/p',
    '/things/%00/parts/p',
    '/things/a/parts/p?limit=%',
  ]) {
    test(on(`${path} is refused`), async (t) => {
      const { status, headers } = await call({ method: 'POST', path })
      t.is(status, 400)
      t.is(headers['set-cookie'], undefined)
    })
  }

  test(on('a header over its limit is pointed at'), async (t) => {
    const { status, json } = await call({
      method: 'POST',
      path: '/things/a/parts/p',
      headers: { 'x-probe': 'too long' },
    })
    t.is(status, 400)
    t.like(json() as object, { errors: [{ pointer: 'header:x-probe' }] })
  })
}

function forms({ on, call }: OnTransport): void {
  const postForm = (path: string, body: string) =>
    call({
      method: 'POST',
      path,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body,
    })

  test(on('an OAuth route refuses in the words of its protocol'), async (t) => {
    const good = await postForm('/oauth/token', 'grant_type=good&a=1&a=2')
    t.is(good.status, 200)
    t.is(good.headers['cache-control'], 'no-store')
    const bad = await postForm('/oauth/token', 'grant_type=other')
    t.is(bad.status, 400)
    t.is(bad.headers['content-type'], 'application/json')
    t.is(bad.headers['pragma'], 'no-cache')
    t.deepEqual(bad.json() as unknown, {
      error: 'invalid_grant',
      error_description: 'no such grant',
      error_uri: 'https://id.test/errors/invalid-grant',
      request_id: bad.headers['x-request-id'],
    })
  })

  test(on('a repeated form parameter is invalid_request'), async (t) => {
    const { status, json, headers } = await postForm('/oauth/form', 'grant_type=a&grant_type=b')
    t.is(status, 400)
    t.is(headers['content-type'], 'application/json')
    t.is(json()['error'] as unknown, 'invalid_request')
    t.is(json()['type'], undefined)
  })

  test(on('more than 200 form parameters are refused'), async (t) => {
    const form = (count: number) => Array.from({ length: count }, (_, at) => `a${at}=1`).join('&')
    t.is((await postForm('/oauth/token', `grant_type=good&${form(199)}`)).status, 200)
    t.is((await postForm('/oauth/token', `grant_type=good&${form(200)}`)).status, 400)
  })
}

function headers({ on, call, postJson }: OnTransport): void {
  test(on('an idempotency key reaches the actor and a replay is marked'), async (t) => {
    const fresh = await postJson('/echo', { text: 'a' }, { 'idempotency-key': 'first' })
    t.is(fresh.status, 201)
    t.is(fresh.headers['idempotency-replayed'], undefined)
    for (const key of ['again', '"again"']) {
      const replayed = await postJson('/echo', { text: 'a' }, { 'idempotency-key': key })
      t.is(replayed.status, 201)
      t.is(replayed.headers['idempotency-replayed'], 'true')
    }
  })

  for (const key of ['', '""', 'a'.repeat(256), 'with space', '"']) {
    test(on(`idempotency key ${JSON.stringify(key.slice(0, 12))} is judged`), async (t) => {
      const { status } = await postJson('/echo', { text: 'a' }, { 'idempotency-key': key })
      t.is(status, key === '"' ? 201 : 400)
    })
  }

  test(on('header fields beyond the caps are 431'), async (t) => {
    const many = Object.fromEntries(
      Array.from({ length: 80 }, (_, at) => [`x-filler-${at}`, 'v'] as const),
    )
    const replies = await Promise.allSettled([
      call({ path: '/hello', headers: { 'x-big': 'b'.repeat(17_000) } }),
      call({ path: '/hello', headers: many }),
    ])
    for (const reply of replies) {
      // HTTP/2 refuses the list before it is a request; over HTTP/1.1 the guard answers.
      if (reply.status === 'fulfilled') t.is(reply.value.status, 431)
      else t.pass()
    }
  })
}

onEachTransport(test, {}, (given) => {
  jsonBodies(given)
  sizes(given)
  parameters(given)
  forms(given)
  headers(given)
})
