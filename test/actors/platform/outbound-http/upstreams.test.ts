/** Connections to upstreams: what tenants share of them. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:tls'
import test from 'ava'
import { createDialer } from '../../../../actors/platform/outbound-http/dialer.js'
import { createUpstreams } from '../../../../actors/platform/outbound-http/upstreams.js'
import { UPSTREAM_CERT, UPSTREAM_KEY, UPSTREAM_NAME } from '../../vault/egress/loopback-tls.js'

test('a tenant that names many origins closes no pool of another tenant', async (t) => {
  const upstreams = createUpstreams(() => undefined, 4)
  t.teardown(() => upstreams.destroy())
  const honest = () => upstreams.of('https://api.example', 'credential', 'honest')
  const first = honest()
  const hostile = (at: number) => upstreams.of(`https://n${at}.example`, 'other', 'hostile')
  const own = hostile(0)
  for (let at = 1; at < 10; at += 1) hostile(at)
  t.is(upstreams.size, 4)
  t.is(honest(), first)
  t.not(hostile(0), own)
})

test('certificates to trust are read once, not for each connection', async (t) => {
  const server = createServer({ cert: UPSTREAM_CERT, key: UPSTREAM_KEY }, (socket) => {
    socket.on('error', () => undefined)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  let reads = 0
  const ca = new Proxy([UPSTREAM_CERT], {
    get(certificates, key, receiver) {
      if (key === '0') reads += 1
      return Reflect.get(certificates, key, receiver) as unknown
    },
  })
  const dnsOverrides = { [UPSTREAM_NAME]: '127.0.0.1' }
  const dial = createDialer({ privateNetworks: true, dnsOverrides, ca })
  const port = String((server.address() as AddressInfo).port)
  const connect = () =>
    new Promise<void>((resolve, reject) => {
      dial({ hostname: UPSTREAM_NAME, host: UPSTREAM_NAME, protocol: 'https:', port }, (...got) => {
        const [error, socket] = got
        socket?.destroy()
        if (error === null) resolve()
        else reject(error)
      })
    })
  await connect()
  const afterFirst = reads
  t.true(afterFirst > 0)
  for (let times = 0; times < 3; times += 1) await connect()
  t.is(reads, afterFirst)
})
