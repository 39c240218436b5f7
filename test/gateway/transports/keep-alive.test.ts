/** Idle connections are kept for `server.keep_alive_secs`, on HTTP/1.1 and HTTP/2. */
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import test from 'ava'
import { headerBlock, type HttpExchangeHandler } from '../../../gateway/http-exchange.js'
import { listen } from '../../../gateway/listen.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { makeCertificate } from '../../support/service/certificates.js'
import { silentLogger } from '../../../runtime/kernel/log.js'

const block = headerBlock([])
const handler: HttpExchangeHandler = (exchange) =>
  void exchange.send({ status: 200, block, headers: [], body: 'here' })
const certificate = makeCertificate()
test.after.always(() => certificate.remove())

async function opened(keep_alive_secs: number, transport: 'plain_http' | 'tls') {
  const tls =
    transport === 'tls'
      ? { cert_pem_path: certificate.certPath, key_pem_path: certificate.keyPath }
      : undefined
  const where = { host: '127.0.0.1', port: 0, http1_parser: 'node', drain_secs: 0 } as const
  return listen({ ...where, transport, tls, keep_alive_secs }, handler, {
    log: silentLogger,
    clock: systemClock,
  })
}

async function usedConnection(port: number) {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1')
  const ask = async () => {
    const told = Promise.race([once(socket, 'data'), once(socket, 'close')])
    socket.write('GET / HTTP/1.1\r\nhost: id.test\r\n\r\n')
    return String(await told).includes('HTTP/1.1 200')
  }
  return { socket, ask, isUsed: await ask() }
}

test('HTTP/1.1: the shorter time ends first, and the longer connection still serves', async (t) => {
  const [short, long] = [await opened(5, 'plain_http'), await opened(75, 'plain_http')]
  t.teardown(() => Promise.all([short.close(), long.close()]))
  const kept = await usedConnection(long.port)
  const ended = await usedConnection(short.port)
  t.teardown(() => void kept.socket.destroy())
  t.true(kept.isUsed && ended.isUsed)
  await once(ended.socket, 'close')
  t.true(await kept.ask())
})

test('HTTP/2: the shorter time ends first, and the longer connection still serves', async (t) => {
  const [short, long] = [await opened(5, 'tls'), await opened(75, 'tls')]
  t.teardown(() => Promise.all([short.close(), long.close()]))
  const sessionOf = (port: number) =>
    connectHttp2(`https://localhost:${port}`, { ca: certificate.pem })
  const [kept, ended] = [sessionOf(long.port), sessionOf(short.port)]
  t.teardown(() => kept.destroy())
  const ask = async (session: typeof kept) => {
    const stream = session.request({ ':path': '/' })
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
    stream.resume()
    return headers[':status']
  }
  t.deepEqual([await ask(kept), await ask(ended)], [200, 200])
  await once(ended, 'close')
  t.is(await ask(kept), 200)
})
