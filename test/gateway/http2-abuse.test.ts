/** Attacks of HTTP/2 clients. */
import { connect as connectHttp2, constants, type ClientHttp2Session } from 'node:http2'
import { connect as connectTls } from 'node:tls'
import test, { type ExecutionContext } from 'ava'
import { openStage, type Stage } from './stage.js'

async function open(t: ExecutionContext, server: Record<string, unknown> = {}): Promise<Stage> {
  const stage = await openStage({ transport: 'http2', server })
  t.teardown(() => stage.close())
  return stage
}

function client(t: ExecutionContext, stage: Stage, options = {}): ClientHttp2Session {
  const session = connectHttp2(`https://localhost:${stage.port}`, {
    ca: stage.certificate!.pem,
    ...options,
  })
  session.on('error', () => undefined)
  t.teardown(() => session.destroy())
  return session
}

type Ended = { readonly status: number; readonly code: number }

function request(
  session: ClientHttp2Session,
  headers: Record<string, string | string[]>,
): Promise<Ended> {
  return new Promise((resolve, reject) => {
    let status = 0
    const stream = session.request(headers)
    stream.on('response', (received) => (status = received[':status'] ?? 0))
    stream.on('error', () => undefined)
    stream.on('close', () => resolve({ status, code: stream.rstCode }))
    stream.resume()
    session.once('close', () => resolve({ status, code: -1 }))
    setTimeout(() => reject(new Error('neither answered nor closed')), 10_000).unref()
  })
}

const hello = { ':path': '/hello', ':authority': 'id.test' }

test('a client that offers only http/1.1 is refused in the handshake', async (t) => {
  const stage = await open(t)
  const error = await new Promise<Error>((resolve) => {
    const socket = connectTls({
      port: stage.port,
      ca: stage.certificate!.pem,
      servername: 'localhost',
      ALPNProtocols: ['http/1.1'],
    })
    socket.on('error', resolve)
    socket.on('secureConnect', () => resolve(new Error('it was let in')))
  })
  t.regex(error.message, /no application protocol|alert/i)
})

test('a client without ALPN gets an answer and is disconnected', async (t) => {
  const stage = await open(t)
  const text = await new Promise<string>((resolve, reject) => {
    let received = ''
    const socket = connectTls({
      port: stage.port,
      ca: stage.certificate!.pem,
      servername: 'localhost',
    })
    socket.on('secureConnect', () => socket.write('GET /hello HTTP/1.1\r\nHost: id.test\r\n\r\n'))
    socket.on('data', (chunk: Buffer) => (received += chunk.toString()))
    socket.on('error', () => resolve(received))
    socket.on('close', () => resolve(received))
    setTimeout(() => reject(new Error('it was not cut')), 10_000).unref()
  })
  t.regex(text, /^(HTTP\/1\.[01] 403|$)/)
  t.notRegex(text, /hello/)
})

test('a client that cancels too many streams loses its session', async (t) => {
  t.timeout(120_000)
  const stage = await open(t)
  const session = client(t, stage)
  const closed = new Promise<void>((resolve) => session.on('close', () => resolve()))
  await new Promise<void>((resolve) => session.once('remoteSettings', () => resolve()))
  let sent = 0
  // A stream that is closed before its HEADERS left is dropped by the client itself, so each is
  // cancelled only after a PING that was sent behind a batch has come back.
  while (!session.destroyed && sent < 400) {
    const streams = Array.from({ length: 20 }, () =>
      session
        .request({ ...hello, ':method': 'POST', ':path': '/wait' })
        .on('error', () => undefined),
    )
    sent += streams.length
    await Promise.race([closed, new Promise((resolve) => session.ping(resolve))])
    for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL)
  }
  await closed
  t.true(sent < 400, `it took ${sent} resets`)
  t.is((await stage.call({ path: '/hello' })).status, 200, 'others are still answered')
})

test('a header list over the announced size gets no further than the transport', async (t) => {
  const stage = await open(t)
  const session = client(t, stage)
  const { status } = await request(session, { ...hello, 'x-big': 'b'.repeat(40_000) })
  t.true(status === 0 || status === 431, String(status))
  t.is((await stage.call({ path: '/hello' })).status, 200)
})

test('more header fields than the cap are refused', async (t) => {
  const stage = await open(t)
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`x-${at}`, 'v'] as const))
  const { status } = await request(client(t, stage), { ...hello, ...many })
  t.true(status === 0 || status === 431, String(status))
})

test('an :authority that contradicts Host is a 400', async (t) => {
  const stage = await open(t)
  const session = client(t, stage)
  t.is((await request(session, { ...hello, host: 'evil.test' })).status, 400)
  t.is((await request(session, { ...hello, host: 'ID.test' })).status, 200)
})

test('connection-specific fields and two lengths never reach a route', async (t) => {
  const stage = await open(t)
  const session = client(t, stage)
  for (const fields of [
    { 'transfer-encoding': 'chunked' },
    { 'content-length': ['2', '3'] },
    { authorization: ['Bearer good', 'Bearer other'] },
  ]) {
    const ended = await request(session, { ...hello, ...(fields as Record<string, string>) }).catch(
      () => ({ status: 0, code: -2 }),
    )
    t.not(ended.status, 200, JSON.stringify(fields))
  }
})

test('more than 100 concurrent streams are not opened', async (t) => {
  const stage = await open(t)
  const session = client(t, stage)
  await new Promise<void>((resolve) => session.once('remoteSettings', () => resolve()))
  t.is(session.remoteSettings.maxConcurrentStreams, 100)
  t.is(session.remoteSettings.maxHeaderListSize, 16 * 1024)
})

test('a body that does not come is answered 408 before the timeout of its request', async (t) => {
  t.timeout(60_000)
  const stage = await open(t, { request_timeout_secs: 600 })
  const session = client(t, stage)
  const stream = session.request({
    ':method': 'POST',
    ':path': '/echo',
    ':authority': 'id.test',
    'content-type': 'application/json',
  })
  stream.on('error', () => undefined)
  stream.write('{"te')
  const status = await new Promise<number>((resolve) => {
    stream.on('response', (received) => resolve(received[':status'] ?? 0))
  })
  t.is(status, 408)
  stream.close()
})

test('an empty body is answered when its stream stays open', async (t) => {
  const stage = await open(t)
  const session = client(t, stage)
  for (let nth = 0; nth < 150; nth += 1) {
    const stream = session.request({
      ':method': 'POST',
      ':path': '/echo',
      ':authority': 'id.test',
      'content-type': 'application/json',
      'content-length': '0',
    })
    stream.on('error', () => undefined)
    const status = await new Promise<number>((resolve) =>
      stream.on('response', (received) => resolve(received[':status'] ?? 0)),
    )
    t.is(status, 400)
    stream.resume()
    // Open streams count towards the 100 of a connection.
    await new Promise((resolve) => stream.on('close', resolve))
    t.is(stream.rstCode, constants.NGHTTP2_NO_ERROR)
  }
})

test('2,000 PING frames and 500 SETTINGS change nothing for others', async (t) => {
  const stage = await open(t)
  const session = client(t, stage, { maxOutstandingPings: 5_000 })
  await new Promise<void>((resolve) => session.once('connect', () => resolve()))
  for (let sent = 0; sent < 2_000 && !session.destroyed; sent += 1) {
    session.ping(() => undefined)
    if (sent % 4 === 0 && !session.destroyed) session.settings({ initialWindowSize: 70_000 + sent })
  }
  t.is((await stage.call({ path: '/hello' })).status, 200)
})

/** A frame of HTTP/2 (RFC 9113 section 4.1). */
function frame(type: number, flags: number, streamId: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(streamId, 5)
  return Buffer.concat([head, payload])
}

/** Literal fields without indexing, each shorter than 127 bytes (RFC 7541 section 6.2.2). */
function literals(fields: readonly (readonly [name: string, value: string])[]): Buffer {
  const text = (word: string) => Buffer.concat([Buffer.of(word.length), Buffer.from(word)])
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.of(0), text(name), text(value)]))
}

const HEADERS = 1
const RST_STREAM = 3
const SETTINGS = 4
/** END_STREAM and END_HEADERS. */
const WHOLE = 0x5

/** The answer to a request with these fields: `headers`, or the reset code. */
function sendFields(stage: Stage, more: readonly (readonly [string, string])[]) {
  return new Promise<'headers' | number>((resolve, reject) => {
    const socket = connectTls({
      port: stage.port,
      ca: stage.certificate!.pem,
      servername: 'localhost',
      ALPNProtocols: ['h2'],
    })
    const fields = [
      [':method', 'GET'],
      [':scheme', 'https'],
      [':path', '/hello'],
      [':authority', 'id.test'],
      ...more,
    ] as const
    socket.once('secureConnect', () => {
      socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
      socket.write(frame(SETTINGS, 0, 0, Buffer.alloc(0)))
      socket.write(frame(HEADERS, WHOLE, 1, literals(fields)))
    })
    let received: Buffer = Buffer.alloc(0)
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      while (received.length >= 9) {
        const whole = 9 + received.readUIntBE(0, 3)
        if (received.length < whole) return
        const type = received.readUInt8(3)
        if (type === HEADERS) resolve('headers')
        if (type === RST_STREAM) resolve(received.readUInt32BE(9))
        if (type === HEADERS || type === RST_STREAM) return void socket.destroy()
        received = received.subarray(whole)
      }
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('closed without an answer')))
  })
}

test('a repeated single-value field resets the stream', async (t) => {
  const stage = await open(t)
  const good = ['authorization', 'Bearer good'] as const
  t.is(await sendFields(stage, [good]), 'headers')
  t.is(await sendFields(stage, [['cookie', 'a=1'], good, ['cookie', 'b=2']]), 'headers')
  for (const name of ['authorization', 'content-type', 'host']) {
    const twice = [
      [name, 'id.test'],
      [name, 'id.test'],
    ] as const
    t.is(await sendFields(stage, twice), constants.NGHTTP2_PROTOCOL_ERROR, name)
  }
})
