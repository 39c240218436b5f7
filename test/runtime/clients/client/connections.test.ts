/** Requests that a service has not processed are sent again. */
import { once } from 'node:events'
import { createSecureServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { request } from 'undici'
import { serviceAgent } from '../../../../runtime/clients/client/connections.js'
import {
  UPSTREAM_CERT,
  UPSTREAM_KEY,
  UPSTREAM_NAME,
} from '../../../actors/vault/egress/loopback-tls.js'

const INTERNAL_ERROR = 2
const REFUSED_STREAM = 7

async function setUp(t: ExecutionContext, serve: (stream: ServerHttp2Stream, nth: number) => void) {
  const server = createSecureServer({ key: UPSTREAM_KEY, cert: UPSTREAM_CERT })
  const seen = { streams: 0 }
  server.on('stream', (stream) => {
    stream.on('error', () => undefined)
    seen.streams += 1
    serve(stream, seen.streams)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const dispatcher = serviceAgent({ connect: { ca: UPSTREAM_CERT, servername: UPSTREAM_NAME } })
  t.teardown(async () => {
    await dispatcher.destroy()
    server.close()
  })
  const post = async (body: string) => {
    const answer = await request(`https://127.0.0.1:${port}/`, { dispatcher, method: 'POST', body })
    return { status: answer.statusCode, text: await answer.body.text() }
  }
  return { post, seen }
}

function echo(stream: ServerHttp2Stream, status = 200): void {
  stream.respond({ ':status': status })
  stream.pipe(stream)
}

test('a refused request is sent again, with its body', async (t) => {
  const { post, seen } = await setUp(t, (stream, nth) => {
    if (nth <= 3) stream.close(REFUSED_STREAM)
    else echo(stream)
  })
  t.deepEqual(await post('one'), { status: 200, text: 'one' })
  t.is(seen.streams, 4)
})

test('a request that is always refused fails', async (t) => {
  const { post, seen } = await setUp(t, (stream) => stream.close(REFUSED_STREAM))
  await t.throwsAsync(post('one'), { name: 'NotProcessed' })
  t.is(seen.streams, 6)
})

test('a request that may have been processed is sent once', async (t) => {
  const { post, seen } = await setUp(t, (stream) => stream.close(INTERNAL_ERROR))
  await t.throwsAsync(post('one'))
  t.is(seen.streams, 1)
})

test('each status is an answer', async (t) => {
  let status = 200
  const { post, seen } = await setUp(t, (stream) => echo(stream, status))
  for (status of [201, 303, 404, 429, 503]) t.deepEqual(await post('x'), { status, text: 'x' })
  t.is(seen.streams, 5)
})
