/** Answers of HTTP/2 that end in other ways than with their last byte. */
import { once } from 'node:events'
import { createSecureServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import test from 'ava'
import { createDialer } from '../../../actors/egress/dialer.js'
import { createUpstreams } from '../../../actors/egress/upstreams.js'
import { UPSTREAM_CERT, UPSTREAM_KEY, UPSTREAM_NAME } from './loopback-tls.js'
import { run } from './running.js'

/** A little more than the relay takes before it waits for its reader. */
const BYTES = 300_000

test('trailers do not overtake a body whose reader is slow', async (t) => {
  const server = createSecureServer({ key: UPSTREAM_KEY, cert: UPSTREAM_CERT })
  let isSent: () => void = () => undefined
  const sent = new Promise<void>((resolve) => (isSent = resolve))
  server.on('stream', (stream) => {
    stream.respond({ ':status': 200 }, { waitForTrailers: true })
    stream.once('wantTrailers', () => {
      stream.sendTrailers({ 'server-timing': 'all;dur=1' })
      isSent()
    })
    stream.end(Buffer.alloc(BYTES, 'svc '))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const dialer = createDialer({
    privateNetworks: true,
    dnsOverrides: { [UPSTREAM_NAME]: '127.0.0.1' },
    ca: UPSTREAM_CERT,
    http2: true,
    lends: true,
  })
  const upstreams = createUpstreams(dialer, undefined, { http2: true })
  t.teardown(async () => {
    await upstreams.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const { started, ended } = run(upstreams.of(`https://${UPSTREAM_NAME}:${port}`), {
    method: 'GET',
    path: '/',
    headers: [],
    body: null,
    bodyBytes: null,
    limits: { idleGapMs: 60_000, hopTimeoutMs: 120_000 },
    purse: null,
    redactor: null,
    signal: new AbortController().signal,
  })
  const start = await started
  if (start.tag === 'failed') throw new Error(JSON.stringify(start.report))
  await sent
  await delay(200)
  let bytes = 0
  for await (const chunk of start.body) bytes += chunk.byteLength
  t.is(bytes, BYTES)
  t.is((await ended).outcome, 'completed')
})
