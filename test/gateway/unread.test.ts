/** Clients that send requests and do not read the answers. */
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { bytes, route, type Route } from '../../gateway/route.js'
import { probe, probeRoutes } from './probe.js'
import { connectRaw } from './raw.js'
import {
  NODE_PARSED,
  openStage,
  type Stage,
  type Transport,
  TRANSPORTS,
  UWS_PARSED,
} from './stage.js'

/** More bytes than kernel buffers hold for an unread connection. */
const LONG_BYTES = 24 * 1024 * 1024
/** Written in one piece. */
const SHORT_BYTES = 48 * 1024
const PATHS = { '/long': LONG_BYTES, '/short': SHORT_BYTES } as const

const sized = (path: keyof typeof PATHS): Route =>
  route(probe, 'document', {
    tags: ['Probe'],
    exposure: 'public',
    security: { scheme: 'anonymous' },
    method: 'GET',
    path,
    operationId: `probeSized${PATHS[path]}`,
    summary: 'Give many bytes',
    throttle: 'none',
    message: () => null,
    replies: {
      document: bytes(200, 'text/plain', () => ({
        body: `${'x'.repeat(PATHS[path] - 1)}.`,
        etag: '"v1"',
        maxAgeSecs: 60,
      })),
    },
  })
const routes = [...probeRoutes, sized('/long'), sized('/short')]

async function open(t: ExecutionContext, transport: Transport, unreadMs: number): Promise<Stage> {
  const stage = await openStage({ transport, gateway: { routes, unreadMs } })
  t.teardown(() => stage.close())
  return stage
}

const requestOf = (path: string) => `GET ${path} HTTP/1.1\r\nhost: id.test\r\n\r\n`

/** An HTTP/1.1 connection that does not read. */
function deaf(t: ExecutionContext, stage: Stage): Socket {
  const socket = connectRaw(stage).pause()
  socket.on('error', () => undefined)
  t.teardown(() => void socket.destroy())
  return socket
}

/** Reads a connection to its end. */
function bytesOf(socket: Socket): Promise<number> {
  return new Promise((resolve) => {
    let read = 0
    socket.on('data', (chunk: Buffer) => (read += chunk.length))
    if (socket.closed) return resolve(0)
    socket.once('close', () => resolve(read))
    socket.resume()
  })
}

function session(t: ExecutionContext, stage: Stage, initialWindowSize: number): ClientHttp2Session {
  const opened = connectHttp2(`https://localhost:${stage.port}`, {
    ca: stage.certificate!.pem,
    settings: { initialWindowSize },
  })
  opened.on('error', () => undefined)
  t.teardown(() => opened.destroy())
  return opened
}

for (const transport of TRANSPORTS) {
  test.serial(`${transport}: long answers are whole, one after the other`, async (t) => {
    const stage = await open(t, transport, 30_000)
    for (const path of ['/long', '/short', '/long'] as const) {
      const { status, headers, text } = await stage.call({ path })
      t.is(status, 200)
      t.is(headers['content-length'], String(PATHS[path]))
      t.is(text.length, PATHS[path])
      t.is(text.at(-1), '.')
    }
    const head = await stage.call({ path: '/long', method: 'HEAD' })
    t.is(head.headers['content-length'], String(LONG_BYTES))
    t.is(head.text, '')
  })
}

for (const transport of [...UWS_PARSED, ...NODE_PARSED]) {
  test.serial(`${transport}: a client that reads nothing of a long answer is cut`, async (t) => {
    const stage = await open(t, transport, 500)
    const socket = deaf(t, stage)
    socket.write(requestOf('/long'))
    // The head has arrived: the answer is under way.
    await new Promise((resolve) => socket.once('readable', resolve))
    t.true(await stage.gateway.drain(60_000), 'the exchange has ended')
    t.true((await bytesOf(socket)) < LONG_BYTES)
  })

  test.serial(`${transport}: the answers to a client that reads none do not pile up`, async (t) => {
    const stage = await open(t, transport, 500)
    const socket = deaf(t, stage)
    const count = 500
    for (let sent = 0; sent < count && !socket.destroyed; sent += 1) {
      socket.write(requestOf('/short'))
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    t.true(await stage.gateway.drain(60_000), 'the exchanges have ended')
    t.true((await bytesOf(socket)) < count * SHORT_BYTES)
  })
}

for (const path of ['/long', '/short'] as const) {
  test.serial(`http2: a stream of ${path} that is not read is reset`, async (t) => {
    const stage = await open(t, 'http2', 500)
    const stuck = session(t, stage, 0).request({ ':path': path, ':authority': 'id.test' })
    let read = 0
    stuck.on('data', (chunk: Buffer) => (read += chunk.length))
    const error = await new Promise<Error | null>((resolve) => {
      stuck.once('error', resolve)
      stuck.once('end', () => resolve(null))
    })
    t.truthy(error)
    t.is(read, 0)
    t.true(await stage.gateway.drain(60_000), 'the exchange has ended')
  })
}
