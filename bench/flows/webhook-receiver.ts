/** The receiver of the webhook bench: answers 200 to everything, over TLS. */
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { parentPort } from 'node:worker_threads'
import { LOCALHOST_CERT, LOCALHOST_KEY } from './loopback-tls.js'

const tls = { cert: LOCALHOST_CERT, key: LOCALHOST_KEY }
const server = createServer(tls, (request, response) => {
  request.resume()
  request.on('end', () => response.end())
})
server.listen(0, '127.0.0.1', () => {
  parentPort?.postMessage((server.address() as AddressInfo).port)
})
