/** Connections that end while their reader is paused (RFC 9112 section 8). */
import { once } from 'node:events'
import { Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import { setImmediate, setTimeout as delay } from 'node:timers/promises'
import { createServer } from 'node:tls'
import test from 'ava'
import { createDialer } from '../../../../actors/platform/outbound-http/dialer.js'
import { proxyErrorOf } from '../../../../actors/platform/outbound-http/failures.js'
import {
  CONNECTION_RESET,
  deferEof,
} from '../../../../actors/platform/outbound-http/deferred-eof.js'
import { createUpstreams } from '../../../../actors/platform/outbound-http/upstreams.js'
import { UPSTREAM_CERT, UPSTREAM_KEY, UPSTREAM_NAME } from '../../vault/egress/loopback-tls.js'
import { getting, run } from '../../vault/egress/running.js'

const RECORD_BYTES = 16_384

test('a response ends with its connection before its reader starts', async (t) => {
  const server = createServer({ cert: UPSTREAM_CERT, key: UPSTREAM_KEY }, (socket) => {
    socket.on('error', () => undefined)
    socket.once('data', (request: Buffer) => {
      const records = Number(request.toString('latin1').split(' ')[1]!.slice(1))
      socket.write('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n')
      for (let at = 0; at < records; at += 1) socket.write(Buffer.alloc(RECORD_BYTES, at))
      socket.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void server.close())
  const { port } = server.address() as AddressInfo
  const dialer = createDialer({
    privateNetworks: true,
    dnsOverrides: { [UPSTREAM_NAME]: '127.0.0.1' },
    ca: UPSTREAM_CERT,
    sharedReads: true,
  })
  const upstreams = createUpstreams(dialer)
  t.teardown(() => upstreams.destroy())
  const call = async (records: number) => {
    const { started, ended } = run(
      upstreams.of(`https://${UPSTREAM_NAME}:${port}`),
      getting(`/${records}`),
    )
    const start = await started
    if (start.tag === 'failed') throw new Error(JSON.stringify(start.report))
    // EOF arrives during the pause. One of these lengths makes the last record fill the buffer.
    await delay(400)
    let bytes = 0
    for await (const chunk of start.body) bytes += chunk.length
    t.is(bytes, records * RECORD_BYTES)
    t.is((await ended).outcome, 'completed')
  }
  await Promise.all(Array.from({ length: 32 }, (_, at) => call(at + 1)))
})

test('EOF is deferred until the paused parser resumes', async (t) => {
  const socket = new Socket()
  deferEof(socket)
  let ends = 0
  socket.on('end', () => (ends += 1))
  socket.push('body')
  t.is(String(socket.read()), 'body')
  socket.unshift(Buffer.alloc(0))
  socket.push(null)
  socket.read(0)
  await setImmediate()
  t.is(ends, 0)
  t.is(socket.read(), null)
  await once(socket, 'end')
  t.is(ends, 1)
  socket.destroy()
})

test('EOF is delivered immediately to a reader that is not paused', async (t) => {
  const socket = new Socket()
  deferEof(socket)
  socket.push('body')
  t.is(String(socket.read()), 'body')
  socket.push(null)
  socket.read(0)
  await once(socket, 'end')
  t.true(socket.readableEnded)
  socket.destroy()
})

test('a reset is an error, not EOF', async (t) => {
  const socket = new Socket()
  deferEof(socket)
  const told = once(socket, 'error')
  socket.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }))
  const rejected: unknown = await told.then(
    ([error]: unknown[]) => error,
    (error: unknown) => error,
  )
  t.is((rejected as NodeJS.ErrnoException).code, CONNECTION_RESET)
  t.is(proxyErrorOf(rejected, false), 'connection_terminated')
  t.is(proxyErrorOf(rejected, true), 'http_response_incomplete')
})
