import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { connect, constants } from 'node:http2'
import { createServer } from 'node:net'
import test from 'ava'
import { loadNative, PINNED_NATIVE_SHA256, verifyNative } from '../../gateway/transports/native.js'
import { ListenFailed } from '../../gateway/transports/open.js'
import { sendRaw, statuses } from './raw.js'
import {
  isUws,
  NODE_PARSED,
  openStage,
  type Stage,
  type StageOptions,
  TRANSPORTS,
  UWS_PARSED,
} from './stage.js'

const until = async (holds: () => boolean, withinMs = 60_000) => {
  const end = Date.now() + withinMs
  while (!holds() && Date.now() < end) await new Promise((wake) => setTimeout(wake, 20))
  return holds()
}

test('http2: a drain announces its end before it refuses streams (RFC 9113 section 6.8)', async (t) => {
  const stage = await openStage({ transport: 'http2', server: { drain_secs: 1 } })
  t.teardown(() => stage.close())
  const session = connect(stage.url, { rejectUnauthorized: false })
  await once(session, 'connect')
  const lastStreams: number[] = []
  const first = once(session, 'goaway') as Promise<[code: number, lastStream: number]>
  session.on('goaway', (_, lastStream: number) => lastStreams.push(lastStream))
  const draining = stage.gateway.drain(10_000)
  const [code] = await first
  t.is(code, constants.NGHTTP2_NO_ERROR)
  t.is(lastStreams[0], 2 ** 31 - 1, 'requests that are under way are served')
  t.true(await draining)
  await t.throwsAsync(stage.call({ path: '/hello' }))
})

test('http1: a kept connection gets an answer after the port is closed, and ends with it', async (t) => {
  const stage = await openStage({ transport: 'http1', server: { drain_secs: 5 } })
  t.teardown(() => stage.close())
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const ask = async () => {
    const [answer] = (await once(get(`${stage.url}/hello`, { agent }), 'response')) as [
      IncomingMessage,
    ]
    answer.resume()
    await once(answer, 'end')
    return answer.headers.connection
  }
  t.is(await ask(), 'keep-alive')
  const draining = stage.gateway.drain(10_000)
  t.is(await ask(), 'close')
  t.true(await draining)
})

for (const transport of TRANSPORTS) {
  const open = async (
    t: { teardown(work: () => Promise<void>): void },
    more?: Partial<StageOptions>,
  ) => {
    const stage: Stage = await openStage({ transport, ...more })
    t.teardown(() => stage.close())
    return stage
  }

  test(`${transport}: until the service has started only probes are answered`, async (t) => {
    const stage = await open(t, { notStarted: true, gateway: { startWaitMs: 100 } })
    t.is((await stage.call({ path: '/health/live' })).status, 200)
    const early = await stage.call({ path: '/hello' })
    t.is(early.status, 503)
    t.is(early.headers['retry-after'], '1')
    stage.gateway.started()
    t.is((await stage.call({ path: '/hello' })).status, 200)
  })

  test(`${transport}: a request that arrives during the start is answered after it`, async (t) => {
    const stage = await open(t, { notStarted: true })
    const early = stage.call({ path: '/hello' })
    t.is((await stage.call({ path: '/health/live' })).status, 200)
    stage.gateway.started()
    t.is((await early).status, 200)
  })

  test(`${transport}: a client that leaves stops the work it asked for`, async (t) => {
    const stage = await open(t)
    const leaving = new AbortController()
    const answer = stage.call({ method: 'POST', path: '/wait', signal: leaving.signal })
    answer.catch(() => undefined)
    t.true(await until(() => stage.notes.ran.includes('wait')))
    leaving.abort()
    await t.throwsAsync(answer)
    t.true(await until(() => stage.notes.aborted === 1))
  })

  test(`${transport}: work beyond the request time limit is abandoned with 504`, async (t) => {
    const stage = await open(t, { server: { request_timeout_secs: 1 } })
    const { status, json } = await stage.call({ method: 'POST', path: '/wait' })
    t.is(status, 504)
    t.is(json()['error'] as unknown, 'gateway_timeout')
    t.true(await until(() => stage.notes.aborted === 1))
  })

  test(`${transport}: a mailbox that is full is 503 with Retry-After, and recovers`, async (t) => {
    const stage = await open(t)
    // One address gets 12 of 16 places, and 64 wait: the last of 77 to arrive has none.
    const sent = Array.from({ length: 77 }, () => stage.call({ method: 'POST', path: '/wait' }))
    const refused = await Promise.race(sent)
    t.is(refused.status, 503)
    t.is(refused.headers['retry-after'], '1')
    t.is(stage.notes.ran.length, 12)
    const release = setInterval(() => {
      for (const wake of stage.notes.release) wake()
    }, 20)
    const replies = await Promise.all(sent)
    clearInterval(release)
    t.is(replies.filter(({ status }) => status === 200).length, 76)
  })

  test(`${transport}: draining answers what is open, takes nothing new, and ends`, async (t) => {
    const stage = await open(t)
    const open1 = stage.call({ method: 'POST', path: '/wait' })
    t.true(await until(() => stage.notes.ran.includes('wait')))
    let drained = false
    const draining = stage.gateway.drain(10_000).then(() => (drained = true))
    await new Promise((wake) => setTimeout(wake, 200))
    t.false(drained, 'it waits for the open request')
    await t.throwsAsync(openStageClient(stage))
    for (const wake of stage.notes.release) wake()
    t.is((await open1).status, 200)
    await draining
    t.true(drained)
  })

  test(`${transport}: draining gives up at its deadline`, async (t) => {
    const stage = await open(t)
    stage.call({ method: 'POST', path: '/wait' }).catch(() => undefined)
    t.true(await until(() => stage.notes.ran.includes('wait')))
    t.false(await stage.gateway.drain(300))
  })

  test(`${transport}: a port that is taken is a clear error`, async (t) => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const { port } = taken.address() as { port: number }
    t.teardown(async () => void taken.close())
    const error = await t.throwsAsync(openStage({ transport, server: { port } }), {
      instanceOf: ListenFailed,
    })
    t.regex(error!.message, new RegExp(`cannot listen on 127.0.0.1 port ${port}`))
  })

  test(`${transport}: a second gateway cannot share the port of the first`, async (t) => {
    const stage = await open(t)
    await t.throwsAsync(openStage({ transport, server: { port: stage.port } }), {
      instanceOf: ListenFailed,
    })
  })
}

/** A new connection, as a new client would open it. */
function openStageClient(stage: Stage): Promise<unknown> {
  return new Promise((resolve, reject) => {
    sendRaw(stage, 'GET /hello HTTP/1.1\r\nHost: id.test\r\n\r\n', { withinMs: 500 }).then(
      (reply) => (statuses(reply).length > 0 ? resolve(reply) : reject(new Error('no answer'))),
      reject,
    )
  })
}

for (const transport of [...UWS_PARSED, ...NODE_PARSED]) {
  test(`${transport}: after HEAD the connection takes the next request, or ends as it said`, async (t) => {
    const stage = await openStage({ transport, server: { keep_alive_secs: 5 } })
    t.teardown(() => stage.close())
    const asking = (method: string, path: string, more = '') =>
      `${method} ${path} HTTP/1.1\r\nHost: id.test\r\n${more}\r\n`
    for (const path of ['/hello', '/nothing']) {
      const parts = [asking('HEAD', path), asking('HEAD', path), asking('GET', '/hello')]
      const reply = await sendRaw(stage, parts, { gapMs: 100, withinMs: 20_000, answers: 3 })
      const expected = path === '/hello' ? 200 : 404
      t.deepEqual(statuses(reply), [expected, expected, 200], reply.text)
      t.is(reply.text.match(/content-length: /gi)?.length, 3)
      t.false(reply.closed)
    }
    const chunked = 'Transfer-Encoding: chunked\r\n'
    const parts = [`${asking('HEAD', '/hello', chunked)}0\r\n\r\n`, asking('GET', '/hello')]
    const reply = await sendRaw(stage, parts, { gapMs: 100, withinMs: 20_000 })
    if (!isUws(transport)) t.deepEqual(statuses(reply), [200, 200])
    else {
      t.deepEqual(statuses(reply), [200], 'what follows a chunked body is not read')
      t.regex(reply.text, /connection: close/i)
    }
    t.true(reply.closed, 'a connection that says nothing more does not stay forever')
  })

  for (const [title, parts, gapMs] of [
    ['a connection that says nothing', [], 0],
    [
      'a head that trickles',
      Array.from(
        { length: 40 },
        (_, at) => 'GET /hello HTTP/1.1\r\nHost: id.test\r\nX-A: bbbbb'[at] ?? 'b',
      ),
      500,
    ],
    [
      'a body that stands still',
      [
        'POST /echo HTTP/1.1\r\nHost: id.test\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"te',
      ],
      0,
    ],
    [
      'a body that trickles',
      [
        'POST /echo HTTP/1.1\r\nHost: id.test\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n',
        ...Array.from({ length: 40 }, () => '{'),
      ],
      500,
    ],
    ['an idle connection', ['GET /hello HTTP/1.1\r\nHost: id.test\r\n\r\n'], 0],
  ] as const) {
    test(`${transport}: ${title} is closed before the timeout of its request`, async (t) => {
      t.timeout(120_000)
      const server = { request_timeout_secs: 600, keep_alive_secs: 5 }
      const stage = await openStage({ transport, server })
      t.teardown(() => stage.close())
      const { closed } = await sendRaw(stage, parts, { withinMs: 90_000, gapMs })
      t.true(closed)
    })
  }
}

test('uws: a request that is being worked on for longer than 12 s is not cut', async (t) => {
  t.timeout(60_000)
  const stage = await openStage({ transport: 'uws', server: { request_timeout_secs: 60 } })
  t.teardown(() => stage.close())
  const answer = stage.call({ method: 'POST', path: '/wait' })
  await new Promise((wake) => setTimeout(wake, 14_000))
  for (const wake of stage.notes.release) wake()
  t.is((await answer).status, 200)
})

test('http2: a request that is worked on while idle connections are closed is not cut', async (t) => {
  t.timeout(60_000)
  const server = { request_timeout_secs: 120, keep_alive_secs: 5 }
  const stage = await openStage({ transport: 'http2', server })
  t.teardown(() => stage.close())
  const answer = stage.call({ method: 'POST', path: '/wait' })
  // Two that were opened later, one after the other, are closed as idle.
  for (let nth = 0; nth < 2; nth += 1) {
    const idle = connect(stage.url, { rejectUnauthorized: false })
    await once(idle, 'close')
  }
  for (const wake of stage.notes.release) wake()
  t.is((await answer).status, 200)
})

test('the native binary of this machine is the pinned one', (t) => {
  t.is(verifyNative().tag, 'verified')
})

test('a native binary with another hash is refused and never loaded', (t) => {
  const pins = Object.fromEntries(
    Object.keys(PINNED_NATIVE_SHA256).map((name) => [name, '0'.repeat(64)]),
  )
  const verdict = loadNative(pins)
  t.is(verdict.tag, 'refused')
  if (verdict.tag === 'refused') t.regex(verdict.reason, /has sha256 [0-9a-f]{64}, pinned is 0{64}/)
})

test('a certificate that cannot be read is a clear error', async (t) => {
  const tls = { cert_pem_path: '/nowhere/cert.pem', key_pem_path: '/nowhere/key.pem' }
  const error = await t.throwsAsync(openStage({ transport: 'http2', server: { tls } }), {
    instanceOf: ListenFailed,
  })
  t.regex(error!.message, /cannot read \/nowhere\/cert\.pem/)
})
