/**
 * The shared read buffer must not change any response: responses of every framing, split at every
 * position and read at every pace, concurrently and in sequence on the same connections.
 */
import { createCipheriv, createHash } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { createServer, type TLSSocket } from 'node:tls'
import { gzipSync } from 'node:zlib'
import test, { type ExecutionContext } from 'ava'
import { createDialer } from '../../../../actors/platform/outbound-http/dialer.js'
import { createUpstreams } from '../../../../actors/platform/outbound-http/upstreams.js'
import { UPSTREAM_CERT, UPSTREAM_KEY, UPSTREAM_NAME } from '../../vault/egress/loopback-tls.js'
import { getting, run } from '../../vault/egress/running.js'
import { runs } from '../../../support/runs.js'

const FRAMINGS = ['length', 'chunked', 'trailers', 'gzip', 'close'] as const
type Framing = (typeof FRAMINGS)[number]

/** Bytes that no other seed has. */
function bytesOf(seed: number, length: number): Buffer {
  const key = createHash('sha256').update(String(seed)).digest().subarray(0, 16)
  return createCipheriv('aes-128-ctr', key, Buffer.alloc(16)).update(Buffer.alloc(length))
}

const tagOf = (seed: number) => `"${bytesOf(seed, 400).toString('hex')}"`
const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

function chunked(body: Buffer, trailer: string): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < body.length; at += 9_000) {
    const part = body.subarray(at, at + 9_000)
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'))
  }
  return Buffer.concat([...parts, Buffer.from(`0\r\n${trailer}\r\n`)])
}

function answerOf(framing: Framing, seed: number, length: number): Buffer {
  const body = bytesOf(seed, length)
  const head = `HTTP/1.1 200 OK\r\netag: ${tagOf(seed)}\r\n`
  const zipped = gzipSync(body)
  const rest = {
    length: () => [`content-length: ${length}\r\n\r\n`, body],
    chunked: () => ['transfer-encoding: chunked\r\n\r\n', chunked(body, '')],
    trailers: () => [
      'transfer-encoding: chunked\r\ntrailer: x-sum, connection\r\n\r\n',
      chunked(body, `x-sum: ${digest(body)}\r\n`),
    ],
    gzip: () => [`content-encoding: gzip\r\ncontent-length: ${zipped.length}\r\n\r\n`, zipped],
    close: () => ['connection: close\r\n\r\n', body],
  }[framing]()
  return Buffer.concat([Buffer.from(head), ...rest.map((part) => Buffer.from(part))])
}

/** Sends a response in TLS records of `cut` bytes, some turns of the event loop apart. */
async function write(socket: TLSSocket, answer: Buffer, cut: number): Promise<void> {
  const over = new AbortController()
  const { signal } = over
  const gone = once(socket, 'close', { signal }).catch(() => undefined)
  for (let at = 0; at < answer.length && !socket.destroyed; at += cut) {
    const taken = socket.write(answer.subarray(at, at + cut))
    if (!taken) await Promise.race([once(socket, 'drain', { signal }), gone])
    else if (at % 3 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  over.abort()
}

/** `/<framing>/<seed>/<length>/<cut>` */
async function startScripted(t: ExecutionContext): Promise<number> {
  const server = createServer({ cert: UPSTREAM_CERT, key: UPSTREAM_KEY }, (socket) => {
    let seen = ''
    socket.setNoDelay(true)
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => {
      seen += chunk.toString('latin1')
      if (!seen.endsWith('\r\n\r\n')) return
      const [, framing, seed, length, cut] = seen.split(' ')[1]!.split('/')
      seen = ''
      const answer = answerOf(framing as Framing, Number(seed), Number(length))
      void write(socket, answer, Number(cut)).then(() => {
        if (framing === 'close') socket.end()
      })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void server.close())
  return (server.address() as AddressInfo).port
}

async function setUp(t: ExecutionContext) {
  const port = await startScripted(t)
  const dialer = createDialer({
    privateNetworks: true,
    dnsOverrides: { [UPSTREAM_NAME]: '127.0.0.1' },
    ca: UPSTREAM_CERT,
    http2: true,
    sharedReads: true,
  })
  const upstreams = createUpstreams(dialer, undefined, { http2: true })
  t.teardown(() => upstreams.destroy())
  /** Reads a response with a pause before each chunk, and compares it with the expected bytes. */
  return async (framing: Framing, seed: number, length: number, cut: number, pauseMs: number) => {
    const { started, ended } = run(
      upstreams.of(`https://${UPSTREAM_NAME}:${port}`),
      getting(`/${framing}/${seed}/${length}/${cut}`),
    )
    const start = await started
    if (start.tag === 'failed') throw new Error(JSON.stringify(start.report))
    const hash = createHash('sha256')
    for await (const chunk of start.body) {
      if (pauseMs > 0) await delay(pauseMs)
      hash.update(chunk)
    }
    const what = `${framing} ${seed} ${length} cut ${cut}`
    t.is(hash.digest('hex'), digest(bytesOf(seed, length)), what)
    t.deepEqual(
      start.headers.filter(([name]) => name === 'etag'),
      [['etag', tagOf(seed)]],
      what,
    )
    t.is((await ended).outcome, 'completed', what)
  }
}

test('responses are unchanged, for every framing and every split', async (t) => {
  const call = await setUp(t)
  let seed = 0
  const lengths = [1, 1_024, 16_384, 70_001, 300_000]
  const cuts = [7, 111, 1_000, 16_384, 40_000]
  const lanes = Array.from({ length: 12 }, async (_, lane) => {
    for (let round = 0; round < runs(8, 3); round += 1) {
      const length = lengths[(lane + round) % lengths.length]!
      const cut = Math.max(cuts[(lane * 3 + round) % cuts.length]!, Math.ceil(length / 200))
      seed += 1
      await call(FRAMINGS[(lane * 2 + round) % FRAMINGS.length]!, seed, length, cut, 0)
    }
  })
  await Promise.all(lanes)
})

test('paused readers get every byte, while others continue', async (t) => {
  const call = await setUp(t)
  const slow = FRAMINGS.map((framing, at) => call(framing, 1 + at, 600_000, 16_384, 20))
  const fast = Array.from({ length: runs(15, 5) }, (_, at) =>
    call('length', 10 + at, 900_000, 16_384, 0),
  )
  await Promise.all([...slow, ...fast])
})

test('headers that are split inside a field stay intact while bodies are read', async (t) => {
  const call = await setUp(t)
  const bodies = [1, 2].map((seed) => call('length', seed, 2_000_000, 16_384, 0))
  const heads = Array.from({ length: runs(30, 10) }, (_, at) => call('length', 10 + at, 20, 90, 0))
  await Promise.all([...bodies, ...heads])
})
