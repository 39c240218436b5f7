/**
 * A webhook receiver on loopback over TLS with configurable responses, which records all requests.
 */
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Certificate } from '../service/certificates.js'
import { LOOPBACK } from '../fleet/loopback.js'
import { helperEnds } from '../endings.js'

/** With these settings a service delivers to the receivers of tests. */
export const REACHES_RECEIVERS = {
  SVC_WEBHOOKS__ALLOW_PRIVATE_NETWORKS: 'true',
  SVC_WEBHOOKS__CA_PEM_PATH: LOOPBACK.certPath,
  SVC_SECURITY__WEBHOOK_ALLOW_NON_STANDARD_PORTS: 'true',
} as const

export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  readonly atMs: number
}

/** The response. A function may answer on its own, or never. */
export type Answer =
  | number
  | { status: number; headers?: Record<string, string>; body?: string }
  | ((response: ServerResponse) => void)

export interface Receiver {
  readonly origin: string
  readonly certificate: Certificate
  readonly received: Received[]
  /** Requests by path. */
  at(path: string): Received[]
  /** Waits for a number of requests at a path, and returns them. */
  until(path: string, count: number, withinMs?: number): Promise<Received[]>
  close(): Promise<void>
}

const PAUSE_MS = 10
const WITHIN_MS = 30_000

export async function startReceiver(
  answer: (request: Received) => Answer = () => 200,
  certificate = LOOPBACK,
): Promise<Receiver> {
  const received: Received[] = []
  const tls = { cert: certificate.pem, key: readFileSync(certificate.keyPath) }
  const server = createServer(tls, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { url: path = '', headers } = request
      const one = { path, headers, body: Buffer.concat(chunks), atMs: Date.now() }
      received.push(one)
      const verdict = answer(one)
      if (typeof verdict === 'function') return verdict(response)
      const told = typeof verdict === 'number' ? { status: verdict } : verdict
      response.writeHead(told.status, told.headers).end(told.body ?? '')
    })
  })
  server.on('tlsClientError', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const at = (path: string) => received.filter((one) => one.path === path)
  return {
    origin: `https://localhost:${port}`,
    certificate,
    received,
    at,
    async until(path, count, withinMs = WITHIN_MS) {
      const endMs = Date.now() + withinMs
      while (at(path).length < count) {
        if (Date.now() > endMs) {
          throw new Error(`${path}: ${at(path).length} of ${count} within ${withinMs} ms`)
        }
        await sleep(PAUSE_MS)
      }
      return at(path)
    },
    close: helperEnds(async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
      certificate.remove()
    }),
  }
}
