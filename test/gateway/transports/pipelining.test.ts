/** Many requests on one HTTP/1.1 connection, whose client reads late or never. */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { headerBlock, type HttpExchange } from '../../../gateway/http-exchange.js'
import { listen } from '../../../gateway/listen.js'
import {
  ALL_BYTES_MAX,
  ConnectionBounds,
  IN_PROGRESS_MAX,
} from '../../../gateway/transports/bounds.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { makeCertificate } from '../../support/service/certificates.js'
import { connectRaw, type RawTarget, readyEvent } from '../raw.js'
import { NODE_PARSED } from '../stage.js'

const MIB = 1024 * 1024
const block = headerBlock([])
const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: id.test\r\n\r\n`
const answer = (exchange: HttpExchange, body: string | Uint8Array = exchange.path) =>
  exchange.send({ status: 200, block, headers: [], body })

async function open(
  t: ExecutionContext,
  transport: (typeof NODE_PARSED)[number],
  handler: (exchange: HttpExchange) => void,
) {
  const bounds = new ConnectionBounds()
  const certificate = transport === 'tls' ? makeCertificate() : null
  const tls = certificate && {
    cert_pem_path: certificate.certPath,
    key_pem_path: certificate.keyPath,
  }
  const listener = await listen(
    {
      host: '127.0.0.1',
      port: 0,
      transport: tls ? 'tls' : 'plain_http',
      http1_parser: 'node',
      tls: tls ?? undefined,
      keep_alive_secs: 75,
      drain_secs: 0,
    },
    handler,
    { log: silentLogger, clock: systemClock, bounds },
  )
  t.teardown(async () => {
    await listener.close()
    certificate?.remove()
  })
  return { bounds, target: { port: listener.port, transport, certificate } }
}

async function connected(t: ExecutionContext, target: RawTarget): Promise<Socket> {
  const socket = connectRaw(target)
  socket.on('error', () => undefined)
  t.teardown(() => void socket.destroy())
  await once(socket, readyEvent(target))
  return socket
}

/** A connection that sends and reads nothing. */
async function deaf(t: ExecutionContext, target: RawTarget, sent: string): Promise<Socket> {
  const socket = await connected(t, target)
  socket.pause().write(sent)
  return socket
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** Sends on a connection and reads until `count` bodies that are paths have arrived. */
async function paths(t: ExecutionContext, target: RawTarget, sent: string, count: number) {
  const socket = await connected(t, target)
  const found: string[] = []
  let rest = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    const pieces = (rest + chunk).split('HTTP/1.1 200 OK')
    for (const piece of pieces.slice(0, -1)) if (piece !== '') found.push(bodyIn(piece)!)
    rest = pieces.at(-1)!
  })
  socket.write(sent)
  await until(() => (found.length >= count - 1 && bodyIn(rest) !== undefined) || socket.destroyed)
  return [...found, bodyIn(rest)]
}

function bodyIn(text: string): string | undefined {
  return /\r\n\r\n(.+)$/.exec(text)?.[1]
}

for (const transport of NODE_PARSED) {
  test.serial(
    `${transport}: few of 1,000 unread answers are made, and others are answered`,
    async (t) => {
      let made = 0
      const { bounds, target } = await open(t, transport, async (exchange) => {
        if (exchange.path === '/other') return answer(exchange)
        await new Promise((resolve) => setImmediate(resolve))
        made += 1
        answer(exchange, Buffer.alloc(3 * MIB, made))
      })
      const socket = await deaf(t, target, get('/long').repeat(1_000))
      await until(() => bounds.unsentBytes > 15 * 3 * MIB)
      for (let call = 0; call < 5; call += 1) {
        t.deepEqual(await paths(t, target, get('/other'), 1), ['/other'])
      }
      t.true(made <= IN_PROGRESS_MAX + 2, `${made} answers were made`)
      t.true(bounds.inProgress <= IN_PROGRESS_MAX)
      socket.destroy()
      await until(() => bounds.inProgress === 0)
      t.is(bounds.unsentBytes, 0)
    },
  )

  test.serial(
    `${transport}: 16 requests are worked on, and all are answered in order`,
    async (t) => {
      const kept: HttpExchange[] = []
      const { bounds, target } = await open(t, transport, (exchange) => {
        if (exchange.path === '/other') answer(exchange)
        else kept.push(exchange)
      })
      const sent = Array.from({ length: 200 }, (_, index) => `/${index}`)
      const reading = paths(t, target, sent.map(get).join(''), sent.length)
      await until(() => kept.length > 0)
      await paths(t, target, get('/other'), 1)
      t.is(kept.length, IN_PROGRESS_MAX)
      t.is(bounds.inProgress, IN_PROGRESS_MAX)
      const release = setInterval(() => {
        for (const exchange of kept.splice(0).toReversed()) answer(exchange)
      }, 5)
      t.deepEqual(await reading, sent)
      clearInterval(release)
    },
  )

  test.serial(`${transport}: a request that may act is worked on alone`, async (t) => {
    const kept: HttpExchange[] = []
    const { target } = await open(t, transport, (exchange) => void kept.push(exchange))
    const post = 'POST /b HTTP/1.1\r\nhost: id.test\r\ncontent-length: 2\r\n\r\n{}'
    const reading = paths(t, target, get('/a') + post + get('/c'), 3)
    for (const path of ['/a', '/b', '/c']) {
      await until(() => kept.length > 0)
      t.deepEqual(
        kept.map((exchange) => exchange.path),
        [path],
      )
      answer(kept.pop()!)
    }
    t.deepEqual(await reading, ['/a', '/b', '/c'])
  })

  test.serial(`${transport}: requests beyond those that wait stay unread`, async (t) => {
    const kept: HttpExchange[] = []
    let isReleased = false
    const { bounds, target } = await open(t, transport, (exchange) => {
      if (isReleased || exchange.path === '/other') answer(exchange)
      else kept.push(exchange)
    })
    const sent = Array.from({ length: 20_000 }, (_, index) => `/${String(index).padStart(30, '0')}`)
    const reading = paths(t, target, sent.map(get).join(''), sent.length)
    await until(() => kept.length === IN_PROGRESS_MAX)
    for (let call = 0; call < 20; call += 1) await paths(t, target, get('/other'), 1)
    t.true(bounds.unsentBytes < 13 * MIB)
    isReleased = true
    for (const exchange of kept) answer(exchange)
    t.deepEqual(await reading, sent)
    t.deepEqual(bounds.closed, { connection: 0, address: 0, process: 0 })
  })

  test.serial(`${transport}: when a client leaves, all of its requests end`, async (t) => {
    let [begun, aborted] = [0, 0]
    const { bounds, target } = await open(t, transport, (exchange) => {
      begun += 1
      exchange.onAborted(() => (aborted += 1))
    })
    const socket = await deaf(t, target, get('/a').repeat(IN_PROGRESS_MAX))
    await until(() => begun === IN_PROGRESS_MAX)
    socket.destroy()
    await until(() => aborted === IN_PROGRESS_MAX)
    t.is(bounds.inProgress, 0)
    t.is(bounds.unsentBytes, 0)
  })

  test.serial(`${transport}: all connections together hold at most 64 MiB`, async (t) => {
    const { bounds, target } = await open(t, transport, (exchange) =>
      setImmediate(() => answer(exchange, Buffer.alloc(6 * MIB))),
    )
    let most = 0
    for (let index = 0; index < 20; index += 1) {
      await deaf(t, target, get('/long'))
      most = Math.max(most, bounds.unsentBytes)
    }
    await until(() => bounds.closed.process > 0)
    t.true(most <= ALL_BYTES_MAX)
  })
}

test('more requests in one segment than may wait close the connection', async (t) => {
  const { bounds, target } = await open(t, 'http1', () => undefined)
  const socket = await deaf(t, target, 'GET / HTTP/1.1\r\nHost:a\r\n\r\n'.repeat(2_400))
  socket.resume()
  await once(socket, 'close')
  t.is(bounds.closed.connection, 1)
})
