/**
 * Rare HTTP/1.1 requests that RFC 9112 allows: chunk extensions, trailers, pipelining, absolute-form and `*` targets,
 * CONNECT. node:http supports all of them. docs/concepts/gateway.md lists the differences of uWebSockets.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import test, { type ExecutionContext } from 'ava'
import { connectRaw, type RawReply, readyEvent, sendRaw, statuses } from './raw.js'
import {
  isUws,
  NODE_PARSED,
  openStage,
  type StageOptions,
  type Transport,
  UWS_PARSED,
} from './stage.js'

const HOST = 'Host: id.test\r\n'
const get = (target: string, headers = HOST) => `GET ${target} HTTP/1.1\r\n${headers}\r\n`
const HELLO = get('/hello')
const post = (headers: string, body: string) =>
  `POST /echo HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n${headers}\r\n${body}`
const chunked = (body: string) => post('Transfer-Encoding: chunked\r\n', body)
const GOOD = 'f\r\n{"text":"good"}\r\n0\r\n\r\n'

async function open(t: ExecutionContext, transport: Transport, more?: Partial<StageOptions>) {
  const stage = await openStage({ transport, ...more })
  t.teardown(() => stage.close())
  return stage
}

/** In a separate process, because the library reads its head limit from the environment when it is loaded. */
async function ofItsOwn(t: ExecutionContext): Promise<{ readonly port: number }> {
  const child = fork(fileURLToPath(new URL('./uws-process.js', import.meta.url)))
  t.teardown(() => child.kill())
  const [message] = (await once(child, 'message')) as [{ port: number }]
  return message
}

/** Checks for a problem document with a request id, as opposed to a page of the library. */
function isProblem(t: ExecutionContext, { text }: RawReply, status: number): void {
  t.regex(text, new RegExp(`^HTTP/1\\.1 ${status} `))
  t.regex(text, /content-type: application\/problem\+json/i)
  const [, id] = /x-request-id: ([0-9a-f-]{36})/i.exec(text) ?? []
  t.truthy(id, text)
  t.true(text.includes(`"request_id":"${id}"`))
  t.false(text.includes('<h1>'))
}

for (const [what, body] of [
  ['extensions', 'f;x=1;y="a;b"\r\n{"text":"good"}\r\n0;last\r\n\r\n'],
  ['trailers', 'f\r\n{"text":"good"}\r\n0\r\nX-Check: 1\r\nAuthorization: Bearer good\r\n\r\n'],
  ['neither', GOOD],
] as const) {
  for (const transport of NODE_PARSED) {
    test(`${transport}: a chunked body with ${what} is read, and what follows is answered after it`, async (t) => {
      for (const parts of [[chunked(body) + HELLO], [chunked(body), HELLO], [...chunked(body)]]) {
        const stage = await open(t, transport)
        const expected = parts.length > 2 ? [201] : [201, 200]
        const limits = { gapMs: 1, withinMs: 60_000, answers: expected.length }
        const reply = await sendRaw(stage, parts, limits)
        t.deepEqual(statuses(reply), expected, reply.text)
        t.deepEqual(stage.notes.ran, ['good'])
      }
    })
  }
}

for (const transport of NODE_PARSED) {
  test(`${transport}: a request line of another version of HTTP is 505, and the connection ends`, async (t) => {
    const stage = await open(t, transport)
    for (const version of ['', ' HTTP/0.9', ' HTTP/2.0', ' HTTP/3.0', ' HTTP/1.2']) {
      const reply = await sendRaw(stage, `GET /hello${version}\r\n${HOST}\r\n${HELLO}`)
      t.deepEqual(statuses(reply), [505], `${version}: ${reply.text}`)
      isProblem(t, reply, 505)
    }
    t.deepEqual(
      statuses(
        await sendRaw(stage, `POST /echo\r\n${HOST}Content-Length: 15\r\n\r\n{"text":"good"}`),
      ),
      [505],
    )
    t.deepEqual(stage.notes.ran, [])
    // What begins HTTP/2 is no request of HTTP/1.
    const [status] = statuses(await sendRaw(stage, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'))
    t.true(status === 400 || status === 505, String(status))
  })
}

for (const transport of NODE_PARSED) {
  test(`${transport}: a trailer is never taken for a header field`, async (t) => {
    const stage = await open(t, transport)
    const body = '0\r\nAuthorization: Bearer good\r\nContent-Type: text/plain\r\n\r\n'
    const request = `POST /see/1?limit=1 HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n${body}`
    const [status] = statuses(await sendRaw(stage, request))
    t.true(status === 401 || status === 404 || status === 405, String(status))
  })
}

for (const transport of NODE_PARSED) {
  test(`${transport}: a chunk that is malformed is 400, and the connection ends`, async (t) => {
    const stage = await open(t, transport)
    const reply = await sendRaw(stage, chunked('zz\r\n{}\r\n0\r\n\r\n') + HELLO)
    isProblem(t, reply, 400)
    t.deepEqual(statuses(reply), [400])
    t.true(reply.closed)
  })
}

for (const transport of NODE_PARSED) {
  test(`${transport}: nonsense behind a request that is still at work takes nothing from its answer`, async (t) => {
    const stage = await open(t, transport)
    const wait = `POST /wait HTTP/1.1\r\n${HOST}Content-Length: 0\r\n\r\n`
    const sent = sendRaw(stage, [wait, '\x00\x01 nonsense\r\n\r\n'], { withinMs: 5_000 })
    const release = setInterval(() => {
      if (stage.notes.ran.includes('wait')) for (const wake of stage.notes.release) wake()
    }, 200)
    t.teardown(() => clearInterval(release))
    const reply = await sent
    // The invalid bytes can arrive before or after the answer, so they get 400 or no answer.
    t.is(statuses(reply)[0], 200, reply.text)
    t.true(reply.text.includes('{"status":"waited"}'))
    t.true(reply.closed)
  })
}

test('uws: a request that is sent behind a chunked body costs the first one no answer', async (t) => {
  const stage = await open(t, 'uws')
  const wait = `POST /wait HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`
  const release = setInterval(() => {
    if (stage.notes.ran.includes('wait')) for (const wake of stage.notes.release) wake()
  }, 1_000)
  t.teardown(() => clearInterval(release))
  const canary = `DELETE /things/canary HTTP/1.1\r\n${HOST}\r\n`
  const reply = await sendRaw(stage, [wait, canary], { gapMs: 300, withinMs: 5_000 })
  t.deepEqual(statuses(reply), [200], reply.text)
  t.regex(reply.text, /\{"status":"waited"\}/)
  t.true(reply.closed)
  t.false(stage.notes.ran.includes('remove canary'))
})

for (const [target, host, status] of [
  ['http://id.test/hello', 'id.test', 200],
  ['HTTP://ID.test/hello?x=1', 'id.test', 200],
  ['https://id.test/hello', 'id.test', 200],
  ['http://id.test', 'id.test', 200],
  // The target determines the host (RFC 9112 section 3.2.2).
  ['http://id.test/hello', 'elsewhere.test', 200],
  ['http://elsewhere.test/hello', 'id.test', 421],
  ['http://user@id.test/hello', 'id.test', 400],
  ['ftp://id.test/hello', 'id.test', 400],
] as const) {
  for (const transport of NODE_PARSED) {
    test(`${transport}: the target ${target} with Host ${host} is ${status}`, async (t) => {
      const stage = await open(t, transport, { server: { allowed_hosts: ['id.test'] } })
      const reply = await sendRaw(stage, get(target, `Host: ${host}\r\n`))
      t.deepEqual(statuses(reply), [status], reply.text)
      t.regex(reply.text, /x-request-id: [0-9a-f-]{36}/i)
    })
  }
}

for (const transport of NODE_PARSED) {
  test(`${transport}: OPTIONS of the server itself is answered, and * means nothing to other methods`, async (t) => {
    const stage = await open(t, transport)
    for (const target of ['*', 'http://id.test']) {
      const reply = await sendRaw(stage, `OPTIONS ${target} HTTP/1.1\r\n${HOST}\r\n`)
      t.deepEqual(statuses(reply), [204], reply.text)
      t.regex(reply.text, /allow: GET, HEAD, POST/i)
      t.regex(reply.text, /x-request-id: /i)
    }
    isProblem(t, await sendRaw(stage, get('*')), 400)
  })
}

for (const transport of NODE_PARSED) {
  test(`${transport}: CONNECT is 405`, async (t) => {
    const stage = await open(t, transport)
    const reply = await sendRaw(stage, `CONNECT id.test:443 HTTP/1.1\r\n${HOST}\r\n`)
    isProblem(t, reply, 405)
    t.regex(reply.text, /allow: GET, HEAD, POST/i)
    t.true(reply.closed)
  })
}

for (const [transport, chars] of [
  ['http1', 17_000],
  ['http1', 40_000],
  ['http1', 1024 * 1024],
  ['tls', 17_000],
  ['tls', 40_000],
  ['tls', 1024 * 1024],
  ['uws', 17_000],
  ['uws', 60_000],
] as const) {
  test(`${transport}: a target of ${chars} characters is 414`, async (t) => {
    const target = isUws(transport) ? await ofItsOwn(t) : await open(t, transport)
    const reply = await sendRaw(target, get(`/${'a'.repeat(chars)}`))
    isProblem(t, reply, 414)
    t.deepEqual(statuses(reply), [414])
  })
}

test('uws: a head of 12 KiB in several segments is read', async (t) => {
  const { port } = await ofItsOwn(t)
  const request = get('/hello', `${HOST}Cookie: a=${'b'.repeat(12_000)}\r\n`)
  const parts = [request.slice(0, 5_000), request.slice(5_000, 10_000), request.slice(10_000)]
  t.deepEqual(statuses(await sendRaw(port, parts)), [200])
})

for (const transport of NODE_PARSED) {
  test(`${transport}: a request without any header field is 400 immediately`, async (t) => {
    const stage = await open(t, transport)
    const reply = await sendRaw(stage, 'GET /hello HTTP/1.1\r\n\r\n')
    isProblem(t, reply, 400)
    t.true(reply.closed)
  })
}

for (const transport of [...UWS_PARSED, ...NODE_PARSED]) {
  for (const [framing, frame] of [
    ['Content-Length', (size: number) => [`Content-Length: ${size}\r\n`, '', '']],
    [
      'chunks',
      (size: number) => [
        'Transfer-Encoding: chunked\r\n',
        `${size.toString(16)}\r\n`,
        '\r\n0\r\n\r\n',
      ],
    ],
  ] as const) {
    test(`${transport}: a client that writes 8 MiB by ${framing}, to be closed, before it reads comes to the 413`, async (t) => {
      const stage = await open(t, transport)
      const size = 8 * 1024 * 1024
      const [field, before, after] = frame(size)
      const head = `PUT /raw HTTP/1.1\r\n${HOST}Content-Type: application/octet-stream\r\nConnection: close\r\n`
      const socket = connectRaw(stage)
      await once(socket, readyEvent(stage))
      socket.pause()
      const failed: Error[] = []
      socket.on('error', (error) => failed.push(error))
      socket.write(`${head}${field}\r\n${before}`)
      const chunk = Buffer.alloc(64 * 1024, 7)
      for (let left = size; left > 0 && failed.length === 0; left -= chunk.length) {
        if (!socket.write(chunk)) await Promise.race([once(socket, 'drain'), once(socket, 'close')])
      }
      socket.write(after!)
      let text = ''
      socket.on('data', (data) => (text += String(data)))
      socket.resume()
      await once(socket, 'close')
      t.deepEqual(failed, [])
      isProblem(t, { text, closed: true }, 413)
    })
  }
}

test('http2: OPTIONS of the server itself is answered', async (t) => {
  const stage = await open(t, 'http2')
  const options = await stage.call({ method: 'OPTIONS', path: '*' })
  t.is(options.status, 204)
  t.regex(options.headers['allow'] ?? '', /^GET, HEAD, POST/)
  t.truthy(options.headers['x-request-id'])
})

for (const transport of NODE_PARSED) {
  for (const [what, request, status] of [
    ['two Host fields', get('/hello', HOST + 'Host: other.test\r\n'), 400],
    ['the same Host twice', get('/hello', HOST + HOST), 400],
    ['no Host', get('/hello', 'Accept: */*\r\n'), 400],
    ['a coding before chunked', post('Transfer-Encoding: gzip, chunked\r\n', GOOD), 501],
    ['a coding without chunked', post('Transfer-Encoding: gzip\r\n', 'x'), 501],
    ['an unknown coding', post('Transfer-Encoding: cunked\r\n', 'x'), 501],
    ['HTTP/1.0 without Host', 'GET /hello HTTP/1.0\r\n\r\n', 400],
  ] as const) {
    test(`${transport}: ${what} is ${status}, and the connection ends`, async (t) => {
      const stage = await open(t, transport)
      const reply = await sendRaw(stage, request + HELLO)
      isProblem(t, reply, status)
      t.deepEqual(statuses(reply), [status])
      t.true(reply.closed)
      t.deepEqual(stage.notes.ran, [])
    })
  }

  test(`${transport}: a health check in HTTP/1.0 without Host is answered`, async (t) => {
    const stage = await open(t, transport)
    for (const method of ['GET', 'HEAD']) {
      const reply = await sendRaw(stage, `${method} /health/live HTTP/1.0\r\n\r\n`)
      t.deepEqual(statuses(reply), [200], reply.text)
      t.true(reply.closed)
    }
  })
}
