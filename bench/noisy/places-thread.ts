/**
 * Peers of the `noisy/neighbour` service: an upstream and receivers over TLS, a mail server, and
 * DNS. On loopback.
 */
import { createSocket } from 'node:dgram'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import { SMTPServer } from 'smtp-server'

export type Places = { readonly https: number; readonly smtp: number; readonly dns: number }
/**
 * A delivery or message of the honest tenant, with the time of the shared clock of all threads.
 */
export type Arrival = { readonly body: string; readonly atMs: number }

const KIB = Buffer.alloc(1024, 'x')
const LETTERS = Buffer.alloc(64 * 1024, 'a')
const LETTERS_EVERY_MS = 20
/** For the longest secrets. */
const HEADER_BYTES_MAX = 128 * 1024

const held = new Set<() => void>()
parentPort?.on('message', () => {
  for (const release of held) release()
  held.clear()
})

function arrived(body: string): void {
  const atMs = performance.timeOrigin + performance.now()
  parentPort?.postMessage({ body, atMs } satisfies Arrival)
}

function quickHook(request: IncomingMessage, response: ServerResponse): void {
  let body = ''
  request.setEncoding('utf8').on('data', (text: string) => {
    body += text
  })
  request.once('end', () => {
    response.end()
    arrived(body)
  })
}

const habits: Record<string, (request: IncomingMessage, response: ServerResponse) => void> = {
  echo: (_, response) => void response.end(KIB),
  silent: () => undefined,
  fill: (request, response) =>
    void response.writeHead(200).write(Buffer.alloc(Number(request.url!.split('/')[2]), 'x')),
  letters: (_, response) => {
    response.once('error', () => undefined)
    const timer = setInterval(() => {
      if (!response.writableNeedDrain) response.write(LETTERS)
    }, LETTERS_EVERY_MS)
    response.once('close', () => clearInterval(timer))
  },
  quick: quickHook,
  hold: (request, response) => {
    request.resume()
    held.add(() => response.end())
  },
}

const { cert, key } = workerData as { cert: string; key: string }
const https = createServer({ cert, key, maxHeaderSize: HEADER_BYTES_MAX }, (request, response) => {
  habits[request.url!.split('/')[1]!]?.(request, response)
})

/** Messages to `crowd...` are held until released. Others are accepted immediately. */
const smtp = new SMTPServer({
  authOptional: true,
  hideSTARTTLS: true,
  disabledCommands: ['STARTTLS', 'AUTH'],
  disableReverseLookup: true,
  logger: false,
  onData(stream, session, done) {
    stream.resume().once('end', () => {
      const to = session.envelope.rcptTo[0]?.address ?? ''
      if (to.startsWith('crowd')) {
        held.add(() => done())
        return
      }
      done()
      arrived(to)
    })
  },
})
smtp.on('error', () => undefined)

/** Resolves `.honest.test` to 127.0.0.1, and no other name (RFC 1035 section 4). */
const dns = createSocket('udp4')
dns.on('message', (query, { port, address }) => {
  if (!query.includes('\x06honest\x04test\0', 12, 'latin1')) return
  const end = query.indexOf(0, 12) + 5
  const isA = query.readUInt16BE(end - 4) === 1
  const header = Buffer.from(query.subarray(0, 12))
  header.writeUInt16BE(0x8180, 2)
  header.writeUInt16BE(isA ? 1 : 0, 6)
  header.fill(0, 8)
  const answer = isA ? Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1]) : ''
  dns.send([header, query.subarray(12, end), answer], port, address)
})

await Promise.all([
  new Promise<void>((resolve) => https.listen(0, '127.0.0.1', resolve)),
  new Promise<void>((resolve) => smtp.listen(0, '127.0.0.1', () => resolve())),
  new Promise<void>((resolve) => dns.bind(0, '127.0.0.1', resolve)),
])
parentPort?.postMessage({
  https: (https.address() as AddressInfo).port,
  smtp: (smtp.server.address() as AddressInfo).port,
  dns: dns.address().port,
} satisfies Places)
