/**
 * The health check of the image: exits with 0 when the process is alive. A container that only waits for its database
 * is alive, so this asks /health/live and not /health/ready.
 *
 *   node deploy/image/healthcheck.mjs [live | ready]
 */
import { connect } from 'node:http2'
import { request } from 'node:http'
import process from 'node:process'

const WITHIN_MS = 2_500
const { env } = process
const port = env.SVC_SERVER__PORT ?? '8080'
const path = `/health/${process.argv[2] === 'ready' ? 'ready' : 'live'}`
const transport = env.SVC_SERVER__TRANSPORT ?? 'plain_http'

setTimeout(() => process.exit(1), WITHIN_MS)
const end = (status) => process.exit(status === 200 ? 0 : 1)

if (transport === 'plain_http') {
  const asked = request({ host: '127.0.0.1', port, path }, ({ statusCode }) => end(statusCode))
  asked.on('error', () => end(0))
  asked.end()
} else {
  // The certificate is for the public name, and this connection stays inside of the container.
  const session = connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false })
  session.on('error', () => end(0))
  const stream = session.request({ ':path': path })
  stream.on('response', (headers) => end(headers[':status']))
  stream.on('error', () => end(0))
  stream.end()
}
