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

/** Heads that an upstream may send before a response. */
const INTERIM = [
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.1 100 Continue\r\nserver: early\r\ncontent-length: 5\r\n\r\n',
  'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 100 Go On\r\n\r\n',
  'HTTP/1.1 100 Continue\r\nconnection: keep-alive\r\n\r\n'.repeat(50),
]
for (const [at, interim] of INTERIM.entries())
  for (const byByte of [false, true])
    test(`interim responses ${at} ${byByte ? 'byte by byte' : 'in one piece'} are skipped`, async (t) => {
      let connections = 0
      const server = createServer({ cert: UPSTREAM_CERT, key: UPSTREAM_KEY }, (socket) => {
        connections += 1
        socket.on('error', () => undefined)
        socket.setNoDelay(true)
        socket.on('data', (request) => {
          const body = request.includes('HEAD ') ? '' : 'whole'
          const text = `${interim}HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n${body}`
          for (const part of byByte ? text : [text]) socket.write(part)
        })
      })
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      const dnsOverrides = { [UPSTREAM_NAME]: '127.0.0.1' }
      const dial = createDialer({ privateNetworks: true, dnsOverrides, ca: UPSTREAM_CERT })
      const upstreams = createUpstreams(dial)
      t.teardown(async () => {
        await upstreams.destroy()
        server.close()
      })
      const { port } = server.address() as AddressInfo
      const pool = upstreams.of(`https://${UPSTREAM_NAME}:${port}`)
      for (const method of ['GET', 'POST', 'GET', 'POST', 'GET'] as const) {
        const answer = await pool.request({ path: '/', method })
        t.is(answer.statusCode, 200)
        t.is(answer.headers['server'], undefined)
        t.is(await answer.body.text(), 'whole')
      }
      t.true(connections < 5, 'connections are kept')
      t.is((await pool.request({ path: '/', method: 'HEAD' })).statusCode, 200)
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
