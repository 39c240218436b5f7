/** Many streams of one HTTP/2 session, whose client reads late or never. */
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import test, { type ExecutionContext } from 'ava'
import { headerBlock, type HttpExchange } from '../../../gateway/http-exchange.js'
import { listen } from '../../../gateway/listen.js'
import {
  ConnectionBounds,
  IN_PROGRESS_MAX,
  UNSENT_BYTES_MAX,
} from '../../../gateway/transports/bounds.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { makeCertificate } from '../../support/service/certificates.js'

const KIB = 1024
const block = headerBlock([])
const answer = (exchange: HttpExchange, body: string | Uint8Array = exchange.path) =>
  exchange.send({ status: 200, block, headers: [], body })

async function open(t: ExecutionContext, handler: (exchange: HttpExchange) => void) {
  const bounds = new ConnectionBounds()
  const certificate = makeCertificate()
  const listener = await listen(
    {
      host: '127.0.0.1',
      port: 0,
      transport: 'tls_h2_only',
      http1_parser: 'node',
      tls: { cert_pem_path: certificate.certPath, key_pem_path: certificate.keyPath },
      keep_alive_secs: 75,
      drain_secs: 0,
    },
    handler,
    { log: silentLogger, clock: systemClock, bounds },
  )
  t.teardown(async () => {
    await listener.close()
    certificate.remove()
  })
  const session = (initialWindowSize = 64 * KIB): ClientHttp2Session => {
    const opened = connect(`https://localhost:${listener.port}`, {
      ca: certificate.pem,
      settings: { initialWindowSize },
    })
    opened.on('error', () => undefined)
    t.teardown(() => opened.destroy())
    return opened
  }
  return { bounds, session }
}

function request(session: ClientHttp2Session, path: string): ClientHttp2Stream {
  const stream = session.request({ ':path': path, ':authority': 'id.test' })
  return stream.on('error', () => undefined)
}

async function read(stream: ClientHttp2Stream): Promise<string> {
  let text = ''
  for await (const chunk of stream) text += String(chunk)
  return text
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5))
}

test('few answers are made for a session whose window is closed, and others are answered', async (t) => {
  let made = 0
  const { bounds, session } = await open(t, async (exchange) => {
    if (exchange.path === '/other') return answer(exchange)
    await new Promise((resolve) => setImmediate(resolve))
    made += 1
    answer(exchange, Buffer.alloc(300 * KIB, made))
  })
  const stuck = session(0)
  for (let index = 0; index < 100; index += 1) request(stuck, '/long')
  await until(() => bounds.unsentBytes > UNSENT_BYTES_MAX)
  for (let call = 0; call < 5; call += 1) {
    t.is(await read(request(session(), '/other')), '/other')
  }
  t.true(made <= IN_PROGRESS_MAX + 4, `${made} answers were made`)
  stuck.destroy()
  await until(() => bounds.unsentBytes === 0)
  t.is(bounds.inProgress, 0)
})

test('16 requests of a session are worked on, and all are answered', async (t) => {
  const kept: HttpExchange[] = []
  const { bounds, session } = await open(t, (exchange) => {
    if (exchange.path === '/other') answer(exchange)
    else kept.push(exchange)
  })
  const busy = session()
  const paths = Array.from({ length: 90 }, (_, index) => `/${index}`)
  const reading = Promise.all(paths.map((path) => read(request(busy, path))))
  await until(() => kept.length === IN_PROGRESS_MAX)
  t.is(await read(request(session(), '/other')), '/other')
  t.is(kept.length, IN_PROGRESS_MAX)
  const release = setInterval(() => {
    for (const exchange of kept.splice(0)) answer(exchange)
  }, 5)
  t.deepEqual(await reading, paths)
  clearInterval(release)
  await until(() => bounds.unsentBytes === 0)
  t.is(bounds.inProgress, 0)
})

test('an unread long answer does not hold up the other requests of its session', async (t) => {
  const { session } = await open(t, (exchange) =>
    answer(exchange, exchange.path === '/long' ? Buffer.alloc(4_000 * KIB) : exchange.path),
  )
  const busy = session()
  const long = request(busy, '/long')
  await new Promise((resolve) => long.once('response', resolve))
  for (let call = 0; call < 50; call += 1) t.is(await read(request(busy, '/a')), '/a')
  t.is((await read(long)).length, 4_000 * KIB)
})

test('a stream that is reset while it waits is never worked on', async (t) => {
  const kept: HttpExchange[] = []
  const { bounds, session } = await open(t, (exchange) => void kept.push(exchange))
  const busy = session()
  const streams = Array.from({ length: 40 }, () => request(busy, '/a'))
  await until(() => kept.length === IN_PROGRESS_MAX && bounds.unsentBytes > 0)
  for (const stream of streams.toReversed()) stream.close()
  await until(() => bounds.inProgress === 0)
  request(busy, '/b')
  await until(() => kept.length > IN_PROGRESS_MAX)
  t.is(kept.at(-1)!.path, '/b')
  t.is(kept.length, IN_PROGRESS_MAX + 1)
})
