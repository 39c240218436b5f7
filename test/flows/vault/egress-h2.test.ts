/** HTTP/2 upstreams that violate the protocol. */
import { once } from 'node:events'
import {
  createSecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import test from 'ava'
import { UPSTREAM_CERT, UPSTREAM_KEY } from '../../actors/vault/egress/loopback-tls.js'
import type { Json } from '../../support/api.js'
import { notThrough } from '../../support/fleet/through.js'
import { until } from '../../support/service/watch.js'
import {
  bodyCall,
  closedCalls,
  egressHouse,
  settingOf,
  UPSTREAM_NAME,
} from '../../support/vault/egress.js'
import { IS_LONG } from '../../support/runs.js'

const NO_ERROR = 0
const REFUSED_STREAM = 7
const CANCEL = 8
/** Every error code of RFC 9113 section 7, of which the daily form sends those that mean something to a client. */
const CODES = IS_LONG
  ? Array.from({ length: 14 }, (_, code) => code)
  : [NO_ERROR, 2, REFUSED_STREAM, CANCEL]
/** More than the flow-control window of a stream. */
const LARGE = Buffer.alloc(600_000, 'svc ')
/** Each as long as the limit. */
const UPLOADS = IS_LONG ? 3 : 1

const resources = await egressHouse()
const server = createSecureServer({ key: UPSTREAM_KEY, cert: UPSTREAM_CERT })

const LONG = 'v'.repeat(300)
const muted = new WeakSet<object>()
let mutes = 0
/** Uploads: reset codes of aborted ones, and number of complete ones. */
const resets: number[] = []
let wholes = 0
/** Requests to the upstream that refuses some. */
let asked = 0

type Habit = (stream: ServerHttp2Stream, code: number, fields: IncomingHttpHeaders) => void
const habits: Readonly<Record<string, Habit>> = {
  announced(stream, code) {
    stream.respond({ ':status': 200, 'content-length': 7 })
    stream.write('part')
    setTimeout(() => (code === NO_ERROR ? stream.destroy() : stream.close(code)), 50)
  },
  open(stream, code) {
    stream.respond({ ':status': 200 })
    stream.write('part')
    setTimeout(() => {
      // Pending data delays the END_STREAM of `close` until after the reset.
      stream.write(LARGE)
      stream.close(code)
    }, 50)
  },
  whole(stream) {
    stream.respond({ ':status': 200, 'content-length': 7 })
    stream.end('partial')
  },
  // The response is complete and the rest of the request is not needed (RFC 9113 section 8.1).
  early(stream) {
    stream.respond({ ':status': 200 })
    stream.end('partial')
    stream.once('finish', () => stream.close(NO_ERROR))
  },
  nothing(stream) {
    stream.respond({ ':status': 200 }, { endStream: true })
  },
  // Echoes the request.
  echo(stream, _, fields) {
    stream.respond({
      ':status': 200,
      'x-ratelimit-method': fields[':method'],
      'x-ratelimit-length': fields['content-length'],
    })
    stream.pipe(stream)
  },
  // Reads uploads and records aborted ones.
  reading(stream) {
    stream.resume()
    stream.once('close', () => void resets.push(stream.rstCode))
    stream.once('end', () => {
      if (!stream.aborted) wholes += 1
    })
  },
  // The first of two is not processed.
  refusing(stream, code, fields) {
    asked += 1
    if (asked % 2 === 0) return habits['echo']!(stream, code, fields)
    if (code === NO_ERROR) stream.session!.goaway(NO_ERROR, stream.id! - 2)
    else stream.close(code)
  },
  // Never responds on this connection.
  mute(stream) {
    stream.resume()
    muted.add(stream.session!)
    mutes += 1
  },
  // More fields than node:http2 accepts; it counts them until it refuses all streams.
  lavish(stream) {
    const fields = Object.fromEntries(Array.from({ length: 150 }, (_, at) => [`x-${at}`, LONG]))
    stream.respond({ ':status': 200, ...fields })
    stream.end('partial')
  },
  leaving(stream) {
    stream.respond({ ':status': 200 })
    stream.write('part')
    setTimeout(() => stream.session?.destroy(), 50)
  },
}
server.on('stream', (stream, fields) => {
  const { ':path': path = '', ':method': method } = fields
  stream.on('error', () => {})
  const [, habit = '', code] = path.split('/')
  if (muted.has(stream.session!)) return
  if (method === 'HEAD' && habit !== 'echo') {
    return void stream.respond({ ':status': 200, 'content-length': 7 }, { endStream: true })
  }
  habits[habit]!(stream, Number(code), fields)
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const origin = `https://${UPSTREAM_NAME}:${(server.address() as AddressInfo).port}`
const sessions = new Set<ServerHttp2Session>()
server.on('session', (session) => sessions.add(session))
test.after.always(async () => {
  server.close()
  // The service keeps them for other calls.
  for (const session of sessions) session.destroy()
})

const METHODS = IS_LONG
  ? ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']
  : ['GET', 'POST', 'HEAD']

type Setting = Awaited<ReturnType<typeof settingOf>>
const callerOf =
  (setting: Setting) =>
  (path: string, stream: boolean, method = 'GET', body?: AsyncGenerator<Uint8Array>) =>
    resources.send('/v1/proxy/body', {
      token: setting.direct,
      ...(body === undefined ? {} : { body: body as never }),
      headers: bodyCall(setting, origin + path, {
        'x-svc-method': method,
        'x-svc-stream-response': String(stream),
      }),
    })

test.serial('a response shorter than its Content-Length does not look complete', async (t) => {
  const setting = await settingOf(resources)
  const call = callerOf(setting)
  const whole = await call('/whole', false)
  t.is(await whole.body.text(), 'partial')
  const head = await call('/whole', false, 'HEAD')
  t.is(head.statusCode, 200)
  t.is(head.headers['x-svc-upstream-content-length'], '7')
  t.is(whole.headers['x-svc-upstream-content-length'], undefined)
  await head.body.dump()
  for (const code of [NO_ERROR, CANCEL, 2]) {
    const buffered = await call(`/announced/${code}`, false)
    t.is(buffered.statusCode, 502, `${code}: ${await buffered.body.text()}`)
    t.is(buffered.headers['proxy-status'], 'svc-egress; error=http_response_incomplete')
    const streamed = await call(`/announced/${code}`, true)
    t.is(streamed.statusCode, 200)
    await t.throwsAsync(streamed.body.text(), undefined, String(code))
  }
  const closed = await closedCalls(resources, setting.tenantId, 8)
  const outcomes = closed.map(({ outcome }) => outcome)
  t.deepEqual(outcomes, ['completed', 'completed', ...Array<string>(6).fill('upstream_error')])
})

test.serial('a reset response does not look complete, for any error code', async (t) => {
  const setting = await settingOf(resources)
  const call = callerOf(setting)
  for (const code of CODES) {
    const buffered = await call(`/open/${code}`, false)
    t.is(buffered.statusCode, 502, `${code}`)
    await buffered.body.dump()
    t.is(buffered.headers['proxy-status'], 'svc-egress; error=http_response_incomplete')
    const streamed = await call(`/open/${code}`, true)
    t.is(streamed.statusCode, 200)
    await t.throwsAsync(streamed.body.text(), undefined, String(code))
  }
  const left = await call('/leaving', false)
  t.is(left.statusCode, 502, await left.body.text())
  const closed = await closedCalls(resources, setting.tenantId, CODES.length * 2 + 1)
  t.true(closed.every(({ outcome }) => outcome === 'upstream_error'))
})

test.serial(
  'a response without Content-Length that ends is complete, with or without upload',
  async (t) => {
    const setting = await settingOf(resources)
    const call = callerOf(setting)
    for (const stream of [true, false]) {
      const early = await call('/early', stream)
      t.is(await early.body.text(), 'partial')
      let isRead: () => void = () => undefined
      const read = new Promise<void>((resolve) => (isRead = resolve))
      async function* upload() {
        yield Buffer.from('the first of it')
        await read
      }
      const unread = await call('/early', stream, 'POST', upload())
      t.is(await unread.body.text(), 'partial')
      isRead()
      const nothing = await call('/nothing', stream)
      t.is(nothing.statusCode, 200)
      t.is(await nothing.body.text(), '')
    }
    const closed = await closedCalls(resources, setting.tenantId, 6)
    t.true(closed.every(({ outcome }) => outcome === 'completed'))
  },
)

test.serial('every method can have a body and does not affect the next call', async (t) => {
  const setting = await settingOf(resources)
  const call = callerOf(setting)
  const described = (method: string, more: Json) =>
    resources.send('/v1/proxy', {
      token: setting.delegated,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        credential_id: setting.credentialId,
        url: `${origin}/echo`,
        method,
        ...more,
      }),
    })
  async function* upload() {
    yield Buffer.from('some')
    yield Buffer.from('thing')
  }
  let calls = 0
  for (const method of METHODS) {
    const sent: [string, Awaited<ReturnType<typeof call>>, string | undefined][] = [
      ['something', await described(method, { body: 'something' }), '9'],
      ['something', await described(method, { body: 'something', stream: true }), '9'],
      ['', await described(method, { body: '' }), undefined],
      ['something', await call('/echo', false, method, upload()), undefined],
      ['something', await call('/echo', true, method, upload()), undefined],
      ['', await call('/echo', true, method), undefined],
    ]
    for (const [body, answer, length] of sent) {
      const text = await answer.body.text()
      t.is(answer.statusCode, 200, `${method} ${body}: ${text}`)
      t.is(text, method === 'HEAD' ? '' : body, method)
      t.is(answer.headers['x-ratelimit-method'], method)
      if (length !== undefined) t.is(answer.headers['x-ratelimit-length'], length, method)
    }
    calls += sent.length
  }
  const upgrading = await described('GET', { headers: [['HTTP2-Settings', 'AAMAAABkAAQAoAAA']] })
  t.is(upgrading.statusCode, 200, await upgrading.body.text())
  const closed = await closedCalls(resources, setting.tenantId, calls + 1)
  t.true(closed.every(({ outcome }) => outcome === 'completed'))
})

test.serial('an aborted upload is reset and does not affect other calls', async (t) => {
  const setting = await settingOf(resources)
  const call = callerOf(setting)
  // Without a length, so that the limit is reached while it is sent.
  async function* tooLarge() {
    for (let sent = 0; sent <= 33 * 1024 * 1024; sent += LARGE.length) yield LARGE
  }
  for (let round = 1; round <= UPLOADS; round += 1) {
    const refused = await call('/reading', false, 'PUT', tooLarge()).catch(() => null)
    if (refused !== null) {
      t.is(refused.statusCode, 413)
      await refused.body.dump()
    }
    const next = await call('/whole', false)
    t.is(await next.body.text(), 'partial')
  }
  const closed = await closedCalls(resources, setting.tenantId, UPLOADS * 2)
  t.is(closed.filter(({ outcome }) => outcome === 'client_closed').length, UPLOADS)
  await until('the uploads are reset', () => resets.length >= UPLOADS)
  t.deepEqual(resets, Array(UPLOADS).fill(CANCEL))
  t.is(wholes, 0)
})

test.serial('an unprocessed call is retried if its body is complete', async (t) => {
  notThrough('it needs its calls on one connection to the upstream')
  const setting = await settingOf(resources)
  const call = callerOf(setting)
  // The last one that was processed, which a GOAWAY has to name.
  const earlier = async () => void (await (await call('/nothing', true)).body.dump())
  for (const code of [NO_ERROR, REFUSED_STREAM]) {
    const path = `/refusing/${code}`
    for (const body of [undefined, 'something']) {
      await earlier()
      asked = 0
      const answer = await resources.send('/v1/proxy', {
        token: setting.delegated,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          credential_id: setting.credentialId,
          url: origin + path,
          method: 'POST',
          body,
        }),
      })
      const text = await answer.body.text()
      t.is(answer.statusCode, 200, text)
      t.is(text, body ?? '')
      t.is(asked, 2)
    }
    await earlier()
    asked = 0
    const streaming = await call(path, true)
    t.is(streaming.statusCode, 200)
    await streaming.body.dump()
    async function* upload() {
      yield Buffer.from('something')
    }
    await earlier()
    asked = 0
    const streamed = await call(path, false, 'POST', upload())
    t.is(streamed.statusCode, 502, await streamed.body.text())
    t.is(asked, 1)
  }
  const closed = await closedCalls(resources, setting.tenantId, 16)
  const failed = closed.filter(({ outcome }) => outcome === 'upstream_error')
  t.is(closed.length, 16)
  t.is(failed.length, 2)
})

test.serial('a stalled connection is not used again', async (t) => {
  const setting = await settingOf(resources)
  const call = callerOf(setting)
  const headers = bodyCall(setting, `${origin}/mute`, { 'x-svc-method': 'GET' })
  const leaving = new AbortController()
  const { signal } = leaving
  const nothing = resources.send('/v1/proxy/body', { token: setting.direct, headers, signal }).then(
    () => 'answered',
    () => 'left',
  )
  await until('the upstream has the call', () => mutes === 1)
  leaving.abort()
  t.is(await nothing, 'left')
  await closedCalls(resources, setting.tenantId, 1)
  const next = await call('/whole', false)
  t.is(await next.body.text(), 'partial')
  // So many that what node:http2 counts of them is more than it has for a connection.
  for (let round = 0; round < 20; round += 1) {
    const lavish = Array.from({ length: 20 }, async () =>
      (await call('/lavish', false)).body.dump(),
    )
    await Promise.all(lavish)
  }
  const after = await call('/whole', false)
  t.is(after.statusCode, 200)
  t.is(await after.body.text(), 'partial')
})
