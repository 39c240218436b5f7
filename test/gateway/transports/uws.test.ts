/** What uWebSockets holds for a client, and what it adds to answers. */
import { once } from 'node:events'
import { connect } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { headerBlock, type HttpExchange } from '../../../gateway/http-exchange.js'
import { listen } from '../../../gateway/listen.js'
import { loadNative } from '../../../gateway/transports/native.js'
import { ALL_BYTES_MAX, ConnectionBounds } from '../../../gateway/transports/bounds.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { type Logger, silentLogger } from '../../../runtime/kernel/log.js'
import { ByteStream } from '../../../runtime/kernel/stream.js'
import { makeCertificate } from '../../support/service/certificates.js'
import { connectRaw, readyEvent, sendRaw } from '../raw.js'

const MIB = 1024 * 1024
const block = headerBlock([])
const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: id.test\r\n\r\n`

async function open(
  t: ExecutionContext,
  handler: (exchange: HttpExchange) => void,
  { host = '127.0.0.1', log = silentLogger } = {},
) {
  const bounds = new ConnectionBounds()
  const listener = await listen(
    {
      host,
      port: 0,
      transport: 'plain_http',
      http1_parser: 'uwebsockets',
      tls: undefined,
      keep_alive_secs: 75,
      drain_secs: 0,
    },
    handler,
    { log, clock: systemClock, bounds },
  )
  t.teardown(() => listener.close())
  t.is(listener.transport, 'uws')
  return { bounds, port: listener.port }
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5))
}

for (const close of [false, true]) {
  const kind = close ? 'closing' : 'kept'
  test(`unread answers of ${kind} connections are counted, and hold at most 64 MiB`, async (t) => {
    let most = 0
    const { bounds, port } = await open(t, (exchange) => {
      most = Math.max(most, bounds.unsentBytes)
      const body = exchange.path === '/other' ? 'other' : Buffer.alloc(16 * MIB)
      exchange.send({ status: 200, block, headers: [], body, close })
    })
    for (let index = 0; index < 8; index += 1) {
      const socket = connect(port, '127.0.0.1').pause()
      socket.on('error', () => undefined)
      t.teardown(() => void socket.destroy())
      socket.write(get('/long'))
    }
    await until(() => bounds.closed.process > 0)
    t.regex((await sendRaw(port, get('/other'), { answers: 1 })).text, /other$/)
    t.true(bounds.unsentBytes <= ALL_BYTES_MAX)
    t.true(most > 0)
  })
}

test('a long answer that closes the connection is whole', async (t) => {
  const body = 'x'.repeat(3 * MIB)
  const { bounds, port } = await open(t, (exchange) =>
    exchange.send({ status: 200, block, headers: [], body, close: true }),
  )
  const { text } = await sendRaw(port, get('/'))
  t.regex(text, /\r\nconnection: close\r\n/)
  t.true(text.split('\r\n\r\n')[1] === body)
  await until(() => bounds.inProgress === 0)
  t.is(bounds.unsentBytes, 0)
})

test('an empty body is an answer, relayed or not, of a connection that ends or stays', async (t) => {
  const { bounds, port } = await open(t, (exchange) => {
    const answer = { status: 200, block, headers: [] }
    const close = exchange.query === 'close'
    if (exchange.path === '/sent') exchange.send({ ...answer, body: new Uint8Array(0), close })
    else void exchange.relay({ ...answer, body: ByteStream.from([]), bodyBytes: 0 })
  })
  for (const path of ['/sent', '/sent?close', '/relayed']) {
    const { text } = await sendRaw(port, get(path), { answers: 1, withinMs: 20_000 })
    t.regex(text, /^HTTP\/1\.1 200 OK\r\n[^]*content-length: 0\r\n[^]*\r\n$/i, path)
  }
  await until(() => bounds.inProgress === 0)
})

test('a relayed event stream begins with its own first byte', async (t) => {
  const { bounds, port } = await open(t, (exchange) => {
    async function* late() {
      await new Promise((resolve) => setTimeout(resolve, 200))
      yield Buffer.from('data: 1\n\n')
    }
    const type = [['content-type', 'text/event-stream']] as const
    void exchange.relay({ status: 200, block, headers: type, body: ByteStream.from(late()) })
  })
  const { text } = await sendRaw(port, get('/'), { answers: 1, withinMs: 20_000 })
  t.true(text.endsWith('\r\n\r\n9\r\ndata: 1\n\n\r\n') || text.endsWith('0\r\n\r\n'), text)
  t.is(text.split('\r\n\r\n')[1]!.slice(0, 3), '9\r\n')
  await until(() => bounds.inProgress === 0)
  t.is(bounds.unsentBytes, 0)
})

test('the rest of a body that is announced above 64 MiB is not read', async (t) => {
  const { port } = await open(t, (exchange) =>
    exchange.send({ status: 401, block, headers: [], body: 'no' }),
  )
  const head = `POST / HTTP/1.1\r\nhost: id.test\r\ncontent-length: ${1024 * MIB}\r\n\r\n`
  const { text, closed } = await sendRaw(port, `${head}abc`, { withinMs: 20_000 })
  t.regex(text, /connection: close/)
  t.true(closed)
})

test('an address that is not loopback is a warning', async (t) => {
  for (const [host, count] of [
    ['127.0.0.1', 0],
    ['0.0.0.0', 1],
  ] as const) {
    const warnings: string[] = []
    const warn = (_: unknown, text: string) => void warnings.push(text)
    const log = { ...silentLogger, warn } as unknown as Logger
    await open(t, () => undefined, { host, log })
    t.is(warnings.length, count)
    for (const text of warnings) t.regex(text, /http1_parser/)
  }
})

// The library alone. A release that passes it no more lets the gateway answer such requests too.
for (const isSecure of [false, true]) {
  const kind = isSecure ? 'over TLS' : 'without TLS'
  test(`uWebSockets closes a connection on a request behind an unfinished answer ${kind}`, async (t) => {
    const native = loadNative()
    if (native.tag === 'refused') return t.fail(native.reason)
    const certificate = makeCertificate()
    t.teardown(() => certificate.remove())
    const { certPath: cert_file_name, keyPath: key_file_name } = certificate
    const { uws } = native
    const app = isSecure ? uws.SSLApp({ cert_file_name, key_file_name }) : uws.App()
    t.teardown(() => void app.close())
    const body = Buffer.alloc(24 * MIB, 'x')
    app.get('/*', (res) => {
      const more = () => {
        const [isTaken, isComplete] = res.tryEnd(body.subarray(res.getWriteOffset()), body.length)
        return isTaken || isComplete
      }
      res.onAborted(() => undefined).onWritable(more)
      more()
    })
    const port = await new Promise<number>((resolve) => {
      app.listen('127.0.0.1', 0, (socket) => resolve(uws.us_socket_local_port(socket as never)))
    })
    const target = { port, certificate: isSecure ? certificate : null }
    const socket = connectRaw(target)
    let received = 0
    socket.on('error', () => undefined).on('data', (chunk: Buffer) => (received += chunk.length))
    await once(socket, readyEvent(target))
    socket.write(get('/').repeat(8))
    await once(socket, 'close')
    t.true(received < body.length)
  })
}
