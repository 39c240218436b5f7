/** HTTP/2 upstreams: responses with unusual ends, and concurrent calls. */
import { once } from 'node:events'
import { createSecureServer, type ServerHttp2Stream, type Settings } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { createDialer } from '../../../../actors/platform/outbound-http/dialer.js'
import { createUpstreams } from '../../../../actors/platform/outbound-http/upstreams.js'
import { ByteStream } from '../../../../runtime/kernel/stream.js'
import { UPSTREAM_CERT, UPSTREAM_KEY, UPSTREAM_NAME } from '../../vault/egress/loopback-tls.js'
import { getting, run, type SignalledJob } from '../../vault/egress/running.js'

/** A little more than the relay buffers before it pauses. */
const BYTES = 300_000

/** Much shorter than the other calls. */
const LIMITS = { idleGapMs: 5_000, hopTimeoutMs: 5_000 }

async function setUp(
  t: ExecutionContext,
  serve: (stream: ServerHttp2Stream, path: string) => void,
  settings: Settings = {},
) {
  const server = createSecureServer({ key: UPSTREAM_KEY, cert: UPSTREAM_CERT, settings })
  const seen = { sessions: 0 }
  server.on('session', () => {
    seen.sessions += 1
  })
  server.on('stream', (stream, { ':path': path = '' }) => {
    stream.on('error', () => {})
    serve(stream, path)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const dialer = createDialer({
    privateNetworks: true,
    dnsOverrides: { [UPSTREAM_NAME]: '127.0.0.1' },
    ca: UPSTREAM_CERT,
    http2: true,
    sharedReads: true,
  })
  const upstreams = createUpstreams(dialer, undefined, { http2: true })
  t.teardown(async () => {
    await upstreams.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const call = async (path: string, more: Partial<SignalledJob> = {}) => {
    const { started, ended } = run(upstreams.of(`https://${UPSTREAM_NAME}:${port}`), {
      ...getting(path),
      ...more,
    })
    const start = await started
    if (start.tag === 'failed') throw new Error(JSON.stringify(start.report))
    return { body: start.body, ended }
  }
  return { call, seen }
}

async function bytesOf(body: ByteStream): Promise<number> {
  let bytes = 0
  for await (const chunk of body) bytes += chunk.byteLength
  return bytes
}

test('trailers do not overtake a body whose reader is slow', async (t) => {
  let isSent: () => void = () => undefined
  const sent = new Promise<void>((resolve) => (isSent = resolve))
  const { call } = await setUp(t, (stream) => {
    stream.respond({ ':status': 200 }, { waitForTrailers: true })
    stream.once('wantTrailers', () => {
      stream.sendTrailers({ 'server-timing': 'all;dur=1' })
      isSent()
    })
    stream.end(Buffer.alloc(BYTES, 'svc '))
  })
  const { body, ended } = await call('/')
  await sent
  await delay(200)
  t.is(await bytesOf(body), BYTES)
  t.is((await ended).outcome, 'completed')
})

test('calls with a body do not wait for others on their connection', async (t) => {
  const { call, seen } = await setUp(t, (stream, path) => {
    stream.respond({ ':status': 200 })
    if (path === '/long') stream.write('it goes on')
    else stream.pipe(stream)
  })
  const bytes = (): Partial<SignalledJob> => ({ method: 'POST', body: Buffer.from('hello') })
  const stream = (): Partial<SignalledJob> => ({
    method: 'POST',
    body: ByteStream.from(Buffer.from('hello')),
  })
  for (const sent of [bytes, stream]) {
    const long = await call('/long', sent())
    for (const each of [bytes, stream, bytes]) {
      const { body, ended } = await call('/echo', { ...each(), limits: LIMITS })
      t.is(await bytesOf(body), 5)
      t.is((await ended).outcome, 'completed')
    }
    long.body.cancel()
  }
  t.is(seen.sessions, 1)
})

test('calls beyond the stream limit use another connection', async (t) => {
  const running = new Map<unknown, number>()
  let most = 0
  const release: (() => void)[] = []
  const { call, seen } = await setUp(
    t,
    (stream, path) => {
      const { session } = stream
      running.set(session, (running.get(session) ?? 0) + 1)
      most = Math.max(most, running.get(session)!)
      stream.once('close', () => running.set(session, running.get(session)! - 1))
      stream.respond({ ':status': 200 })
      if (path === '/short') return void stream.end('done')
      stream.write('it goes on')
      release.push(() => stream.end())
    },
    { maxConcurrentStreams: 3 },
  )
  await bytesOf((await call('/short')).body)
  // All get their response while all of them run.
  const long = await Promise.all(
    Array.from({ length: 10 }, () => call('/long', { limits: LIMITS })),
  )
  t.true(most <= 3, `${most} concurrent streams`)
  t.true(seen.sessions >= 4, `${seen.sessions} connections`)
  for (const end of release) end()
  for (const { body, ended } of long) {
    t.is(await bytesOf(body), 'it goes on'.length)
    t.is((await ended).outcome, 'completed')
  }
})

test('after GOAWAY a connection takes no new calls, and running ones complete', async (t) => {
  const held: ServerHttp2Stream[] = []
  const { call, seen } = await setUp(t, (stream, path) => {
    stream.respond({ ':status': 200 })
    stream.write('part')
    if (path === '/held') held.push(stream)
    else stream.end('rest')
  })
  for (let round = 1; round < 4; round += 1) {
    const running = [await call('/held'), await call('/held', { method: 'POST' })]
    const before = seen.sessions
    const session = held[0]!.session!
    const closed = once(session, 'close')
    session.close()
    // The client answers in order, so it knows of the GOAWAY then.
    await new Promise((resolve) => session.ping(resolve))
    const others = [await call('/', { limits: LIMITS }), await call('/', { limits: LIMITS })]
    for (const { body } of others) t.is(await bytesOf(body), 8)
    t.true(seen.sessions <= before + 1, 'two at most, one of them on its way out')
    for (const stream of held.splice(0)) stream.end('rest')
    for (const { body, ended } of running) {
      t.is(await bytesOf(body), 8)
      t.is((await ended).outcome, 'completed')
    }
    await closed
  }
})

test('GOAWAY with an error aborts the running calls', async (t) => {
  const { call } = await setUp(t, (stream, path) => {
    stream.respond({ ':status': 200 })
    stream.write('part')
    if (path === '/') stream.end('rest')
    else setTimeout(() => stream.session?.goaway(2), 100)
  })
  const { body, ended } = await call('/held')
  await t.throwsAsync(bytesOf(body))
  t.is((await ended).outcome, 'upstream_error')
  t.is(await bytesOf((await call('/', { limits: LIMITS })).body), 8)
})

const REFUSED_STREAM = 7

test('an unprocessed call is retried once on another connection', async (t) => {
  const refused = { '/goaway': 0, '/goaway-for-an-error': 0, '/refused': 0, '/always': 0 }
  type Habit = keyof typeof refused
  const of = new Map<unknown, string[]>()
  const { call } = await setUp(t, (stream, path) => {
    const { session } = stream
    of.set(session, [...(of.get(session) ?? []), path])
    if (path in refused) {
      const habit = path as Habit
      refused[habit] += 1
      if (refused[habit] === 1 || habit === '/always') {
        // Everything before it was processed.
        if (habit === '/goaway') return session!.goaway(0, stream.id! - 2)
        if (habit === '/goaway-for-an-error') return session!.goaway(11, stream.id! - 2)
        return stream.close(REFUSED_STREAM)
      }
    }
    stream.respond({ ':status': 200 })
    if (stream.readableEnded) stream.end('none')
    else stream.pipe(stream)
  })
  for (const habit of ['/goaway', '/goaway-for-an-error', '/refused'] as const) {
    for (const sent of [null, Buffer.from('hello')]) {
      refused[habit] = 0
      // The connection has served a call already.
      t.is(await bytesOf((await call('/', { method: 'POST', body: Buffer.from('1') })).body), 1)
      const { body, ended } = await call(habit, { method: 'POST', body: sent, limits: LIMITS })
      t.is(await bytesOf(body), sent?.byteLength ?? 0, habit)
      t.like(await ended, { outcome: 'completed', requestBytes: sent?.byteLength ?? 0 })
      t.is(refused[habit], 2, habit)
      const once = [...of.values()].filter((paths) => paths.filter((path) => path === habit).length)
      t.is(once.length, 2, 'on two connections')
      of.clear()
    }
    // A partly read body cannot be sent again.
    refused[habit] = 0
    const streamed = ByteStream.from(Buffer.from('hello'))
    await t.throwsAsync(call(habit, { method: 'POST', body: streamed, limits: LIMITS }))
    t.is(refused[habit], 1, habit)
    of.clear()
  }
  await t.throwsAsync(call('/always', { limits: LIMITS }), { message: /upstream_error/ })
  t.is(refused['/always'], 2)
})

test('a call that may have been processed is not retried', async (t) => {
  let calls = 0
  const { call } = await setUp(t, (stream, path) => {
    calls += 1
    if (path === '/goaway') stream.session!.goaway(2, stream.id!)
    else stream.close(2)
  })
  for (const path of ['/goaway', '/reset']) {
    calls = 0
    await t.throwsAsync(call(path, { limits: LIMITS }), { message: /upstream_error/ })
    await delay(200)
    t.is(calls, 1, path)
  }
})

test('other calls continue after a refused one', async (t) => {
  let first = true
  const long: ServerHttp2Stream[] = []
  const { call } = await setUp(t, (stream, path) => {
    if (path === '/refused' && first) {
      first = false
      stream.session!.goaway(0, stream.id! - 2)
      return
    }
    stream.respond({ ':status': 200 })
    stream.write('part')
    if (path === '/long') long.push(stream)
    else stream.end('rest')
  })
  const running = await call('/long')
  const { body } = await call('/refused', { limits: LIMITS })
  t.is(await bytesOf(body), 8)
  long[0]!.end('rest')
  t.is(await bytesOf(running.body), 8)
  t.is((await running.ended).outcome, 'completed')
})
