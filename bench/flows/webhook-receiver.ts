/**
 * The receiver of the webhook benches: answers 200 to everything over TLS, and reports arrivals.
 */
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { parentPort } from 'node:worker_threads'
import { LOCALHOST_CERT, LOCALHOST_KEY } from './loopback-tls.js'

/** One delivery to `/timed`, with the time of the shared clock of all threads. */
export type Arrival = { readonly body: string; readonly atMs: number }

const tls = { cert: LOCALHOST_CERT, key: LOCALHOST_KEY }
const server = createServer(tls, (request, response) => {
  const atMs = performance.timeOrigin + performance.now()
  if (request.url !== '/timed') {
    request.resume().once('end', () => response.end())
    return
  }
  let body = ''
  request.setEncoding('utf8').on('data', (text: string) => {
    body += text
  })
  request.once('end', () => {
    response.end()
    parentPort?.postMessage({ body, atMs } satisfies Arrival)
  })
})
server.listen(0, '127.0.0.1', () => {
  parentPort?.postMessage((server.address() as AddressInfo).port)
})
